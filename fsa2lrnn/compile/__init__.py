"""Compile a machine into exact integer tables (`compile_recurrence`), from which `lower` makes a network.

This package does not import torch.
"""

from fsa2lrnn.compile.recurrence import compile_recurrence

__all__ = ["compile_recurrence"]
