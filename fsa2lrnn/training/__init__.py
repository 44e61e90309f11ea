"""Training: words of any machine, the settings of a run, one run or many, and two evaluation protocols."""
