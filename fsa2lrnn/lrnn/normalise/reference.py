"""The column rules in plain torch: the definition, on any device, differentiable as often as one likes."""

from __future__ import annotations

from torch import Tensor
from torch.linalg import vector_norm

_STEEPEST = 2.0**100


def bounded(p: float) -> float:
    """The order that is computed with: p, or 2¹⁰⁰ where p is larger.

    In float64 and below, |x|^p is 1 for |x| = 1, and for any other x beyond the format's range from p = 2⁶⁵ on. So 2¹⁰⁰
    gives what larger p would, were they within the range of float32, in which p − 1 and 1/p are computed with too.

    >>> bounded(1.2), bounded(1e308) == bounded(1e39)
    (1.2, True)
    """
    return min(p, _STEEPEST)


def reference(A: Tensor, rule: str, p: float) -> Tensor:
    """`normalise` as its definition says it: (…, b, b) -> (…, b, b)."""
    p = bounded(p)
    if rule == "clip":
        return A / vector_norm(A, ord=p, dim=-2, keepdim=True).clamp(min=1)
    if rule == "released":
        centred = A - A.mean(dim=-2, keepdim=True)
        return centred / vector_norm(centred, ord=p, dim=-2, keepdim=True).amax(dim=-1, keepdim=True)
    return A
