"""Scans: x_k = A_k x_{k-1} + v_k for k = 1 … T, behind one signature.

`sequential` is the reference; every other method is tested against it, forward and backward.
"""

from __future__ import annotations

from torch import Tensor

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.scans.pscan import pscan
from fsa2lrnn.lrnn.scans.reference import sequential

METHODS = {"sequential": sequential, "pscan": pscan}
AUTO = "sequential"  # faster than pscan at every size measured on a CPU: experiments/results/bench_scans.json


def scan(A: Tensor, v: Tensor, x0: Tensor, method: str = "auto") -> Tensor:
    """All states of a linear recurrence (the paper's Eq. 1), differentiable in every argument.

    Args:
        A: transitions, shape (B, T, H, b, b).
        v: inputs, shape (B, T, H, b).
        x0: initial state, shape (B, H, b) or (H, b).
        method: "sequential" (T steps), "pscan" (⌈log₂(T+1)⌉ steps, b times the work and more) or "auto".

    Returns:
        x_1 … x_T, shape (B, T, H, b).

    Raises:
        ValueError: if the shapes do not fit.
        UnsupportedFormat: for an unknown method.

    >>> import torch
    >>> A, v = torch.full((1, 3, 1, 1, 1), 2.0), torch.ones(1, 3, 1, 1)
    >>> scan(A, v, torch.zeros(1, 1)).flatten().tolist()
    [1.0, 3.0, 7.0]
    """
    check_method(method, METHODS)
    _check_shapes(A, v, x0)
    return METHODS[AUTO if method == "auto" else method](A, v, x0.expand(v.shape[0], *v.shape[2:]))


def check_method(method: str, known: dict) -> None:
    """Raises `UnsupportedFormat` unless `method` is "auto" or a key of `known`."""
    if method != "auto" and method not in known:
        raise UnsupportedFormat(f"scan method {method!r} is not known: choose one of auto, {', '.join(known)}")


def _check_shapes(A: Tensor, v: Tensor, x0: Tensor) -> None:
    fits = v.ndim == 4 and A.shape == (*v.shape, v.shape[-1]) and x0.shape in (v.shape[2:], (v.shape[0], *v.shape[2:]))
    if not fits:
        raise ValueError(
            f"shapes do not fit: A {tuple(A.shape)}, v {tuple(v.shape)}, x0 {tuple(x0.shape)} should be "
            "(B, T, H, b, b), (B, T, H, b) and (B, H, b) or (H, b)"
        )


__all__ = ["METHODS", "check_method", "pscan", "scan", "sequential"]
