"""The command-line verbs of the distributed extra: `sweep`."""
