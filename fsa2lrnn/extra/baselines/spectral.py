"""What S5 and LRU share: one diagonal complex recurrence between two matrices, then gates."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from fsa2lrnn.extra.baselines.channels import COMPLEX, check_stream
from fsa2lrnn.extra.baselines.kernels import channels, letters, spectral
from fsa2lrnn.extra.baselines.kernels.diagonal import METHODS, times
from fsa2lrnn.extra.baselines.kernels.discretised import Numbers, Poles, planes_of
from fsa2lrnn.extra.baselines.kernels.mixing import Mixing
from fsa2lrnn.extra.baselines.kernels.spectral import Spectrum
from fsa2lrnn.extra.baselines.kernels.transition import planes
from fsa2lrnn.lrnn.layers.base import Layer


class SpectralLayer(Layer):
    """x_k = λ ⊙ x_{k−1} + B u_k, y_k = Re C x_k + D ⊙ u_k, then `mixing`. Subclasses say what λ, B and C are.

    Complex numbers are planes, real parts beside imaginary parts, so that all products are real ones. The state is
    (B, 2P).
    """

    takes_index: ClassVar[bool] = True
    unproved: ClassVar[str | None] = COMPLEX
    methods: ClassVar[tuple[str, ...]] = tuple(METHODS)
    numbers: ClassVar[tuple[str, ...]]  # the parameters that λ is made of
    factor = 1.0  # of C
    D: Tensor

    def __init__(self, width_in: int, config: Any, states: int) -> None:
        super().__init__()
        check_stream(width_in, config.width, type(self).__name__)
        self.config, self.states = config, states
        self.mixing = Mixing(config.width, config.mixing, "tanh")

    @classmethod
    def readout(cls, config: Any, width: int, hidden: int, n_outputs: int) -> nn.Module:
        """A linear map, as the released models have it; no hidden units."""
        return nn.Linear(width, n_outputs)

    @property
    def family(self) -> str | None:
        """Input-independent, diagonal."""
        return "lti-diagonalisable"

    def discretised(self) -> tuple[Tensor, Tensor, Tensor]:
        """λ (P,), B (P, H) and C (H, P), in double precision."""
        raise NotImplementedError

    def spectrum(self) -> Spectrum:
        """The same with D, for planes, in the type of the layer."""
        rates, B, C = self.discretised()
        parts = planes(rates), torch.cat([B.real, B.imag]), torch.cat([C.real, -C.imag], -1)
        rates, B, C = (part.to(self.D.dtype) for part in parts)
        return Spectrum(rates, B, C, self.D)

    def poles(self, numbers: Numbers) -> Poles:
        """What λ and B are made by, with derivatives by the parameters that `numbers` names."""
        raise NotImplementedError

    def run(self, u: Tensor, x0: Tensor, length: int, method: str) -> tuple[Tensor, Tensor]:
        """Outputs before the gates, and the last state, as `spectral.reference` says: compiled as a whole where that
        pays."""
        if not spectral.is_whole(method, length * 2 * self.states, self.D, u, x0):
            return spectral.reference(self.spectrum(), u, x0, length, method)
        parameters = [getattr(self, name) for name in ("B", "C", *self.numbers)]
        return spectral.fused(Spectrum(*planes_of(self.poles, self.factor, *parameters), self.D), u, x0, length)

    def initial_state(self, batch: int) -> Tensor:
        """Zero: (B, 2P)."""
        return channels.no_state(self.D, batch, 2 * self.states)

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Outputs and the last state: u (B, T, H), state (B, 2P) -> (B, T, H), (B, 2P).

        `method` is one of `diagonal.METHODS`. With `index` (B, T), u (R, H) are all inputs there are.
        """
        u = u if index is None else embedding(index, u)
        y, state = self.run(u, state, u.shape[1], method)
        return self.mixing(y, method), state

    def outputs(self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None) -> Tensor:
        """The outputs of `forward` alone: by "auto", for words of few inputs, as sums of the responses to them."""
        if method != "auto" or index is None or not letters.is_worth_it(index, u) or channels.matters(state):
            return super().outputs(u, state, method, index)
        entering, start = u.unsqueeze(1), u.new_zeros(len(u), 2 * self.states)  # nothing after the first letter
        responses, _ = self.run(entering, start, index.shape[1], "auto")
        return self.mixing(letters.respond(index, responses))

    def step(self, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """One letter: (B, H), (B, 2P) -> (B, H), (B, 2P)."""
        rates, B, C, D = self.spectrum()
        state = times(rates, state) + linear(u, B)
        return self.mixing(linear(state, C) + D * u), state

    def emit(self, state: Tensor) -> Tensor:
        """mixing(Re C x): (B, 2P) -> (B, H)."""
        return self.mixing(linear(state, self.spectrum().C))
