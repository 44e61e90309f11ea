"""Split a weighted automaton into the finest common blocks of its transition matrices over ℚ (T68 of docs/theory.md).

Vectors are rows in `families.direct_sums`, on which letters act from the right: the transposed matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
from flint import fmpq  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.display import Brief
from fsa2lrnn.families import linear
from fsa2lrnn.families.direct_sums import indecomposable
from fsa2lrnn.families.function_modules import Module
from fsa2lrnn.symbols import Alphabet
from fsa2lrnn.weighted.weighted_automaton import WeightedAutomaton, as_weighted


@dataclass(frozen=True)
class BlockForm(Brief):
    """A weighted automaton with the function of another one, and transition matrices of common blocks.

    Args:
        automaton: its states are those of the blocks in turn, and last, if there are shifts, one that is always 1.
        sizes: those of the blocks.
        is_finest: whether no change of basis over ℚ splits a block: proved if true, not known if false.
    """

    automaton: WeightedAutomaton
    sizes: tuple[int, ...]
    is_finest: bool


def block_form(w: WeightedAutomaton, seconds: float | None = 60.0) -> BlockForm:
    """Return an automaton of equal function whose transition matrices have the finest common blocks over ℚ.

    A state whose vector is always 1 stays as it is and is in no block: it becomes the shifts of a layer. `is_finest` is
    false if the time limit or a bound on sizes ended the search, or if the commutant of a block, modulo its radical, is
    not a field and no element that was tried splits the block.

    >>> swap = WeightedAutomaton("ab", [1, 0], [[[0, 1], [1, 0]], [[2, 1], [1, 2]]], [1, 0])
    >>> found = block_form(swap)
    >>> found.sizes, found.is_finest, found.automaton.equivalent(swap) is None
    ((1, 1), True, True)
    """
    A, v, x0, W, b = affine(w)
    module = Module(tuple(linear.matrix(rows.T.tolist(), len(x0)) for rows in A))
    begun = [linear.rows_of(linear.identity(len(x0)), states) for states in connected(A)]
    parts, is_finest = indecomposable(module, begun, seconds)
    rows = linear.stack(parts, len(x0))
    T, inverse = (np.array(M.transpose().tolist(), object) for M in (rows, rows.inv()))
    automaton = assembled(w.alphabet, w.outputs, inverse @ A @ T, v @ inverse.T, inverse @ x0, W @ T, b)
    return BlockForm(automaton, tuple(part.nrows() for part in parts), is_finest)


def affine(w: WeightedAutomaton) -> list[np.ndarray]:
    """Return A, v, x₀, W and b of a layer with the function of a weighted automaton, arrays of fractions.

    A state whose vector is always 1 becomes v and b.
    """
    n, zero = as_weighted(w).n_states, fmpq(0)
    # A state that is always 0 is added, so that a layer without others has a state.
    A = np.full((len(w.alphabet), n + 1, n + 1), zero)
    x0, W = np.full(n + 1, zero), np.full((w._final.nrows(), n + 1), zero)
    for a, matrix in enumerate(w._transitions):
        A[a, :n, :n] = np.array(matrix.tolist(), object).reshape(n, n)
    x0[:n], W[:, :n] = w._initial.entries(), np.array(w._final.tolist(), object).reshape(len(W), n)
    ones = [s for s in range(n) if x0[s] == 1 and all((A[:, s] == (np.arange(n + 1) == s).astype(int)).flat)]
    one = ones[-1] if ones else n
    rest = [q for q in range(n) if q != one] or [n]
    return [A[:, rest][:, :, rest], A[:, rest, one], x0[rest], W[:, rest], W[:, one]]


def assembled(alphabet: Alphabet, outputs: Alphabet | None, *parts: np.ndarray) -> WeightedAutomaton:
    """Return the automaton of a layer A, v, x₀, W, b; if it has shifts or a bias, its last state is always 1."""
    A, v, x0, W, b = parts
    n = len(x0)
    if any(v.flat) or any(b.flat):
        more = np.zeros((len(A), n + 1, n + 1), A.dtype)
        more[:, :n, :n], more[:, :n, n], more[:, n, n] = A, v, 1
        A, x0, W = more, np.append(x0, 1), np.hstack([W, b[:, None]])
    return WeightedAutomaton(alphabet, x0, A, W[0] if outputs is None else W, outputs)


def connected(A: np.ndarray) -> list[list[int]]:
    """Return the sets of states that letters connect, for matrices (|Σ|, n, n)."""
    graph = nx.from_numpy_array((A != 0).any(0))
    return [sorted(states) for states in nx.connected_components(graph.to_undirected())]
