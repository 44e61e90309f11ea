"""Two layouts of one layer whose gates read only letters: A[c] and v[c] for every cell c, as matrices or indices.

Both check on construction that states stay one-hot, the hypothesis of T1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.display import Brief
from fsa2lrnn.errors import InvalidMachine


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
