"""Benchmarks: each script measures times or memory and writes its results as JSON."""
