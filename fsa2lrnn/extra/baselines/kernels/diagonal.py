"""Scans with one diagonal matrix for all letters: x_k = λ ⊙ x_{k−1} + v_k, complex numbers as planes."""

from __future__ import annotations

import torch
from torch import Tensor

from fsa2lrnn.lrnn.scans import scan


def scan_diagonal(rates: Tensor, v: Tensor, x0: Tensor, method: str = "auto") -> Tensor:
    """Return all states: rates λ (2P,), v (B, T, 2P), x0 (B, 2P), each as planes -> x_1 … x_T (B, T, 2P).

    The product with a complex number is a block of size 2: `method` is one of `scan`, or "letters" for "auto".

    Raises:
        UnsupportedFormat: for an unknown method, or a device or dtype that the method does not support.

    >>> i = torch.tensor([0.0, 1.0])
    >>> scan_diagonal(i, torch.zeros(1, 3, 2), torch.tensor([[1.0, 0.0]]))[0].tolist()
    [[0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    """
    real, imaginary = rates.chunk(2)
    A = torch.stack([torch.stack([real, -imaginary], -1), torch.stack([imaginary, real], -1)], -2)  # (P, 2, 2)
    inputs, start = (x.unflatten(-1, (2, -1)).mT.contiguous() for x in (v, x0))  # (B, T, P, 2), (B, P, 2)
    x = scan(A.expand(*v.shape[:2], -1, -1, -1), inputs, start, "auto" if method == "letters" else method)
    return x.mT.flatten(-2)


def times(rates: Tensor, x: Tensor) -> Tensor:
    """Return λ ⊙ x for numbers as planes: (2P,), (…, 2P) -> (…, 2P)."""
    (a, b), (real, imaginary) = rates.chunk(2, -1), x.chunk(2, -1)
    return torch.cat([a * real - b * imaginary, a * imaginary + b * real], -1)
