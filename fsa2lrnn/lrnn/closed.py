"""Affine maps that stay among finitely many states, so that composing them never rounds (T1 and T8 of docs/theory.md).

In a block: a one-hot map (v = 0) or a reset (A = 0, v one-hot). In a lane, a block of size 1: one of the maps x, 1 − x,
0 and 1, which are all affine maps that keep {0, 1}. Each of the two kinds is closed under composition, and a parallel
scan forms nothing but compositions of consecutive maps of one block: all that it multiplies and adds is −1, 0 or 1.

A third kind are exchanges with signs and writes (T51), of the numbers −1, 0 and 1: each number goes to at most one
place, as it is or with its sign changed, each place takes at most one, and what is written goes to places that take
none. The kinds are closed each for itself: 1 − x and −x together count without end.
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


def exchanges_closed(A: Tensor, v: Tensor) -> bool:
    """Whether each of N transitions exchanges numbers −1, 0 and 1 with signs, and writes such only where nothing is
    left, in every block: A (N, H, b, b), v (N, H, b).

    >>> import torch
    >>> swap, erase = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    >>> both, write = torch.stack([swap, erase])[:, None], torch.tensor([0.0, -1.0])
    >>> exchanges_closed(both, torch.zeros(2, 1, 2)), exchanges_closed(both[1:], write[None, None])
    (True, True)
    >>> exchanges_closed(both, write.expand(2, 1, 2))
    False
    """
    taken = A != 0
    is_unit = ((A == 0) | (A == 1) | (A == -1)).all() and is_signed(v)
    is_exchange = (taken.sum(-1) <= 1).all() and (taken.sum(-2) <= 1).all()
    return bool(is_unit and is_exchange and not (taken.any(-1) & (v != 0)).any())


def is_signed(x: Tensor) -> bool:
    """Whether all are −1, 0 or 1."""
    return bool(((x == 0) | (x == 1) | (x == -1)).all())


def is_lane(mask: Tensor) -> Tensor:
    """Which blocks are of size 1: (H, b) -> (H,)."""
    return mask.sum(-1) == 1


def is_one_hot(vectors: Tensor) -> Tensor:
    """Whether each vector along the last axis has a single 1 and zeros: (…, b) -> (…)."""
    return ((vectors == 1).sum(-1) == 1) & ((vectors != 0).sum(-1) == 1)
