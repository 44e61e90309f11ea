"""S4D (Gu et al. 2022): a diagonal state-space system for each channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers.channels import ChannelConfig, ChannelLayer, complex_of
from fsa2lrnn.nn.layers.kernels import hippo
from fsa2lrnn.nn.layers.kernels.channels import System
from fsa2lrnn.nn.layers.kernels.transition import DISCRETISATIONS, diagonal

STARTS = {"lin": hippo.diagonal_lin, "inv": hippo.diagonal_inv, "legs": hippo.diagonal_legs}


@dataclass(frozen=True)
class S4DConfig(ChannelConfig):
    """The configuration of S4D: `init` is "lin", "inv" or "legs" (`hippo`), `discretisation` "zoh" or "bilinear"."""

    init: str = "lin"
    discretisation: str = "zoh"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.init not in STARTS:
            raise UnsupportedFormat(f"init {self.init!r} is not known: choose one of {', '.join(STARTS)}")
        if self.discretisation not in DISCRETISATIONS:
            raise UnsupportedFormat(f"discretisation {self.discretisation!r} is none of {', '.join(DISCRETISATIONS)}")


class S4DLayer(ChannelLayer):
    """The layer x_k = Ā ⊙ x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k + D u_k in each channel, then gates (`ChannelLayer`).

    >>> import torch
    >>> layer = S4DLayer(4, S4DConfig(width=4, d_state=8))
    >>> y, state = layer(torch.ones(2, 5, 4), layer.initial_state(2))
    >>> y.shape, state.shape
    (torch.Size([2, 5, 4]), torch.Size([2, 4, 8]))
    """

    Config = S4DConfig

    @property
    def family(self) -> str | None:
        """The family of input-independent diagonal layers, "lti-diagonalisable"."""
        return "lti-diagonalisable"

    @staticmethod
    def start(config: Any) -> hippo.Start:
        """Return the initial system that `config.init` names: poles and B, complex (n,) each."""
        return STARTS[config.init](config.d_state)

    def system(self) -> System:
        """Return the discretised system, in double precision."""
        B = self.of_channels(complex_of(self.B))
        transition, B = diagonal(self.poles(), B, self.dt(), self.config.discretisation)
        return System(transition, B, complex_of(self.C), self.D.double())
