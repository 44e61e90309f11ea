"""The base class of S5 and LRU: one diagonal complex recurrence between two matrices, then gates."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from fsa2lrnn.nn.layers.base import Layer
from fsa2lrnn.nn.layers.channels import COMPLEX, check_stream
from fsa2lrnn.nn.layers.kernels import channels
from fsa2lrnn.nn.layers.kernels.diagonal import pairs, scan_diagonal, times
from fsa2lrnn.nn.layers.kernels.mixing import Mixing
from fsa2lrnn.nn.scans import METHODS


class SpectralLayer(Layer):
    """The layer x_k = λ ⊙ x_{k−1} + B u_k, y_k = Re C x_k + D ⊙ u_k, then `mixing`. Subclasses define λ, B and C.

    Complex numbers are pairs, each real part followed by its imaginary part, so that all products are real. The state
    is (B, 2P).
    """

    unproved: ClassVar[str | None] = COMPLEX
    methods: ClassVar[tuple[str, ...]] = tuple(METHODS)
    takes_index: ClassVar[bool] = True
    D: Tensor

    def __init__(self, width_in: int, config: Any, states: int) -> None:
        super().__init__()
        check_stream(width_in, config.width, type(self).__name__)
        self.config, self.states = config, states
        self.mixing = Mixing(config.width, config.mixing, "tanh")

    @classmethod
    def readout(cls, config: Any, width: int, hidden: int, n_outputs: int) -> nn.Module:
        """Return a linear map without hidden units, as in the published models."""
        return nn.Linear(width, n_outputs)

    @property
    def family(self) -> str | None:
        """The family of input-independent diagonal layers, "lti-diagonalisable"."""
        return "lti-diagonalisable"

    def discretised(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the rates λ (P,), B (P, H) and C (H, P), complex128."""
        raise NotImplementedError

    def matrices(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the real λ (2P,), B (2P, H) and C (H, 2P) for states as pairs, in the dtype of the layer."""
        rates, B, C = self.discretised()
        parts = pairs(rates), pairs(B.mT).mT, pairs(C.conj())
        rates, B, C = (part.to(self.D.dtype) for part in parts)
        return rates, B, C

    def initial_state(self, batch: int) -> Tensor:
        """Return the state 0: (B, 2P)."""
        return channels.no_state(self.D, batch, 2 * self.states)

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs and the last state: u (B, T, H), state (B, 2P) -> (B, T, H), (B, 2P).

        With an index (B, T), u (N, H) holds the distinct inputs and index[b, t] the row of the input at position t.
        `method` is one of `scan`, or "letters" for "auto".
        """
        rates, B, C = self.matrices()
        read, direct = linear(u, B), self.D * u
        if index is not None:
            read, direct = embedding(index, read), embedding(index, direct)
        x = scan_diagonal(rates, read, state, method)
        return self.mixing(linear(x, C) + direct), x[:, -1] if x.shape[1] else state

    def step(self, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output and the state of one step: (B, H), (B, 2P) -> (B, H), (B, 2P)."""
        rates, B, C = self.matrices()
        state = times(rates, state) + linear(u, B)
        return self.mixing(linear(state, C) + self.D * u), state

    def emit(self, state: Tensor) -> Tensor:
        """Return the outputs of a state without its input, mixing(Re C x): (B, 2P) -> (B, H)."""
        return self.mixing(linear(state, self.matrices()[2]))
