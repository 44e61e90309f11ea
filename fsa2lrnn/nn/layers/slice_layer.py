"""SLiCE (Walker et al. 2025): y_k = y_{k−1} + A(u) y_{k−1}, A linear in (1, u)·dt; the first letter sets y = W u + b.

A is block-diagonal, sparse, diagonal, or a Walsh–Hadamard matrix times a diagonal. Parameters have the names of
LinearCDE in structured-linear-cdes; that code also limits each change of y to ±10¹¹, which is left out here.

The reset at the first letter is implemented by a coordinate f of each block, 1 at the start and 0 after:
y ← (I + A) y + f (W u + b).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import selective_rounding as rounding
from fsa2lrnn.nn.layers.base import Layer, LayerConfig, check_one_of, check_positive, check_width
from fsa2lrnn.nn.layers.block import scan_states
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers
from fsa2lrnn.nn.scans import METHODS, scan

FORMS = ("block", "sparse", "hadamard", "diagonal")


@dataclass(frozen=True)
class SliceConfig(LayerConfig):
    """The configuration of a SLiCE layer with heads·block states.

    Args:
        form: "block" for `heads` blocks of `block` states, "diagonal", "sparse" for a share of the entries of one
            matrix, "hadamard" for H diag(·), H the Walsh–Hadamard matrix: heads·block is then a power of two.
        density: the share of entries of a sparse A that are trained.
        dt: the factor of the input.
        std: the standard deviation of the initial weights.

    Raises `UnsupportedFormat` for values out of range.
    """

    heads: int
    block: int
    form: str = "block"
    density: float = 1.0
    dt: float = 1.0 / 40
    std: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self, "heads", "block")
        check_one_of(self, form=FORMS)
        if self.form == "hadamard" and self.states & (self.states - 1):
            raise UnsupportedFormat(f"heads·block = {self.states}: a Walsh–Hadamard matrix needs a power of two")
        if not (0 < self.density <= 1 and 0 < self.dt < math.inf and 0 <= self.std < math.inf):
            raise UnsupportedFormat(
                f"density = {self.density}, dt = {self.dt}, std = {self.std}: they are out of range"
            )
        check_width(self.width)

    @property
    def states(self) -> int:
        """The number of entries of y."""
        return self.heads * self.block

    @property
    def blocks(self) -> tuple[int, int]:
        """The number of blocks and their size, without f."""
        return {"block": (self.heads, self.block), "diagonal": (self.states, 1)}.get(self.form, (1, self.states))

    @property
    def width(self) -> int:
        """The number of outputs: y and f of each block."""
        return self.states + self.blocks[0]

    @property
    def entries(self) -> int:
        """The number of entries of A(u)."""
        return self.width * (self.blocks[1] + 1)


class SliceLayer(Layer):
    """A SLiCE layer, y ← y + A(u) y with A linear in (1, u), after a first letter that sets y = W u + b.

    The output is the state (B, H, b + 1), flattened: b entries of y for each of H blocks, and f, 1 before the first
    letter and 0 after it. For the form "sparse", the boolean buffer `mask` marks the trained entries of `vf_A`.
    """

    Config = SliceConfig
    takes_index: ClassVar[bool] = True
    methods: ClassVar[tuple[str, ...]] = tuple(METHODS)
    mask: Tensor

    def __init__(self, width_in: int, config: SliceConfig) -> None:
        super().__init__()
        self.config = config
        n, (heads, size) = config.states, config.blocks
        self.init_layer = nn.Linear(width_in, n)
        nn.init.normal_(self.init_layer.weight, std=config.std)
        nn.init.normal_(self.init_layer.bias, std=config.std)
        rows = n if config.form in ("diagonal", "hadamard") else heads * size * size
        scale = config.std / math.sqrt(1 if config.form in ("diagonal", "hadamard") else size)
        self.vf_A = nn.Parameter(scale * torch.randn(width_in + 1, rows))
        if config.form == "sparse":
            self.register_buffer("mask", torch.rand(width_in + 1, rows) < config.density)

    @property
    def has_tables(self) -> bool:
        """True for every form."""
        return True

    @property
    def family(self) -> str | None:
        """The family "block(b + 1)" of blocks (y, f) for the form "block", None for other forms."""
        return f"block({self.config.block + 1})" if self.config.form == "block" else None

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The size b + 1 of each block (y, f)."""
        heads, size = self.config.blocks
        return (size + 1,) * heads

    def initial_state(self, batch: int) -> Tensor:
        """Return y = 0 and f = 1: (B, H, b + 1)."""
        heads, size = self.config.blocks
        start = self.vf_A.new_zeros(batch, heads, size + 1)
        start[:, :, -1] = 1
        return start

    def emit(self, state: Tensor) -> Tensor:
        """Return the state: (B, H, b + 1) -> (B, width)."""
        return state.flatten(1)

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return ((I + A, W u + b), (0, 0)) and v = 0: (…, d) -> (…, H, b + 1, b + 1), (…, H, b + 1)."""
        A = torch.cat([self._transition(u), self._first(u).unsqueeze(-1)], dim=-1)
        # The row of f is zero: f is 1 before the first letter and 0 after it, so W u + b is added once.
        A = pad(A, (0, 0, 0, 1))
        return A, A.new_zeros(A.shape[:-1])

    def _first(self, u: Tensor) -> Tensor:
        """Return W u + b, which the first letter adds: (…, d) -> (…, H, b)."""
        return self.init_layer(u).unflatten(-1, self.config.blocks)

    def _transition(self, u: Tensor) -> Tensor:
        """Return I + A, whose entries are linear in (1, u): (…, d) -> (…, H, b, b)."""
        form, dt, (heads, size) = self.config.form, self.config.dt, self.config.blocks
        if form == "hadamard":
            weight = (walsh_hadamard(size).to(u)[..., None] * self.vf_A.tanh().T).flatten(0, 1)
        else:
            weight = (self.vf_A * self.mask if form == "sparse" else self.vf_A).T
        weight = dt * weight
        same = torch.eye(size, dtype=u.dtype, device=u.device).expand(heads, -1, -1).flatten()
        return linear(u, weight[:, 1:], weight[:, 0] + same).unflatten(-1, (heads, size, size))

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """Return bounds of the tables, which also cover that `forward` may compute A(u) y without A(u)."""
        form, (heads, size) = self.config.form, self.config.blocks
        if form == "hadamard":
            diagonal = rounding.tame(torch.tanh, RoundedNumbers.exact(self.vf_A, u.kind))[:, None, :]
            H = walsh_hadamard(size)
            # The format rounds 1/√n, so the entries of H are known up to that.
            H = RoundedNumbers(H, 2 * u.kind.u * H.abs(), u.kind)
            weight = rounding.shaped(lambda x: x.flatten(1), H * diagonal)
        else:
            weight = RoundedNumbers.exact(self.vf_A * self.mask if form == "sparse" else self.vf_A, u.kind)
        same = torch.eye(size, dtype=torch.float64)
        # The identity belongs to the row of weights of the constant input 1.
        added = pad(same.expand(heads, -1, -1).flatten()[None], (0, 0, 0, len(weight.mid) - 1))
        weight = weight.scaled(self.config.dt) - RoundedNumbers.exact(-added, u.kind)
        ones = RoundedNumbers.exact(torch.ones(*u.mid.shape[:-1], 1), u.kind)
        inputs = rounding.stacked(partial(torch.cat, dim=-1), ones, u)
        A = (inputs @ weight).unflatten((heads, size, size))
        if form == "hadamard":
            # y + H (d ⊙ y) is a product with tables that differ from I + A by so many roundings of I and of A.
            A = A.of(A.mid, A.off + 2 * (size + 8) * u.kind.u * (A.size + 2 * same))
        elif form == "sparse":
            # So does the sum over the products of an input and an entry of y: by a rounding of each of its terms.
            terms = (inputs.size @ weight.size).unflatten(-1, (heads, size, size))
            A = A.of(A.mid, A.off + 2 * (weight.mid.shape[0] * size + 8) * u.kind.u * (terms + 2 * same))
        first = u.linear(self.init_layer.weight, self.init_layer.bias).unflatten((heads, size))
        A = rounding.stacked(partial(torch.cat, dim=-1), A, first[..., None])
        A = rounding.shaped(lambda x: pad(x, (0, 0, 0, 1)), A)
        return A, RoundedNumbers.exact(torch.zeros(A.mid.shape[:-1]), u.kind)

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return all states and the last state: u (B, T, d), or rows (N, d) with index (B, T)."""
        if index is not None or method != "auto" or self.config.form == "diagonal" or not u.shape[1]:
            return scan_states(self, u, state, method, index)
        # f is 0 after the first letter, which alone adds W u + b.
        y, f = state[..., :-1], state[..., -1:]
        first = self._first(u[:, 0]) * f
        if self.config.form == "hadamard":
            y = self._transformed(u, y[:, 0], first[:, 0]).unsqueeze(2)
        elif self.config.form == "sparse" and 1 < u.shape[1] < len(u):  # one letter is computed alike for any batch
            y = self._summed(u, y[:, 0], first[:, 0]).unsqueeze(2)
        else:
            A = self._transition(u)
            y = scan(A, pad(first.unsqueeze(1), (0, 0, 0, 0, 0, u.shape[1] - 1)), y)
        x = pad(y, (0, 1))
        return x.flatten(-2), x[:, -1]

    def _transformed(self, u: Tensor, y: Tensor, first: Tensor) -> Tensor:
        """Return the states y + H (d ⊙ y), without the product H diag(d): (B, T, d), (B, n) -> (B, T, n)."""
        weight, H = self.config.dt * self.vf_A.tanh(), walsh_hadamard(y.shape[-1]).to(u)
        states = list[Tensor]()
        for d in torch.addmm(weight[0], u.flatten(0, 1), weight[1:]).view(*u.shape[:2], -1).unbind(1):
            # H is symmetric, so rows times H are H times columns.
            y = torch.addmm(y, d * y, H)
            # Only the first letter read here may be the word's first, and `first` is 0 unless it is.
            y = y if states else y + first
            states.append(y)
        return torch.stack(states, 1)

    def _summed(self, u: Tensor, y: Tensor, first: Tensor) -> Tensor:
        """Return the states y + Σ_j u_j A_j y, without A(u), as fast for many words: (B, T, d), (B, n) -> (B, T, n)."""
        n = y.shape[-1]
        # Rows (j, k) and columns i: entry (i, k) of the matrix of the j-th input, the first of which is 1.
        weight = (self.config.dt * self.vf_A * self.mask).view(-1, n, n).transpose(1, 2).flatten(0, 1)
        states = list[Tensor]()
        for inputs in pad(u, (1, 0), value=1.0).unbind(1):
            y = torch.addmm(y, (inputs.unsqueeze(2) * y.unsqueeze(1)).flatten(1), weight)
            y = y if states else y + first
            states.append(y)
        return torch.stack(states, 1)


def walsh_hadamard(n: int) -> Tensor:
    """Return the Walsh–Hadamard matrix of order n, a power of two, in Sylvester's order, over √n.

    >>> walsh_hadamard(2).mul(2**0.5).round().tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    H = torch.ones(1, 1, dtype=torch.float64)
    while len(H) < n:
        H = torch.cat([torch.cat([H, H], 1), torch.cat([H, -H], 1)])
    return H / math.sqrt(n)
