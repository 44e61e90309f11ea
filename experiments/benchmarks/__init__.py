"""What things cost, measured: each script writes its results as JSON."""
