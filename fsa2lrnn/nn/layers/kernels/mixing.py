"""The gates after the recurrence in the layers of state-space models: a GELU, and linear maps that mix the channels.

- "none": the outputs of the recurrence, unchanged.
- "gelu": g = GELU(y).
- "glu": (W₁g + b₁) ⊙ σ(W₂g + b₂); the output of S4, and the "full GLU" of S5 and LRU.
- "half_glu1": g ⊙ σ(Wg + b), "half_glu2": y ⊙ σ(Wg + b); both from S5.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, glu

from fsa2lrnn.errors import UnsupportedFormat

KINDS = ("none", "gelu", "glu", "half_glu1", "half_glu2")


def check_mixing(kind: str) -> None:
    """Raise `UnsupportedFormat` unless `kind` is one of `KINDS`."""
    if kind not in KINDS:
        raise UnsupportedFormat(f"mixing {kind!r} is not known: choose one of {', '.join(KINDS)}")


class Mixing(nn.Module):
    """The gates named `kind`, applied at each position, with their linear maps: (…, H) -> (…, H).

    `approximate` is the option of GELU: "none" for the error function, "tanh" for the approximation that JAX uses.
    The gates have no dropout, so that a verifier examines the model that runs.
    """

    def __init__(self, width: int, kind: str, approximate: str = "none") -> None:
        super().__init__()
        self.kind, self.approximate = kind, approximate
        if "glu" in kind:
            self.linear = nn.Linear(width, 2 * width if kind == "glu" else width)

    def forward(self, y: Tensor) -> Tensor:
        """Return the mixed channels: (…, H) -> (…, H)."""
        if self.kind == "none":
            return y
        g = gelu(y, approximate=self.approximate)
        if self.kind == "gelu":
            return g
        z = self.linear(g)
        if self.kind == "glu":
            return glu(z, -1)
        return (g if self.kind == "half_glu1" else y) * torch.sigmoid(z)
