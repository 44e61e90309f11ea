"""Column normalisation of transition blocks, by name (the paper's Eq. 6, and what the released code does instead)."""

from __future__ import annotations

import math

from torch import Tensor
from torch.linalg import vector_norm

RULES = ("clip", "released", "none")


def normalise(A: Tensor, rule: str, p: float) -> Tensor:
    """Blocks with bounded columns: (…, b, b) -> (…, b, b).

    - "clip": v ↦ v / max(1, ‖v‖_p) for each column v (Eq. 6). One-hot columns have norm 1 for every p and stay.
    - "released": the code published with the paper: subtract each column's mean, then divide the block by its largest
      column p-norm. Columns that are all constant give 0/0, NaN, as they do there.
    - "none": as they are.

    Stable in general only for p = 1 (Eq. 7); see docs/theory.md §3.
    """
    if rule == "clip":
        return A / vector_norm(A, ord=p, dim=-2, keepdim=True).clamp(min=1)
    if rule == "released":
        centred = A - A.mean(dim=-2, keepdim=True)
        return centred / vector_norm(centred, ord=p, dim=-2, keepdim=True).amax(dim=-1, keepdim=True)
    return A


def released_scale(b: int, p: float) -> float:
    """The factor by which the "released" rule scales a one-hot permutation of size b, a step, on vectors of sum zero.

    A centred one-hot column has one entry 1 − 1/b and b − 1 entries −1/b; the block is divided by its p-norm.

    >>> round(released_scale(8, 1.2), 2), round(released_scale(2, 1.2), 2)
    (0.74, 1.12)
    """
    if b == 1:
        return math.nan
    return ((1 - 1 / b) ** p + (b - 1) * b**-p) ** (-1 / p)
