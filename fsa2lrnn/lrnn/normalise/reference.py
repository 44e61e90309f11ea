"""The column rules in plain torch: the definition, on any device, differentiable as often as one likes."""

from __future__ import annotations

from torch import Tensor
from torch.linalg import vector_norm


def reference(A: Tensor, rule: str, p: float) -> Tensor:
    """`normalise` as its definition says it: (…, b, b) -> (…, b, b)."""
    if rule == "clip":
        return A / vector_norm(A, ord=p, dim=-2, keepdim=True).clamp(min=1)
    if rule == "released":
        centred = A - A.mean(dim=-2, keepdim=True)
        return centred / vector_norm(centred, ord=p, dim=-2, keepdim=True).amax(dim=-1, keepdim=True)
    return A
