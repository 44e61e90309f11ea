"""The paper's layer: block-diagonal, input-dependent transitions (Eqs. 5 and 6).

`hard_scan` scans one-hot transitions by letter, computed from their logits: states are indices, and no matrix is
formed. The forward pass is a lookup, x_k = e_{f(a_k, q_{k−1})}. The backward pass is one, too: with e_k the gradient of
the loss with respect to x_k,

    g_k = e_k + A_{k+1}ᵀ g_{k+1},    (A_{k+1}ᵀ g)[j] = g[f(a_{k+1}, j)].

The gradient of A(a) is the sum of g_k in the column q_{k−1}, over every k with a_k = a. The softmax of the
straight-through rule is applied once to these sums. So each token costs H·b operations, not H·b², and the result is
that of `scan_tokens` with `normalise(logits, "onehot")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn
from torch.autograd import Function

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.compiled import DTYPES, Context, at_once, cuts, thread_count, typed_once_differentiable
from fsa2lrnn.nn.gate import Gate, check_kind, new_gate, one_hot_letters
from fsa2lrnn.nn.layers.base import (
    Columns,
    Layer,
    LayerConfig,
    Shape,
    check_positive,
    check_temperature,
    check_width,
    maps_closed,
    starts_closed,
)
from fsa2lrnn.nn.normalise import TEMPERATURE, keeps, normalise, one_hot_rows
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers
from fsa2lrnn.nn.scans import GPU_METHODS, GPU_TOKEN_METHODS, METHODS, TOKEN_METHODS, check_method, scan, scan_tokens


@dataclass(frozen=True)
class BlockLayerConfig(LayerConfig):
    """The configuration of H = len(block_sizes) dense blocks whose transitions come from gates.

    `transition_hidden` and `value_hidden` are the hidden widths of gates Linear–ReLU–Linear (`gate` "relu"). With
    `gate` "table" the transitions are free numbers for each unit vector that is read: in a first layer for each letter,
    embedded one-hot. `temperature` is that of the softmax in the backward pass of the column rule "onehot".
    """

    block_sizes: tuple[int, ...]
    transition_hidden: int
    value_hidden: int
    gate: str = "relu"
    temperature: float = TEMPERATURE

    def __post_init__(self) -> None:
        if not self.block_sizes or min(self.block_sizes) < 1:
            raise UnsupportedFormat(
                f"block_sizes = {self.block_sizes}: give at least one block, each of size 1 or more"
            )
        check_positive(self, "transition_hidden", "value_hidden")
        check_width(self.width)
        check_kind(self.gate)
        check_temperature(self.temperature)

    @property
    def width(self) -> int:
        return len(self.block_sizes) * max(self.block_sizes)

    @property
    def entries(self) -> int:
        return max(self.width * max(self.block_sizes), self.transition_hidden, self.value_hidden)

    def check_columns(self, columns: Columns) -> None:
        """Raise `UnsupportedFormat` for blocks of several sizes under the rule "paper"."""
        if columns.rule == "paper" and len(set(self.block_sizes)) > 1:
            raise UnsupportedFormat(f"block_sizes = {self.block_sizes}: the paper rule takes blocks of one size")

    @classmethod
    def options(cls) -> tuple[str, ...]:
        return ("gate", "temperature")

    @classmethod
    def of_shape(cls, shape: Shape, options: Mapping[str, Any]) -> Self:
        cls.refuse_unknown(options)
        return cls((shape.block,) * shape.heads, shape.width * shape.block, shape.width, **options)


def scan_states(
    layer: Layer, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the states x_1 … x_T, flattened, and the last state of a layer that has tables.

    Shapes: u (B, T, d), or rows (N, d) with `index` (B, T); state (B, H, b) -> (B, T, H·b), (B, H, b).
    """
    check_method(method, METHODS | GPU_METHODS | TOKEN_METHODS)
    # Scans in plain torch are twice differentiable: use the method of the column rule that is so, too.
    A, v = layer.tables(u, "auto" if method in ("auto", "fused", "triton") else "reference")
    if index is None:
        x = scan(A, v, state, "sequential" if method == "letters" else method)
    elif method == "auto" or method in TOKEN_METHODS | GPU_TOKEN_METHODS:
        x = scan_tokens(index, A, v, state, method)
    else:
        x = scan(A[index], v[index], state, method)
    return x.flatten(-2), x[:, -1] if x.shape[1] else state


