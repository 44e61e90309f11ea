"""Exact probes on real kernels, and a study of injected faults."""
