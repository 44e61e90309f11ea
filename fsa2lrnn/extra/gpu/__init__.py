"""Scans on a GPU, in Triton."""
