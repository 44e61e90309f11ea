"""Scans with one diagonal matrix for all letters: x_k = λ ⊙ x_{k−1} + v_k, complex numbers as pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from fsa2lrnn.nn.scans import scan


def scan_diagonal(rates: Tensor, v: Tensor, x0: Tensor, method: str = "auto") -> Tensor:
    """Return all states: rates λ (2P,), v (B, T, 2P), x0 (B, 2P), each as pairs -> x_1 … x_T (B, T, 2P).

    A pair is a real part followed by an imaginary part (`pairs`). The product with a complex number is a block of
    size 2: `method` is one of `scan`, or "letters" for "auto".

    Raises:
        UnsupportedFormat: for an unknown method, or a device or dtype that the method does not support.

    >>> i = torch.tensor([0.0, 1.0])
    >>> scan_diagonal(i, torch.zeros(1, 3, 2), torch.tensor([[1.0, 0.0]]))[0].tolist()
    [[0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    """
    real, imaginary = rates[::2], rates[1::2]
    A = torch.stack([torch.stack([real, -imaginary], -1), torch.stack([imaginary, real], -1)], -2)  # (P, 2, 2)
    inputs, start = (x.unflatten(-1, (-1, 2)) for x in (v, x0))  # (B, T, P, 2), (B, P, 2)
    method = "auto" if method == "letters" else method
    return scan(A.expand(*v.shape[:2], -1, -1, -1), inputs, start, method).flatten(-2)


def times(rates: Tensor, x: Tensor) -> Tensor:
    """Return λ ⊙ x for numbers as pairs: (2P,), (…, 2P) -> (…, 2P)."""
    (a, b), (real, imaginary) = (rates[::2], rates[1::2]), (x[..., ::2], x[..., 1::2])
    return torch.stack([a * real - b * imaginary, a * imaginary + b * real], -1).flatten(-2)


def pairs(x: Tensor) -> Tensor:
    """Return complex numbers (…, P) as pairs of real numbers: (…, 2P)."""
    return torch.view_as_real(x.resolve_conj()).flatten(-2)
