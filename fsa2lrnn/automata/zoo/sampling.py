"""Draw random machines, the same for a seed on every platform.

Valvoda et al. (2022), "Benchmarking compositionality with formal languages", draw a transducer by taking each of the n²
possible edges with probability ½, rejecting the graph unless every state is reachable, and giving the edges that leave
a state distinct random letters and random outputs. Such a machine is partial, over at least as many letters as the
largest out-degree of a state. This module rejects machines in the same way, but they are complete over k letters:

1. Draw every δ(q, a) uniformly and independently on m ≥ n states, until exactly n of them are reachable.
2. Take the reachable part, numbered breadth first.
3. Draw every output uniformly and independently.
4. With `minimal`, repeat all steps while two states are equivalent.

The transition structure is *uniform* among all structures with n states, each reachable, since each extends to equally
many tables on m states (Carayol & Nicaud 2012). Rejections are few for m ≈ n / v, where v = 1 − e^{−kv} is the share of
a random table that is reachable. With one letter such a structure is a path of n states and one edge back from its end,
which is drawn directly.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from fsa2lrnn.automata import table_kernels as tables
from fsa2lrnn.automata.language import minimise, trim
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.zoo.parameters import at_least, within_budget
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine

_ATTEMPTS = 100_000


def random_dfa(n: int, k: int, seed: int, minimal: bool = False) -> MooreMachine:
    """Return a random acceptor of n states, all reachable, over k letters; a state accepts with probability ½.

    It shows the cost of a method without structure to use: a random machine synchronises with high probability
    (Berlinkov 2016) and seldom has a useful congruence. The module docstring defines the distribution. With `minimal`,
    no two states are equivalent. Raises `BudgetExceeded` for too many transitions or no success in 100,000 draws.

    >>> random_dfa(6, 2, seed=0) == random_dfa(6, 2, seed=0), random_dfa(6, 2, seed=0).n_states
    (True, 6)
    """
    return _draw("random_dfa", n, k, (False, True), seed, minimal)


def random_moore(n: int, k: int, outputs: int | Sequence[Hashable], seed: int, minimal: bool = False) -> MooreMachine:
    """Return a random machine of n states, all reachable, over k letters, with outputs drawn from `outputs`.

    A number as `outputs` stands for 0 … outputs−1. Distribution and errors are those of `random_dfa`; `minimal` with a
    single output also raises `InvalidMachine` for n > 1.

    >>> random_moore(4, 2, outputs=3, seed=1, minimal=True).minimise().n_states
    4
    """
    if isinstance(outputs, int):
        outputs = range(at_least(1, "random_moore", "outputs", outputs))
    return _draw("random_moore", n, k, outputs, seed, minimal)


def _draw(task: str, n: int, k: int, outputs: Sequence[Hashable], seed: int, minimal: bool) -> MooreMachine:
    """Return a random machine of n reachable states and k letters, redrawn until it is minimal if `minimal`.

    PCG64 is named, since numpy's default generator may change between versions and a seed should not.
    """
    n, k = at_least(1, task, "n", n), at_least(1, task, "k", k)
    generator = np.random.Generator(np.random.PCG64(at_least(0, task, "seed", seed)))
    within_budget(f"{task}({n}, {k})", n, k)
    if minimal and n > 1 and len(set(outputs)) < 2:
        raise InvalidMachine(f"{task}(n={n}, minimal=True): with a single output every machine has one state: give two")
    letters = "abcdefghijklmnopqrstuvwxyz"[:k] if k <= 26 else [f"a{i}" for i in range(1, k + 1)]
    for _ in range(_ATTEMPTS):
        table = _path_with_an_edge_back(n, generator) if k == 1 else _reachable_table(n, k, generator)
        choice = generator.integers(len(outputs), size=n, dtype=np.int64)
        machine = MooreMachine(table, [outputs[c] for c in choice], 0, letters)
        if not minimal or minimise(machine).n_states == n:
            return machine
    raise BudgetExceeded(f"{task}(n={n}, k={k}): no minimal machine in {_ATTEMPTS:,} draws: choose another seed")


def _path_with_an_edge_back(n: int, generator: np.random.Generator) -> np.ndarray:
    return np.append(np.arange(1, n), generator.integers(n, dtype=np.int64))[None]


def _reachable_table(n: int, k: int, generator: np.random.Generator) -> np.ndarray:
    m = max(n, round(n / _reachable_share(k)))
    for _ in range(_ATTEMPTS):
        table = generator.integers(m, size=(k, m), dtype=np.int64)
        if len(tables.breadth_first(table, 0)) == n:
            return trim(MooreMachine(table, [None] * m)).delta
    raise BudgetExceeded(f"no table with {n:,} reachable states in {_ATTEMPTS:,} draws: choose another seed")


def _reachable_share(k: int) -> float:
    share = 1.0
    for _ in range(200):
        share = 1 - math.exp(-k * share)
    return share
