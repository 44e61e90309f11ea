"""Training: words of any machine, the settings of a run, one run or several seeds, and two evaluation protocols."""
