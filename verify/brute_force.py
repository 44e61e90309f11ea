"""T3 against brute force: every small machine, and every layer whose entries come from a grid (docs/theory.md §4).

Parallel layers form a layer of the same family, and a diagonal layer consists of scalar channels x ↦ A_a x + v_a that
are independent. Run from x₀, a channel either gives every state a single number f(q), or two words that lead to one
state give two numbers, and the channel fails. So a diagonal layer represents a machine exactly if each of its channels
is such a function and together they separate all states: it suffices to try channels one by one. Each channel of a
minimal set separates states that those before it do not, so n − 1 of them always suffice; for three states two
dimensions cover all layers.

This module does not use T3's space W. Entries of the grids are multiples of ½, in both parts if complex, so that all
floating-point results are exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata import table_kernels as tables
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families import Verdict, Witness, represent
from fsa2lrnn.families.channels import Affine
from fsa2lrnn.families.identities import FORCED

_ROUNDING = 1e-9  # allowed to rotations, which are no dyadic numbers


@dataclass(frozen=True)
class Grid:
    """The possible entries of A, v and x₀, and the dimension of the parallel layers."""

    A: tuple[complex, ...]
    v: tuple[complex, ...]
    x0: tuple[complex, ...]
    dimension: int = 1


_GAUSSIAN = tuple(complex(re, im) for re in (-1, 0, 1) for im in (-1, 0, 1))
GRIDS: dict[str, Grid] = {
    "lti": Grid((-1, 0, 1), (-1, 0, 1), (0,), dimension=2),
    "lti-diagonalisable": Grid((*_GAUSSIAN, 0.5, -0.5), _GAUSSIAN, (0, 1)),
    "diagonal[0,1]": Grid((0, 0.5, 1), (-1, -0.5, 0, 0.5, 1), (-1, 0, 1)),
    "diagonal[-1,1]": Grid((-1, -0.5, 0, 0.5, 1), (-1, -0.5, 0, 0.5, 1), (-1, 0, 1)),
    "diagonal-complex": Grid((0, 1, -1, 1j, -1j, 0.5, 0.5 + 0.5j), _GAUSSIAN, (0, 1)),
}


class Layers(NamedTuple):
    """A batch of layers: A (N, |Σ|, d, d), v (N, |Σ|, d), x0 (N, d)."""

    A: np.ndarray
    v: np.ndarray
    x0: np.ndarray


@dataclass(frozen=True)
class Comparison:
    """The comparison of T3 with brute force on every machine of a size.

    Args:
        machines: the number of machines.
        representable: the number of machines for which T3 gives a witness.
        found: the number of these that parallel layers of the grid represent, by the number of layers needed.
        contradicted: machines that T3 calls impossible and a layer of the grid represents.
        unconfirmed: machines whose witness, run in floating point, is not a representation.
    """

    machines: int
    representable: int
    found: dict[int, int]
    contradicted: tuple[MooreMachine, ...]
    unconfirmed: tuple[MooreMachine, ...]


def by_T3(machine: MooreMachine, family: str) -> Verdict:
    """Return the verdict of `represent` without the search for four words, which is irrelevant here."""
    return represent(machine, family, short_words=False)


def compare(
    family: str,
    n_states: int,
    n_letters: int = 2,
    grid: Grid | None = None,
    decide: Callable[[MooreMachine, str], Verdict] = by_T3,
) -> Comparison:
    """Compare `decide` with the grid on every machine of that many states, all reachable and pairwise distinguishable.

    The verdict depends on the tables only: with a distinct output for each state, every table of a minimal machine
    occurs, once up to the numbering of states.

    >>> compare("diagonal[0,1]", 2)
    Comparison(machines=12, representable=5, found={1: 5}, contradicted=(), unconfirmed=())
    """
    if family not in FORCED:
        raise UnsupportedFormat(f"family {family!r} is not decided by T3: choose one of {', '.join(FORCED)}")
    layers = on_grid(family, n_letters, grid or GRIDS[family])
    machines, representable = 0, 0
    found: dict[int, int] = {}
    contradicted: list[MooreMachine] = []
    unconfirmed: list[MooreMachine] = []
    for delta in all_tables(n_states, n_letters):
        machine = MooreMachine(delta, range(n_states))
        machines += 1
        verdict, least = decide(machine, family), fewest(vectors(delta, layers))
        if isinstance(verdict, Witness):
            representable += 1
            if least is not None:
                found[least] = found.get(least, 0) + 1
            if not is_confirmed(verdict):
                unconfirmed.append(machine)
        elif least is not None:
            contradicted.append(machine)
    return Comparison(machines, representable, found, tuple(contradicted), tuple(unconfirmed))


def all_tables(n_states: int, n_letters: int) -> Iterator[np.ndarray]:
    """Yield each table δ (|Σ|, n) whose states are all reachable from 0 and numbered breadth first.

    >>> [sum(1 for _ in all_tables(n, 2)) for n in (1, 2, 3)]
    [1, 12, 216]
    """
    every = np.arange(n_states)
    for entries in itertools.product(range(n_states), repeat=n_letters * n_states):
        delta = np.reshape(entries, (n_letters, n_states))
        if np.array_equal(tables.breadth_first(delta, 0), every):
            yield delta


def on_grid(family: str, n_letters: int, grid: Grid) -> Layers:
    """Return every layer of the family over a grid: dense ones of its dimension, or scalar channels.

    If the family requires it, A is the same for all letters.
    """
    kinds, d = 1 if FORCED[family].letters == "input-independent" else n_letters, grid.dimension
    A = _tuples(grid.A, kinds * d * d).reshape(-1, kinds, d, d)
    v, x0 = _tuples(grid.v, n_letters * d).reshape(-1, n_letters, d), _tuples(grid.x0, d)
    i, j, k = (part.ravel() for part in np.indices((len(A), len(v), len(x0))))
    return Layers(np.broadcast_to(A[i], (len(i), n_letters, d, d)), v[j], x0[k])


def vectors(delta: np.ndarray, layers: Layers, tolerance: float = 0.0) -> np.ndarray:
    """Return the vector x_q of each state, for the layers in which it is the same after every word: (kept, n, d).

    The states of `delta` are numbered breadth first from 0.
    """
    maps, v, x0 = layers
    x = np.zeros((len(x0), delta.shape[1], x0.shape[1]), np.result_type(maps, v, x0))
    x[:, 0], seen = x0, {0}
    for q, a in itertools.product(range(delta.shape[1]), range(len(delta))):
        moved, target = (maps[:, a] @ x[:, q, :, None])[..., 0] + v[:, a], int(delta[a, q])
        if target not in seen:
            x[:, target] = moved
            seen.add(target)
            continue
        agrees = (np.abs(moved - x[:, target]) <= tolerance).all(-1)
        maps, v, x = maps[agrees], v[agrees], x[agrees]
    return x


def fewest(x: np.ndarray) -> int | None:
    """Return the least number of parallel layers that separate all states, from vectors (N, n, d); None if all fail."""
    n = x.shape[1]
    alike = np.unique((x[:, :, None] == x[:, None]).all(-1).reshape(-1, n * n), axis=0).reshape(-1, n, n)
    apart = np.eye(n, dtype=bool)
    for size in range(n):
        chosen: Sequence[np.ndarray]
        for chosen in itertools.combinations(alike, size):
            if np.array_equal(np.logical_and.reduce([np.ones_like(apart), *chosen]), apart):
                return size
    return None


def is_confirmed(witness: Witness) -> bool:
    """Return whether a witness, run in floating point, gives every state one vector, distinct from the others."""
    x = vectors(witness.machine.delta, as_layer(witness), 0.0 if witness.is_exact else _ROUNDING)
    return len(x) == 1 and fewest(np.round(x, 6)) is not None


def as_layer(witness: Witness) -> Layers:
    """Return the weights of a witness as one layer, with one complex dimension per channel."""
    form, n_letters = witness.form, len(witness.machine.alphabet)
    if isinstance(form, Affine):
        d = form.dimension
        dense = np.broadcast_to(np.reshape(form.A, (1, 1, d, d)), (1, n_letters, d, d)).astype(float)
        return Layers(dense, np.reshape(form.shifts, (1, n_letters, d)).astype(float), np.zeros((1, d)))
    multipliers = [[channel.multiplier(a) for channel in form] for a in range(n_letters)]
    shifts = [[channel.number(channel.shifts[a]) for channel in form] for a in range(n_letters)]
    A = np.array([[np.diag(row) for row in multipliers]], complex).reshape(1, n_letters, len(form), len(form))
    return Layers(A, np.array([shifts], complex).reshape(1, n_letters, len(form)), np.zeros((1, len(form))))


def _tuples(values: tuple[complex, ...], length: int) -> np.ndarray:
    return np.array(list(itertools.product(values, repeat=length))).reshape(-1, length)
