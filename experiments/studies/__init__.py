"""Studies over many machines or models: each script writes its results as JSON."""
