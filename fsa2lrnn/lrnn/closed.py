"""Affine maps that stay among finitely many states, so that composing them never rounds (T1 and T8 of docs/theory.md).

In a block: a one-hot map (v = 0) or a reset (A = 0, v one-hot). In a lane, a block of size 1: one of the maps x, 1 − x,
0 and 1, which are all affine maps that keep {0, 1}. Each of the two kinds is closed under composition, and a parallel
scan forms nothing but compositions of consecutive maps of one block: all that it multiplies and adds is −1, 0 or 1.
"""

from __future__ import annotations

from torch import Tensor


def starts_closed(x0: Tensor, mask: Tensor) -> bool:
    """Whether x₀ (H, b) is one-hot in each block, 0 or 1 in each lane; `mask` (H, b) leaves the padding out."""
    is_zero = (x0 == 0).all(-1)
    return bool((is_one_hot(x0) | (is_zero & is_lane(mask))).all())


def maps_closed(A: Tensor, v: Tensor, mask: Tensor) -> bool:
    """Whether each of N transitions is such a map in every block: A (N, H, b, b), v (N, H, b)."""
    is_zero = (A == 0).all(-1).all(-1)
    is_map = (is_one_hot(A.mT) | ~mask).all(-1) & (v == 0).all(-1)
    is_reset = is_zero & is_one_hot(v)
    a, c = A[..., 0, 0], v[..., 0]
    is_lane_map = is_lane(mask) & (((a == -1) & (c == 1)) | ((a == 0) & (c == 0)))
    return bool((is_map | is_reset | is_lane_map).all())


def is_lane(mask: Tensor) -> Tensor:
    """Which blocks are of size 1: (H, b) -> (H,)."""
    return mask.sum(-1) == 1


def is_one_hot(vectors: Tensor) -> Tensor:
    """Whether each vector along the last axis has a single 1 and zeros: (…, b) -> (…)."""
    return ((vectors == 1).sum(-1) == 1) & ((vectors != 0).sum(-1) == 1)
