"""Layers over the integers: A[c] and v[c] for every cell c of letters, as matrices or indices, and gates.

Both layouts check on construction that states stay one-hot, the hypothesis of T1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fsa2lrnn.display import Brief
from fsa2lrnn.errors import InvalidMachine, NotExact


@dataclass(frozen=True, eq=False)
class DenseTables(Brief):
    """One layer of H one-hot blocks as matrices; unequal blocks are padded with zeros to the largest, b.

    Each head of each cell is either a *map* (every column of A within the block is one-hot, v = 0) or a *reset* (A = 0,
    v one-hot); x₀ is one-hot in every head. So states stay one-hot, and columns have p-norm 1 or 0 for every p.

    Args:
        A: int, shape (C, H, b, b), 0 or 1.
        v: int, shape (C, H, b), 0 or 1.
        x0: int, shape (H, b).
        cell: the cell of each letter, int, shape (|Σ|,), in 0 … C−1.
        block_sizes: the H sizes; the largest is b.

    Raises `InvalidMachine` naming the first broken invariant.
    """

    A: np.ndarray
    v: np.ndarray
    x0: np.ndarray
    cell: np.ndarray
    block_sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        n_cells = self._check_shapes()
        check_cells(self.cell, n_cells)
        for h, size in enumerate(self.block_sizes):
            A, v, x0 = self.A[:, h], self.v[:, h], self.x0[h]
            if A[:, size:].any() or A[:, :, size:].any() or v[:, size:].any() or x0[size:].any():
                raise InvalidMachine(f"head {h} has entries outside its block of size {size}: padding is zero")
            if not _one_hot(x0):
                raise InvalidMachine(f"x0 of head {h} is {x0.tolist()}: it must be one-hot")
            # `swapaxes` makes columns the last axis, so that `all(1)` runs over the columns of a block.
            is_map = _one_hot(A[:, :size, :size].swapaxes(1, 2)).all(1) & ~v.any(1)
            is_reset = ~A.any((1, 2)) & _one_hot(v)
            if wrong := np.flatnonzero(~(is_map | is_reset)).tolist():
                raise InvalidMachine(
                    f"head {h} of cell {wrong[0]} is neither a map (one-hot columns, v = 0) nor a reset (A = 0, v "
                    f"one-hot): its columns sum to {A[wrong[0]].sum(0).tolist()} and v to {int(v[wrong[0]].sum())}"
                )
        freeze(self.A, self.v, self.x0, self.cell)

    def _check_shapes(self) -> int:
        """Return the number of cells; raise `InvalidMachine` unless A is (K, H, b, b), v (K, H, b) and x0 (H, b)."""
        n_heads, b = len(self.block_sizes), max(self.block_sizes, default=0)
        n_cells = len(self.A)
        expected = {"A": (n_cells, n_heads, b, b), "v": (n_cells, n_heads, b), "x0": (n_heads, b)}
        for name, shape in expected.items():
            if getattr(self, name).shape != shape or not n_heads or not n_cells:
                raise InvalidMachine(
                    f"{name} has shape {getattr(self, name).shape}, but {n_cells} cells and blocks of sizes "
                    f"{self.block_sizes} ask for {shape}"
                )
        return n_cells

    @property
    def n_heads(self) -> int:
        """H, the number of blocks."""
        return len(self.block_sizes)

    def initial(self) -> np.ndarray:
        """Return x₀, flattened: shape (H·b,)."""
        return self.x0.reshape(-1)

    def step(self, x: np.ndarray) -> np.ndarray:
        """Return A[a] x + v[a] for every state x and letter a: int (N, H·b) -> (N, |Σ|, H·b)."""
        n_heads, b = self.x0.shape
        heads = x.reshape(len(x), n_heads, b)
        # c: cell, n: state, h: block, i and j: row and column.
        after = np.einsum("chij,nhj->nchi", self.A, heads, dtype=x.dtype) + self.v  # (N, C, H, b)
        return after.reshape(len(x), -1, n_heads * b)[:, self.cell]


@dataclass(frozen=True, eq=False)
class IndexTables(Brief):
    """One layer of a single one-hot block as an index table: column q of A[c] has its 1 in row `next_state[c, q]`.

    Args:
        next_state: int, shape (C, n), entries in 0 … n−1.
        start: the position of the 1 of x₀.
        cell: the cell of each letter, int, shape (|Σ|,), in 0 … C−1.

    Raises `InvalidMachine` naming the first broken invariant.
    """

    next_state: np.ndarray
    start: int
    cell: np.ndarray

    def __post_init__(self) -> None:
        n_cells, n = self.next_state.shape
        check_cells(self.cell, n_cells)
        if n == 0 or self.next_state.min() < 0 or self.next_state.max() >= n:
            raise InvalidMachine(
                f"next_state has entries outside 0..{n - 1}: each column has its 1 in a row of the block"
            )
        if not 0 <= self.start < n:
            raise InvalidMachine(f"start = {self.start}, but the block has {n} states")
        freeze(self.next_state, self.cell)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """The size of the only block: (n,)."""
        return (self.next_state.shape[1],)

    @property
    def n_heads(self) -> int:
        """H, the number of blocks: 1."""
        return 1

    def initial(self) -> np.ndarray:
        """Return the index of the 1 of x₀: shape (1,)."""
        return np.array([self.start])

    def step(self, x: np.ndarray) -> np.ndarray:
        """Return the state after each of the letters, for every state: int (N, 1) -> (N, |Σ|, 1)."""
        # (C, N) to (N, C), and then one column per letter instead of per cell.
        return self.next_state[:, x[:, 0]].T[:, self.cell, None]


def check_cells(cell: np.ndarray, n_cells: int) -> None:
    """Raise `InvalidMachine` unless every letter has one of the cells 0 … n_cells−1."""
    if cell.ndim != 1 or not cell.size or cell.min() < 0 or cell.max() >= n_cells:
        raise InvalidMachine(f"cell = {cell.tolist()[:8]}…: give each letter one of the cells 0..{n_cells - 1}")


def freeze(*arrays: np.ndarray) -> None:
    """Make arrays read-only."""
    for array in arrays:
        array.flags.writeable = False


def _one_hot(vectors: np.ndarray) -> np.ndarray:
    return ((vectors == 1).sum(-1) == 1) & ((vectors == 0).sum(-1) == vectors.shape[-1] - 1)


_EXACT = 2**53  # up to here float64 holds every integer


@dataclass(frozen=True, eq=False)
class ReluGate:
    """An integer gate y = W₂ relu(W₁ u + b₁) + b₂ with d hidden units; d may be 0.

    Args:
        W1: int, shape (d, D).
        b1: int, shape (d,).
        W2: int, shape (E, d).
        b2: int, shape (E,).

    Raises `InvalidMachine` if the shapes do not agree, or an entry is not an integer.

    >>> conjunction = ReluGate(np.array([[1, 1]]), np.array([-1]), np.array([[5]]), np.array([2]))
    >>> conjunction(np.array([[0, 1], [1, 1]])).tolist()
    [[2], [7]]
    """

    W1: np.ndarray
    b1: np.ndarray
    W2: np.ndarray
    b2: np.ndarray

    def __post_init__(self) -> None:
        parts = {"W1": self.W1, "b1": self.b1, "W2": self.W2, "b2": self.b2}
        d, width_out = len(self.W1), len(self.W2)
        if self.W1.ndim != 2 or [part.shape for part in (self.b1, self.W2, self.b2)] != [
            (d,),
            (width_out, d),
            (width_out,),
        ]:
            shapes = ", ".join(f"{name} {part.shape}" for name, part in parts.items())
            raise InvalidMachine(f"the shapes of a gate do not fit: {shapes} should be (d, D), (d,), (E, d), (E,)")
        for name, part in parts.items():
            if not np.issubdtype(part.dtype, np.integer):
                raise InvalidMachine(f"{name} of a gate has dtype {part.dtype}: give integers")
            part.flags.writeable = False

    @property
    def width_in(self) -> int:
        """D, the width of the input."""
        return self.W1.shape[1]

    @property
    def width_out(self) -> int:
        """E, the width of the output."""
        return len(self.W2)

    @property
    def n_units(self) -> int:
        """d, the number of hidden units."""
        return len(self.W1)

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """Return y exactly: int (…, D) -> int64 (…, E). Raises `NotExact` if sums could reach 2⁵³."""
        self.check_exact(int(np.abs(u).max(initial=0)))
        W1, b1, _, _ = self.weights
        return self.finish(u.astype(np.float64) @ W1.T + b1).astype(np.int64)

    @cached_property
    def weights(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """W₁, b₁, W₂, b₂ in float64, in which matrix products of integers are fast and exact below 2⁵³."""
        W1, b1, W2, b2 = (part.astype(np.float64) for part in (self.W1, self.b1, self.W2, self.b2))
        return W1, b1, W2, b2

    def finish(self, h: np.ndarray) -> np.ndarray:
        """Return the output y = W₂ relu(h) + b₂ for hidden units h = W₁ u + b₁: float64 (…, d) -> (…, E)."""
        _, _, W2, b2 = self.weights
        return np.maximum(h, 0) @ W2.T + b2

    def check_exact(self, largest: int) -> None:
        """Raise `NotExact` unless all sums stay below 2⁵³ for inputs of absolute value at most `largest`."""
        slope, offset = self._growth
        if (bound := slope * largest + offset) >= _EXACT:
            raise NotExact(f"inputs up to {largest} make sums of up to {bound:.3g} in a gate: float64 is exact to 2^53")

    @cached_property
    def _growth(self) -> tuple[float, float]:
        W1, b1, W2, b2 = (np.abs(part) for part in self.weights)
        # A hidden unit is at most slope·largest + offset; the second matrix adds up these bounds with absolute
        # weights.
        slope, offset = W1.sum(1), b1
        return (
            float(max(slope.max(initial=0), (W2 @ slope).max(initial=0))),
            float(max(offset.max(initial=0), (W2 @ offset + b2).max(initial=0))),
        )

    def largest_sum(self, u: np.ndarray) -> int:
        """Return a bound on the absolute value of partial sums, in any order, on inputs u: int (…, D) -> int.

        >>> gate = ReluGate(np.array([[1, -1]]), np.array([-1]), np.array([[2]]), np.array([3]))
        >>> gate.largest_sum(np.array([[1, 1]]))
        3
        """
        W1, b1, W2, b2 = self.weights
        inputs = u.astype(np.float64)
        first = np.abs(inputs) @ np.abs(W1).T + np.abs(b1)
        # The actual hidden values, not their bounds: units that are off add nothing.
        second = np.maximum(inputs @ W1.T + b1, 0) @ np.abs(W2).T + np.abs(b2)
        return int(max(first.max(initial=0), second.max(initial=0)))
