"""PD-SSM (Terzić et al. 2025): x_k = D(u) P(u) x_{k−1} + B u, with one-hot rows of P and complex diagonal D, |D| < 1.

Each row of P is a one-hot vector whose 1 stands at the largest entry of that row of M(u), a mixture of a dictionary's
matrices. The backward pass uses the gradient of a softmax of M(u)'s rows instead. Parameters have the names of PD_Block
in IBM's expressive-sparse-state-space-model, without its dropout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, gelu, layer_norm, linear

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import selective_rounding as rounding
from fsa2lrnn.nn.layers.base import Layer, LayerConfig, check_one_of, check_positive, check_width
from fsa2lrnn.nn.layers.block import scan_states
from fsa2lrnn.nn.layers.matrix_layer import READS
from fsa2lrnn.nn.normalise import one_hot_rows
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers
from fsa2lrnn.nn.scans import METHODS


@dataclass(frozen=True)
class PDSSMConfig(LayerConfig):
    """A configuration with heads·block complex states.

    Args:
        dictionary: the number of matrices that each letter mixes.
        multiple: hidden units of the gates of |D| and of its phase, per state.
        reads: "gated" for the published block, "state" for only its states, real and imaginary parts.
    """

    heads: int
    block: int
    dictionary: int = 8
    multiple: int = 2
    reads: str = "gated"

    def __post_init__(self) -> None:
        check_positive(self, "heads", "block", "dictionary", "multiple")
        check_one_of(self, reads=READS)
        check_width(2 * self.states)

    @property
    def states(self) -> int:
        """N, the number of complex states."""
        return self.heads * self.block

    @property
    def width(self) -> int:
        """The number of outputs: N for the published block, 2N for states."""
        return self.states * (2 if self.reads == "state" else 1)

    @property
    def entries(self) -> int:
        """The largest number of entries per token: those of P, or of the real transition."""
        return self.width**2


class PDSSMLayer(Layer):
    """The layer LayerNorm(W [Re x, Im x] + D u), or [Re x, Im x]; x₀ = e₁. The state is (B, 1, 2N)."""

    Config = PDSSMConfig
    takes_index: ClassVar[bool] = True
    methods: ClassVar[tuple[str, ...]] = tuple(METHODS)

    def __init__(self, width_in: int, config: PDSSMConfig) -> None:
        super().__init__()
        self.config = config
        N = config.states
        self.D_magnitude_generator, self.D_phase_generator = (
            nn.Sequential(
                nn.Linear(width_in, config.multiple * N), nn.GELU(), nn.Linear(config.multiple * N, N), nn.Sigmoid()
            )
            for _ in range(2)
        )
        self.S = nn.Linear(width_in, config.dictionary, bias=False)
        self.A_dict = nn.Parameter(torch.randn(N, N, config.dictionary) / math.sqrt(N))
        self.B_re, self.B_im = (nn.Parameter(torch.randn(N, width_in) / math.sqrt(2 * N)) for _ in range(2))
        if config.reads == "gated":
            self.D = nn.Parameter(torch.randn(width_in) / math.sqrt(width_in))
            self.norm, self.to_out = nn.LayerNorm(N), nn.Linear(2 * N, N)
            if width_in != N:
                raise UnsupportedFormat(f"{N} states read {width_in} numbers: PD-SSM reads as many as it has states")

    @property
    def family(self) -> str | None:
        """None: transposed maps of coordinates with complex factors are not one of the library's families."""
        return None

    @property
    def has_tables(self) -> bool:
        """Whether the layer declares tables: it does if its output is the state."""
        return self.config.reads == "state"

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """One block of 2N numbers, if the output is the state."""
        return (2 * self.config.states,) if self.has_tables else ()

    def initial_state(self, batch: int) -> Tensor:
        """Return e₁: (B, 1, 2N)."""
        start = self.A_dict.new_zeros(batch, 1, 2 * self.config.states)
        start[:, :, 0] = 1
        return start

    def emit(self, state: Tensor) -> Tensor:
        """Return the state, or the block's output for it and a zero input: (B, 1, 2N) -> (B, width)."""
        x = state.flatten(1)
        return x if self.has_tables else self._normed(self.to_out(x))

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return the transition of real and imaginary parts: (…, d) -> (…, 1, 2N, 2N), (…, 1, 2N)."""
        M = torch.einsum("ijk,...k->...ij", self.A_dict, self.S(u).softmax(-1))
        P = one_hot_rows(M, 1.0)
        size, phase = self.D_magnitude_generator(u), 2 * math.pi * self.D_phase_generator(u)
        real, imag = (P * (size * part).unsqueeze(-1) for part in (phase.cos(), phase.sin()))
        # The complex matrix R + iI acts on (Re x, Im x) as (R, −I; I, R).
        A = torch.cat([torch.cat([real, -imag], -1), torch.cat([imag, real], -1)], -2)
        v = linear(u, torch.cat([self.B_re, self.B_im]))
        return A.unsqueeze(-3), v.unsqueeze(-2)

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """Return bounds of the tables; where rounding can change a row of P, the bound of each candidate is 1."""
        N = self.config.states
        chances = rounding.softmax(rounding.projected(u, self.S.weight))
        M = rounding.projected(chances, self.A_dict.flatten(0, 1)).unflatten((N, N))
        # `largest` chooses within columns, and PD-SSM within rows: both sides are transposed.
        columns = rounding.shaped(lambda x: x.mT, M).largest(torch.ones(N, N, dtype=torch.bool))
        P = rounding.shaped(lambda x: x.mT, columns)
        size, phase = (_rounded_gate(gate, u) for gate in (self.D_magnitude_generator, self.D_phase_generator))
        phase = phase.scaled(2 * math.pi)
        real, imag = (P * (size * rounding.tame(part, phase))[..., None] for part in (torch.cos, torch.sin))
        rows, columns = partial(torch.cat, dim=-2), partial(torch.cat, dim=-1)
        A = rounding.stacked(
            rows, rounding.stacked(columns, real, imag.scaled(-1)), rounding.stacked(columns, imag, real)
        )
        v = rounding.projected(u, torch.cat([self.B_re, self.B_im]))
        return A[..., None, :, :], v[..., None, :]

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the outputs and the last state: u (B, T, d), or rows (N, d) with index (B, T)."""
        x, state = scan_states(self, u, state, method, index)
        if self.has_tables:
            return x, state
        added = self.D * u
        return self._normed(self.to_out(x) + (added if index is None else embedding(index, added))), state

    def _normed(self, y: Tensor) -> Tensor:
        return layer_norm(y, y.shape[-1:], self.norm.weight, self.norm.bias, self.norm.eps)


def _rounded_gate(gate: nn.Sequential, u: RoundedNumbers) -> RoundedNumbers:
    """Return bounds of σ(W₂ GELU(W₁ u + b₁) + b₂); the slope of GELU is at most 1.13."""
    weights = gate.get_parameter
    x = u.linear(weights("0.weight"), weights("0.bias"))
    x = x.of(gelu(x.mid), 1.13 * x.off + 64 * x.kind.u * (1 + x.size))
    return x.linear(weights("2.weight"), weights("2.bias")).sigmoid()
