"""The command-line verbs of the extra "report": `compare`, `demo`, `draw` and `report`."""
