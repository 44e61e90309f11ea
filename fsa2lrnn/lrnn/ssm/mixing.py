"""What follows the recurrence in the layers of state-space models: a GELU, and gates that mix the channels.

- "none": the recurrence's outputs as they are.
- "gelu": g = GELU(y).
- "glu": (W₁g + b₁) ⊙ σ(W₂g + b₂); S4's output, and the "full GLU" of S5 and LRU.
- "half_glu1": g ⊙ σ(Wg + b), "half_glu2": y ⊙ σ(Wg + b); S5's.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, glu

from fsa2lrnn.errors import UnsupportedFormat

KINDS = ("none", "gelu", "glu", "half_glu1", "half_glu2")


def check_mixing(kind: str, dropout: float) -> None:
    """Raises `UnsupportedFormat` for an unknown kind, or a dropout that is no probability."""
    if kind not in KINDS:
        raise UnsupportedFormat(f"mixing {kind!r} is not known: choose one of {', '.join(KINDS)}")
    if not 0 <= dropout < 1:
        raise UnsupportedFormat(f"dropout = {dropout}: give a probability from 0 up to, not including, 1")


class Mixing(nn.Module):
    """The function `kind`, position by position: (…, H) -> (…, H).

    `approximate` is GELU's: "none" for the error function, "tanh" for the approximation that JAX takes. In training,
    whole channels of a word are dropped, before GELU, after it and at the end, as the released S4 does.
    """

    def __init__(self, width: int, kind: str, approximate: str = "none", dropout: float = 0.0) -> None:
        super().__init__()
        check_mixing(kind, dropout)
        self.kind, self.approximate, self.dropout = kind, approximate, dropout
        if "glu" in kind:
            self.linear = nn.Linear(width, 2 * width if kind == "glu" else width)

    def forward(self, y: Tensor) -> Tensor:
        """(B, T, H) -> (B, T, H), or (B, H) -> (B, H)."""
        if self.kind == "none":
            return self._drop(y)
        y = self._drop(y)
        g = self._drop(gelu(y, approximate=self.approximate))
        if self.kind == "glu":
            g = glu(self.linear(g), -1)
        elif self.kind != "gelu":
            g = (g if self.kind == "half_glu1" else y) * torch.sigmoid(self.linear(g))
        return self._drop(g)

    def _drop(self, y: Tensor) -> Tensor:
        if not (self.training and self.dropout):
            return y
        kept = torch.rand(len(y), *[1] * (y.ndim - 2), y.shape[-1], device=y.device) >= self.dropout
        return y * kept / (1 - self.dropout)
