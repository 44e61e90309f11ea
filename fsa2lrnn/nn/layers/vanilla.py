"""The vanilla linear recurrence: one learned matrix for all letters, x_k = A x_{k−1} + B u_k."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from fsa2lrnn.nn.layers.base import Layer, LayerConfig, check_one_of, check_positive, check_width
from fsa2lrnn.nn.scans import METHODS, scan

TRANSITIONS = ("dense", "diagonal")


@dataclass(frozen=True)
class VanillaConfig(LayerConfig):
    """The configuration of a vanilla layer: `width` states, and a `transition` matrix, "dense" or "diagonal".

    The norm of the matrix is not bounded. Raises `UnsupportedFormat` for values out of range.
    """

    width: int  # pyright: ignore[reportIncompatibleMethodOverride] - a field may be what a property is
    transition: str = "dense"

    def __post_init__(self) -> None:
        check_positive(self, "width")
        check_width(self.width)
        check_one_of(self, transition=TRANSITIONS)


class VanillaLayer(Layer):
    """The layer x_k = A x_{k−1} + B u_k, y_k = x_k.

    The parameters are `A` (n, n) or, if diagonal, (n,), `B` (n, d) and `x0` (n,). The initial A is normal with variance
    1/n if dense, so that its spectral radius is near 1, and uniform in (−1, 1) if diagonal; the initial x₀ is 0. The
    state is (B, 1, n) if dense and (B, n, 1) if diagonal, one row per block of A.
    """

    Config = VanillaConfig
    methods: ClassVar[tuple[str, ...]] = tuple(METHODS)

    def __init__(self, width_in: int, config: VanillaConfig) -> None:
        super().__init__()
        n = config.width
        self.is_dense = config.transition == "dense"
        self.A = nn.Parameter(torch.randn(n, n) / math.sqrt(n) if self.is_dense else 2 * torch.rand(n) - 1)
        self.B = nn.Parameter(torch.randn(n, width_in) / math.sqrt(width_in))
        self.x0 = nn.Parameter(torch.zeros(n))

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The sizes of the blocks of A: one block of size n, or n of size 1."""
        n = len(self.x0)
        return (n,) if self.is_dense else (1,) * n

    @property
    def has_tables(self) -> bool:
        """Whether letters have transition tables: True, because A is the same for all letters."""
        return True

    @property
    def family(self) -> str | None:
        """The family of input-independent layers: "lti", or "lti-diagonalisable" with a diagonal A."""
        return "lti" if self.is_dense else "lti-diagonalisable"

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return A and B u in H blocks of size b: u (…, d) -> (…, H, b, b), (…, H, b)."""
        n_heads, b = self.n_heads, self.block_sizes[0]
        A = self.A.view(n_heads, b, b).expand(*u.shape[:-1], n_heads, b, b)
        return A, linear(u, self.B).unflatten(-1, (n_heads, b))

    def initial_state(self, batch: int) -> Tensor:
        """Return the initial state x₀ for each word: (B, H, b)."""
        return self.x0.view(self.n_heads, -1).expand(batch, -1, -1)

    def emit(self, state: Tensor) -> Tensor:
        """Return the state as a vector: (B, H, b) -> (B, n)."""
        return state.flatten(1)

    def forward(self, u: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return the outputs and the last state: u (B, T, d), state (B, H, b) -> (B, T, n), (B, H, b).

        `method` is one of `scan`, or "letters" for "auto".
        """
        if self.is_dense and method in ("auto", "letters", "sequential"):
            x = scan_constant(self.A, linear(u, self.B), state.flatten(1))
        else:
            x = scan(*self.tables(u), state, "auto" if method == "letters" else method).flatten(-2)
        return x, x[:, -1].view_as(state) if x.shape[1] else state


def scan_constant(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Return all states of x_k = A x_{k−1} + v_k: A (n, n), v (B, T, n), x0 (B, n) -> x_1 … x_T (B, T, n).

    >>> swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> scan_constant(swap, torch.zeros(1, 3, 2), torch.tensor([[1.0, 2.0]]))[0].tolist()
    [[2.0, 1.0], [1.0, 2.0], [2.0, 1.0]]
    """
    x, states = x0, []
    for v_k in v.unbind(1):
        x = linear(x, A) + v_k
        states.append(x)
    return torch.stack(states, dim=1) if states else v