class AffineLayer(Layer):
    """The base class of layers x_k = A(u_k) x_{k-1} + v(u_k) in H blocks, where gates compute A and v.

    Parameters: the gates `transition`, whose outputs become A, and `value`, those of v, None for v = 0; `x0` (H, b),
    the initial state. Blocks smaller than the largest are padded; their padding is masked, so it has no effect and no
    gradient.
    """

    takes_index: ClassVar[bool] = True
    methods: ClassVar[tuple[str, ...]] = tuple(METHODS)
    mask: Tensor

    def __init__(self, block_sizes: tuple[int, ...], transition: Gate, value: Gate | None) -> None:
        super().__init__()
        self._block_sizes = block_sizes
        n_heads, b = len(block_sizes), max(block_sizes)
        self.transition, self.value = transition, value  # in this order: x0 is drawn after them
        self.x0 = nn.Parameter(torch.randn(n_heads, b))
        self.register_buffer("mask", torch.arange(b) < torch.tensor(block_sizes)[:, None], persistent=False)  # (H, b)

    @classmethod
    def embedding(cls, config: LayerConfig, n_letters: int, dim: int) -> nn.Module:
        is_table = getattr(config, "gate", "relu") == "table"
        return one_hot_letters(n_letters, dim) if is_table else super().embedding(config, n_letters, dim)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        return self._block_sizes

    @property
    def has_tables(self) -> bool:
        return True

    def initial_state(self, batch: int) -> Tensor:
        return (self.x0 * self.mask).expand(batch, *self.x0.shape)

    def emit(self, state: Tensor) -> Tensor:
        """Return the output in a state, the state flattened: (B, H, b) -> (B, H·b)."""
        return state.flatten(-2)

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return outputs x_1 … x_T, flattened, and the last state: u (B,T,d), state (B,H,b) -> (B,T,H·b), (B,H,b).

        With `index`, int64 (B,T), the rows of u (N,d) are the distinct inputs, and index[i, k] is that of step k of
        word i: A and v are then computed N times, not B·T times. Without it, "letters" means "sequential".
        """
        return scan_states(self, u, state, method, index)

    def starts_exact(self) -> bool:
        return starts_closed(self.initial_state(1)[0], self.mask)


class BlockLayer(AffineLayer):
    """The paper's layer x_k = A(u_k) x_{k-1} + v(u_k), with H blocks of size b and A, v from gates (Eqs. 5, 6).

    The model's column rule applies to the output of the gate `transition`. Under "onehot" that output holds the logits
    of one-hot columns, x₀ is one-hot at the largest entry of `x0` in each block, and v = 0: each block is an automaton
    over the inputs, in training and in evaluation (T50).
    """

    Config = BlockLayerConfig
    holds_maps: ClassVar[bool] = True

    def __init__(self, width_in: int, config: BlockLayerConfig, rule: str, p: float) -> None:
        self.rule, self.p, self.temperature = rule, p, config.temperature
        written = config.width * max(config.block_sizes)
        transition = new_gate(config.gate, width_in, config.transition_hidden, written)
        value = None if rule == "onehot" else Gate(width_in, config.value_hidden, config.width)
        super().__init__(config.block_sizes, transition, value)

    @classmethod
    def build(cls, width_in: int, config: BlockLayerConfig, columns: Columns) -> Self:
        return cls(width_in, config, *columns)

    @classmethod
    def is_finite(cls, rule: str) -> bool:
        return rule == "onehot"

    @property
    def family(self) -> str | None:
        b = max(self.block_sizes)
        return f"block({b})" if b > 1 else "diagonal[-1,1]" if self.rule == "clip" else None

    def tables(self, u: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return A(u) and v(u): (…, d) -> (…, H, b, b) and (…, H, b). `method` is that of `normalise`."""
        A, v = self._written(u)
        return normalise(A, self.rule, self.p, method, self.temperature), v

    def initial_state(self, batch: int) -> Tensor:
        if self.rule != "onehot":
            return super().initial_state(batch)
        # Padding has the logit −∞, so it is never the state.
        x0 = one_hot_rows(self.x0.masked_fill(~self.mask, -torch.inf), self.temperature)
        return x0.expand(batch, *x0.shape)

    def forward(
        self, u: Tensor, state: Tensor, method: str = "auto", index: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return outputs and last state as in `AffineLayer`; under "onehot", by `hard_scan` where possible."""
        if self.has_maps and index is not None and method in ("auto", "fused"):
            # The kernel needs the logits themselves, because it applies the softmax once per letter to summed
            # gradients.
            logits = self._written(u)[0]
            if takes(index, logits, state):
                x = hard_scan(index, logits, state, self.temperature)
                return x.flatten(-2), x[:, -1] if x.shape[1] else state
        return super().forward(u, state, method, index)

    @property
    def written_by(self) -> Columns:
        return Columns(self.rule, self.p)

    @property
    def has_maps(self) -> bool:
        return self.rule == "onehot" and self.value is None

    def maps(self, u: Tensor) -> Tensor:
        """Return the row of the 1 in each column: (N, d) -> int64 (N, H, b)."""
        if not self.has_maps:
            return super().maps(u)
        with torch.no_grad():
            return self._written(u)[0].argmax(-2)

    def _written(self, u: Tensor) -> tuple[Tensor, Tensor]:
        n_heads, b = self.mask.shape
        A = self.transition(u).unflatten(-1, (n_heads, b, b))
        v = A.new_zeros(*A.shape[:-2], b) if self.value is None else self.value(u).unflatten(-1, (n_heads, b))
        if min(self.block_sizes) < b:
            if self.rule == "onehot":  # so that a state of the padding is never the next one
                return A.masked_fill(~self.mask[:, :, None], -torch.inf), v
            A, v = A.where(self.mask[:, :, None] & self.mask[:, None, :], 0), v.where(self.mask, 0)
        return A, v

    def rounded_tables(self, u: RoundedNumbers) -> tuple[RoundedNumbers, RoundedNumbers]:
        """Return bounds of A and v for every evaluation of the gates and both methods of the column rule."""
        n_heads, b = self.mask.shape
        mask = self.mask.cpu()
        A = self.transition.rounded(u).unflatten((n_heads, b, b))
        if self.value is None:
            v = RoundedNumbers.exact(torch.zeros(*A.mid.shape[:-2], b), u.kind)
        else:
            v = self.value.rounded(u).unflatten((n_heads, b)).where(mask)
        if self.rule == "onehot":
            # Rows outside the block are excluded from the choice.
            return A.largest(mask[:, :, None]), v
        A = A.where(mask[:, :, None] & mask[:, None, :])
        # T2: no method of the rule changes these columns, so they stay exact.
        if A.is_exact and keeps(A.mid, self.rule):
            return A, v
        return A.columns(self.rule, self.p), v

    def is_lookup(self, u: Tensor) -> bool:
        return self.rule in ("none", "onehot") and all(gate.is_lookup(u) for _, gate in self.gates)

    def is_exact(self, u: Tensor, limit: float) -> bool:
        """Return whether scans of inputs u (N, d) round nothing: integer gates, maps, resets, unchanged columns.

        In detail: each gate adds integers, each block is a map or a reset (x, 1 − x, 0 or 1 for size 1), and no method
        of the column rule changes it. Under "onehot" it suffices that rounding changes no column.
        """
        if self.rule == "onehot":
            A, v = self.rounded_tables(RoundedNumbers.exact(u))
            return A.is_exact and v.is_exact and maps_closed(A.mid, v.mid, self.mask.cpu())
        if not all(gate.is_exact(u, limit) for _, gate in self.gates):
            return False
        A, v = self._written(u)  # (N, H, b, b), (N, H, b)
        # Integer gates, unchanged columns and closed maps: T1 then covers every scan.
        return keeps(A, self.rule) and maps_closed(A, v, self.mask)

    def set_map(self, cell: int, head: int, rows: Tensor) -> None:
        size = self.block_sizes[head]
        block = self._block(cell, head)[:size, :size]
        block.zero_()
        block[rows, torch.arange(size)] = 1

    def _block(self, cell: int, head: int) -> Tensor:
        n_heads, b = self.mask.shape
        # For the unit vector e_cell a lookup gate outputs column `cell` of W2, which holds the blocks of all heads;
        # this is a view.
        return self.transition.weights.W2.detach().view(n_heads, b, b, -1)[head, :, :, cell]


_PASSES = 4  # multiplications that an entry of a state is worth, about


def takes(index: Tensor, logits: Tensor, state: Tensor) -> bool:
    """Return whether the kernels support device and dtype, and states are one-hot: (B,T), (N,H,b,b), (B,H,b)."""
    if any(tensor.device.type != "cpu" for tensor in (index, logits, state)):
        return False
    return logits.dtype in DTYPES and state.dtype == logits.dtype and _is_one_hot(state)


def hard_scan(index: Tensor, logits: Tensor, state: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """Return x_1 … x_T with A(a) = `one_hot_columns(logits[a])`, v = 0: (B,T), (N,H,b,b), one-hot (B,H,b) -> (B,T,H,b).

    Differentiable once, in the logits and in the state. Raises `UnsupportedFormat` unless `takes`.

    >>> swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).reshape(1, 1, 2, 2)
    >>> hard_scan(torch.tensor([[0, 0, 0]]), swap, torch.tensor([[[1.0, 0.0]]])).argmax(-1).flatten().tolist()
    [1, 0, 1]
    """
    if not takes(index, logits, state):
        raise UnsupportedFormat(
            f"logits {str(logits.dtype).removeprefix('torch.')} on {logits.device}, states "
            f"{str(state.dtype).removeprefix('torch.')} on {state.device}: the hard scan takes float32 or float64 on "
            "the CPU, the same for both, and one-hot states; use scan_tokens"
        )
    return _HardScan.apply(index, logits, state, temperature)  # type: ignore[no-any-return]


def _is_one_hot(state: Tensor) -> bool:
    return bool(((state != 0).sum(-1) == 1).all() and (state.amax(-1) == 1).all()) if state.numel() else True


class _HardScan(Function):
    @staticmethod
    def forward(ctx: Context, index: Tensor, logits: Tensor, state: Tensor, temperature: float) -> Tensor:
        (batch, length), (heads, b) = index.shape, state.shape[1:]
        rows = logits.detach().argmax(-2)  # (N, H, b)
        states = torch.empty(batch, length + 1, heads, dtype=torch.int64)
        states[:, 0] = state.detach().argmax(-1)
        x = state.new_empty(batch, length, heads, b)
        arrays = [tensor.numpy() for tensor in (index.contiguous(), rows, states, x)]
        n_threads = thread_count(x.numel())
        at_once([partial(_forward, *arrays, *part) for part in cuts(batch, n_threads)], n_threads)
        ctx.save_for_backward(index, rows, states, logits)
        ctx.temperature = temperature
        return x

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Context, dx: Tensor) -> tuple[Tensor | None, ...]:
        index, rows, states, logits = ctx.saved_tensors
        batch, _, heads, b = dx.shape
        # The gradient of A(a) is summed transposed, so that the entries of one column of A are neighbours in memory.
        of_columns = torch.zeros(*rows.shape, b, dtype=dx.dtype)  # (N, H, column, row)
        of_state = torch.zeros(batch, heads, b, dtype=dx.dtype)
        arrays = [tensor.numpy() for tensor in (index.contiguous(), rows, states, dx.contiguous())]
        n_threads = thread_count(dx.numel() * _PASSES)
        results = of_columns.numpy(), of_state.numpy()
        # Threads divide the heads, not the words: all words add to the same table, and heads do not share an entry of
        # it.
        at_once([partial(_backward, *arrays, *results, *part) for part in cuts(heads, n_threads)], n_threads)
        of_logits = _through_softmax(logits, of_columns.mT, ctx.temperature) if ctx.needs_input_grad[1] else None
        return None, of_logits, of_state, None


def _through_softmax(logits: Tensor, gradient: Tensor, temperature: float) -> Tensor:
    p = (logits / temperature).softmax(-2)
    # The Jacobian of a softmax over rows, p_i (δ_ij − p_j) / temperature, is applied without forming it.
    weighted = p * gradient
    return weighted.addcmul_(p, weighted.sum(-2, keepdim=True), value=-1).div_(temperature)


@njit(cache=True, nogil=True)
def _forward(index, rows, states, x, first, last):
    """Write states (B,T+1,H), of which the first are set, and x (B,T,H,b), for the words first … last − 1."""
    _, length, heads, _ = x.shape
    for i in range(first, last):
        x[i] = 0
        for h in range(heads):
            q = states[i, 0, h]
            for k in range(length):
                # `rows[a, h, j]` is the row of the 1 in column j of A(a): the next state after j.
                q = rows[index[i, k], h, q]
                states[i, k + 1, h] = q
                x[i, k, h, q] = 1


@njit(cache=True, nogil=True)
def _backward(index, rows, states, dx, of_columns, of_state, first, last):
    """Add to of_columns (N,H,b,b), whose rows are A's columns; write of_state (B,H,b), for heads first … last − 1."""
    batch, length, heads, b = dx.shape
    flat_rows, flat_dx, flat_columns = rows.reshape(-1), dx.reshape(-1), of_columns.reshape(-1)
    g, after = np.empty(b, dx.dtype), np.empty(b, dx.dtype)
    for h in range(first, last):
        for i in range(batch):
            g[:] = 0
            for k in range(length - 1, -1, -1):
                # Offsets into the flat arrays: the map of this letter and head, and the gradient of this step's
                # state.
                map_at, dx_at = (index[i, k] * heads + h) * b, ((i * length + k) * heads + h) * b
                # Only the column of the state before the letter had an effect on x_k, so only this column gets a
                # gradient.
                column_at = (map_at + states[i, k, h]) * b
                for j in range(b):
                    y = g[j] + flat_dx[dx_at + j]
                    after[j] = y
                    flat_columns[column_at + j] += y
                for j in range(b):
                    # A_kᵀ g has at j the entry of g at the row to which column j leads: a lookup instead of a
                    # product.
                    g[j] = after[flat_rows[map_at + j]]
            of_state[i, h] = g
