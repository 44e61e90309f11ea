"""The verbs of the command line, one file per verb with its options. Long code is in the modules of `cli`."""
