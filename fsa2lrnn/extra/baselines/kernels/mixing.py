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


def check_mixing(kind: str) -> None:
    """Raises `UnsupportedFormat` for an unknown kind."""
    if kind not in KINDS:
        raise UnsupportedFormat(f"mixing {kind!r} is not known: choose one of {', '.join(KINDS)}")


class Mixing(nn.Module):
    """The function `kind`, position by position: (…, H) -> (…, H).

    `approximate` is GELU's: "none" for the error function, "tanh" for the approximation that JAX takes. There is no
    dropout: a verifier would then examine another model than the one that runs.
    """

    def __init__(self, width: int, kind: str, approximate: str = "none") -> None:
        super().__init__()
        check_mixing(kind)
        self.kind, self.approximate = kind, approximate
        if "glu" in kind:
            self.linear = nn.Linear(width, 2 * width if kind == "glu" else width)

    def forward(self, y: Tensor) -> Tensor:
        """(…, H) -> (…, H)."""
        if self.kind == "none":
            return y
        g = gelu(y, approximate=self.approximate)
        if self.kind == "gelu":
            return g
        z = self.linear(g)
        if self.kind == "glu":
            return glu(z, -1)
        return (g if self.kind == "half_glu1" else y) * torch.sigmoid(z)
