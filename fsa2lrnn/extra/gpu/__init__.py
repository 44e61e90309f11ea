"""The scans on a GPU, in Triton."""
