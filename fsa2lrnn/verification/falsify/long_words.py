"""Searches of long words: periodic words and random words."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.reading import read_side_by_side
from fsa2lrnn.verification.falsify.verdict import Budget, SearchOutcome

_CANDIDATES = 1 << 13
_Pair = tuple[tuple[int, ...], tuple[int, ...]]


def periodic(comparison: ModelComparison, budget: Budget, below: int, clock: Deadline) -> SearchOutcome:
    """Search the words u w w w … for all short u and w up to the first failure, if they stay in coaccessible states."""
    every = periodic_words(comparison.n_letters, budget.prefix, budget.period)
    pairs = _for_ever(comparison, list(itertools.islice(every, _CANDIDATES)))[: budget.periodic_words]
    k = np.arange(min(budget.length, below - 1))
    rows = [np.array(u + w)[_places(u, w, k)] for u, w in pairs]
    tokens = np.array(rows, np.int64).reshape(len(pairs), len(k))
    longest_u, longest_w = (max((len(pair[i]) for pair in pairs), default=0) for i in (0, 1))
    what = f"{len(pairs):,} words u w w w … with |u| ≤ {longest_u} and |w| ≤ {longest_w}"
    return read_side_by_side(comparison, tokens, clock, what)


def _places(u: tuple[int, ...], w: tuple[int, ...], k: np.ndarray) -> np.ndarray:
    """Return the positions in u w of the letters k (from 0) of u w w w …."""
    return np.where(k < len(u), k, len(u) + (k - len(u)) % len(w))


def _for_ever(comparison: ModelComparison, pairs: list[_Pair]) -> list[_Pair]:
    """Return the pairs (u, w) whose word u w w w … passes only coaccessible states."""
    live_pairs: list[_Pair] = []
    for u, w in pairs:
        q, visited = comparison.goal.start, set[int]()
        for a in u:
            q = int(comparison.goal.delta[a, q])
        while q not in visited:  # the states after u, u w, u w w, … are eventually periodic
            visited.add(q)
            for a in w:
                q = int(comparison.goal.delta[a, q])
        if comparison.goal.coaccessible[q]:  # only coaccessible states lead to a coaccessible one
            live_pairs.append((u, w))
    return live_pairs


def periodic_words(n_letters: int, prefix: int, period: int) -> Iterator[_Pair]:
    """Yield all (u, w) with |u| ≤ prefix and 1 ≤ |w| ≤ period that give different words u w w w …, shortest first.

    >>> list(periodic_words(2, 1, 1))
    [((), (0,)), ((), (1,)), ((0,), (1,)), ((1,), (0,))]
    """
    lengths = sorted(itertools.product(range(1, period + 1), range(prefix + 1)), key=lambda pair: (sum(pair), pair))
    for n, m in lengths:
        for u in itertools.product(range(n_letters), repeat=m):
            for w in itertools.product(range(n_letters), repeat=n):
                is_power = any(n % d == 0 and w == w[:d] * (n // d) for d in range(1, n))
                if not is_power and not (u and u[-1] == w[-1]):  # else u's last letter belongs to the period
                    yield u, w


def random(comparison: ModelComparison, budget: Budget, below: int, clock: Deadline) -> SearchOutcome:
    """Search random words, drawn letter by letter and uniformly among the letters into coaccessible states."""
    rng = np.random.default_rng(budget.seed)
    tokens = comparison.goal.random_words(rng, budget.random_words, min(budget.length, below - 1))
    return read_side_by_side(comparison, tokens, clock, f"{len(tokens):,} random words")
