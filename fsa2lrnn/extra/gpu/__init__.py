"""Compute the scan of a linear recurrence and its gradient on one GPU, by Triton kernels."""
