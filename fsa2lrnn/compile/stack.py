"""Stacked layers: each layer's A and v come from gates that read the token and the states of the layers below.

    x^l_k = A_l(u^l_k) x^l_{k-1} + v_l(u^l_k),    u^l_k = [e_{c(a_k)}, x^1_k, …, x^{l-1}_k]    (docs/theory.md §6)

With a *token shift* the gates read [u^l_k, u^l_{k-1}] instead, where u^l_0 = [0, x^1_0, …, x^{l-1}_0]: before the first
letter there is no token, and the layers below are in their initial states. No gate may read the previous letter, so the
states of all layers at k determine the future.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.compile.integer_tables import ReluGate, check_cells, freeze
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import InvalidMachine, NotExact

_EXACT = 2**53
_CHUNK = 2_000_000  # float64 entries of a gate's hidden units or output that are computed at a time


@dataclass(frozen=True, eq=False)
class GatedLayer:
    """A layer x_k = A(u_k) x_{k-1} + v(u_k) of H blocks; unequal blocks are padded with zeros to the largest, b.

    Args:
        transition: the gate from u, shape (D,), to the flattened A(u), shape (H·b·b,).
        value: the gate from u to the flattened v(u), shape (H·b,).
        x0: int, shape (H, b).
        block_sizes: the H sizes; the largest is b.

    Raises `InvalidMachine` if the shapes do not agree, or an entry of the padding is not zero.
    """

    transition: ReluGate
    value: ReluGate
    x0: np.ndarray
    block_sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        n_heads, b = len(self.block_sizes), max(self.block_sizes, default=0)
        expected = (n_heads * b * b, n_heads * b, (n_heads, b), self.width_in)
        actual = (self.transition.width_out, self.value.width_out, self.x0.shape, self.value.width_in)
        if actual != expected or min(self.block_sizes, default=0) < 1:
            raise InvalidMachine(
                f"widths of A and v, shape of x0 and width of the value's input are {actual}, but blocks of sizes "
                f"{self.block_sizes} and a transition that sees {self.width_in} ask for {expected}"
            )
        inside = np.arange(b) < np.array(self.block_sizes)[:, None]  # (H, b)
        # Masks of the padding in the flattened v, (H·b,), and A, (H·b·b,).
        outside_v, outside_A = ~inside.ravel(), ~(inside[:, :, None] & inside[:, None, :]).ravel()
        for gate, outside in [(self.transition, outside_A), (self.value, outside_v)]:
            if gate.W2[outside].any() or gate.b2[outside].any():
                raise InvalidMachine(f"a gate writes outside blocks of sizes {self.block_sizes}: padding is zero")
        if self.x0[~inside].any():
            raise InvalidMachine(f"x0 has entries outside blocks of sizes {self.block_sizes}: padding is zero")
        freeze(self.x0)

    @property
    def n_heads(self) -> int:
        """H, the number of blocks."""
        return len(self.block_sizes)

    @property
    def width_in(self) -> int:
        """D, the width of the gates' input."""
        return self.transition.width_in

    @property
    def width(self) -> int:
        """H·b, the width of the layer's state."""
        return self.x0.size

    @property
    def n_units(self) -> int:
        """The number of hidden units of both gates."""
        return self.transition.n_units + self.value.n_units

    def move(self, A: np.ndarray, v: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return A x + v for N states and C cells: float64 (N, C, H·b·b), (N, C, H·b), (N, H·b) -> (N, C, H·b).

        Raises `NotExact` if an entry could reach 2⁵³.
        """
        n_heads, b = self.x0.shape
        # An upper bound of every sum in A x + v, formed before the product so that float64 cannot round unnoticed.
        largest = b * np.abs(A).max(initial=0) * np.abs(x).max(initial=0) + np.abs(v).max(initial=0)
        if largest >= _EXACT:
            raise NotExact(f"A x + v may reach {largest:.3g}, but float64 is exact to 2^53: states grow without bound")
        moved = np.einsum("nchij,nhj->nchi", A.reshape(*A.shape[:2], n_heads, b, b), x.reshape(-1, n_heads, b))
        return moved.reshape(v.shape) + v


@dataclass(frozen=True, eq=False)
class GatedStack(Brief):
    """A stack of layers, the gates of each of which read the token and the states of the layers below.

    A state is the concatenation of the layers' states, int, shape (W,).

    Args:
        cell: the cell of each letter, int, shape (|Σ|,), in 0 … C−1; letters that act alike share one.
        layers: from the bottom up; each reads C entries for the token and the states below, twice with a token shift.
        token_shift: whether the gates also read their input at k−1.

    Raises `InvalidMachine` if the widths do not agree or a gate reads the previous letter.
    """

    cell: np.ndarray
    layers: tuple[GatedLayer, ...]
    token_shift: bool

    def __post_init__(self) -> None:
        if not self.layers:
            raise InvalidMachine("a stack needs at least one layer")
        check_cells(self.cell, self.n_cells)
        for i, layer in enumerate(self.layers):
            width = self.n_cells + self._below[i]
            if layer.width_in != (width * 2 if self.token_shift else width):
                raise InvalidMachine(
                    f"layer {i} sees {layer.width_in} entries, but {self.n_cells} cells and {self._below[i]} entries "
                    f"of lower states{', twice for the token shift,' if self.token_shift else ''} are there"
                )
            for gate in (layer.transition, layer.value):
                if gate.W1[:, width : width + self.n_cells].any():
                    raise InvalidMachine(f"layer {i} looks at the letter before: it may look at lower states only")
        freeze(self.cell)

    @property
    def n_cells(self) -> int:
        """C, the number of cells."""
        return self.layers[0].width_in // (2 if self.token_shift else 1)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The sizes of all blocks, from the bottom layer up."""
        return tuple(size for layer in self.layers for size in layer.block_sizes)

    @property
    def n_heads(self) -> int:
        """The number of blocks in all layers."""
        return len(self.block_sizes)

    @property
    def width(self) -> int:
        """W, the width of a state."""
        return sum(layer.width for layer in self.layers)

    def initial(self) -> np.ndarray:
        """Return the initial states of all layers: int64, shape (W,)."""
        return np.concatenate([layer.x0.reshape(-1) for layer in self.layers]).astype(np.int64)

    def step(self, x: np.ndarray) -> np.ndarray:
        """Return the state after each of the letters, for every state: int64 (N, W) -> (N, |Σ|, W).

        Raises `NotExact` if an integer could reach 2⁵³.
        """
        gates = [gate for layer in self.layers for gate in (layer.transition, layer.value)]
        widest = max(max(gate.width_out, gate.n_units) for gate in gates)
        rows = max(1, _CHUNK // (self.n_cells * widest))
        after = np.empty((len(x), self.n_cells, self.width), np.int64)
        for start in range(0, len(x), rows):
            after[start : start + rows] = self._step(x[start : start + rows].astype(np.float64))
        return after[:, self.cell]

    def _step(self, x: np.ndarray) -> np.ndarray:
        after = np.empty((len(x), self.n_cells, self.width))
        # Layers are computed upwards: `after` holds the new states of the lower layers already, which this layer
        # reads as `now`.
        for below, layer in zip(self._below, self.layers, strict=True):
            now, before = after[:, :, :below], x[:, :below]
            A, v = (self._gate(gate, now, before) for gate in (layer.transition, layer.value))
            own = slice(below, below + layer.width)
            after[:, :, own] = layer.move(A, v, x[:, own])
        return after

    def _gate(self, gate: ReluGate, now: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return a gate's output for C cells and N states, (N, C, E); lower states `now` (N, C, w), `before` (N, w)."""
        gate.check_exact(int(max(1, np.abs(now).max(initial=0), np.abs(before).max(initial=0))))
        W1, b1, _, _ = gate.weights
        n_cells, below = self.n_cells, before.shape[1]
        # The one-hot feature of cell c selects column c of W1. The second block of letter columns is zero by
        # construction.
        h = np.broadcast_to(W1[:, :n_cells].T + b1, (len(before), n_cells, len(W1)))
        at_now, at_before = W1[:, n_cells : n_cells + below], W1[:, 2 * n_cells + below :]
        if at_now.any():
            h = h + now @ at_now.T
        if at_before.any():
            h = h + (before @ at_before.T)[:, None]
        return gate.finish(h)

    @property
    def _below(self) -> list[int]:
        return [sum(layer.width for layer in self.layers[:i]) for i in range(len(self.layers))]
