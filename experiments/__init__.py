"""Experiments: scripts that measure and train, and their results. Only the command line imports this package."""
