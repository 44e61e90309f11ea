"""Experiments: scripts that measure and train, and their results. Nothing imports this package but the command line."""
