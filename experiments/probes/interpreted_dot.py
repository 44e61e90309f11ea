"""A product of matrices of ones in Triton, to test how Triton's interpreter computes `tl.dot` in a dtype."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _dot(a, o, N: tl.constexpr):  # pyright: ignore
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(a + at)
    tl.store(o + at, tl.dot(x, x))


def product(dtype: torch.dtype) -> Tensor:
    """Return the product of two 16 × 16 matrices of ones; every entry is 16."""
    o = torch.zeros(16, 16)
    _dot[(1,)](torch.ones(16, 16, dtype=dtype), o, 16)  # pyright: ignore
    return o
