"""Long words: those that repeat, and those drawn at random."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.verification.falsify.judge import ModelComparison
from fsa2lrnn.verification.falsify.reading import read_side_by_side
from fsa2lrnn.verification.falsify.verdict import Budget, SearchOutcome

_CANDIDATES = 1 << 13
_Pair = tuple[tuple[int, ...], tuple[int, ...]]


def periodic(judge: ModelComparison, budget: Budget, below: int, clock: Deadline) -> SearchOutcome:
    """u w w w … for all short u and w, side by side, up to the first failure; without words that lead to a state from
    which nothing counts."""
    every = periodic_words(judge.n_letters, budget.prefix, budget.period)
    pairs = _for_ever(judge, list(itertools.islice(every, _CANDIDATES)))[: budget.periodic_words]
    k = np.arange(min(budget.length, below - 1))
    rows = [np.array(u + w)[_places(u, w, k)] for u, w in pairs]
    tokens = np.array(rows, np.int64).reshape(len(pairs), len(k))
    longest_u, longest_w = (max((len(pair[i]) for pair in pairs), default=0) for i in (0, 1))
    what = f"{len(pairs):,} words u w w w … with |u| ≤ {longest_u} and |w| ≤ {longest_w}"
    return read_side_by_side(judge, tokens, clock, what)


def _places(u: tuple[int, ...], w: tuple[int, ...], k: np.ndarray) -> np.ndarray:
    """Where in u w the letters k (from 0) of u w w w … stand."""
    return np.where(k < len(u), k, len(u) + (k - len(u)) % len(w))


def _for_ever(judge: ModelComparison, pairs: list[_Pair]) -> list[_Pair]:
    """The pairs (u, w) whose word u w w w … passes hopeful states only."""
    kept: list[_Pair] = []
    for u, w in pairs:
        q, seen = judge.goal.start, set[int]()
        for a in u:
            q = int(judge.goal.delta[a, q])
        while q not in seen:  # the states after u, u w, u w w, … come round
            seen.add(q)
            for a in w:
                q = int(judge.goal.delta[a, q])
        if judge.goal.hopeful[q]:  # from a state that is not, none is reached
            kept.append((u, w))
    return kept


def periodic_words(n_letters: int, prefix: int, period: int) -> Iterator[_Pair]:
    """All (u, w) with |u| ≤ prefix and 1 ≤ |w| ≤ period that give different words u w w w …, short ones first.

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


def random(judge: ModelComparison, budget: Budget, below: int, clock: Deadline) -> SearchOutcome:
    """Words drawn letter by letter, uniformly among the letters that still lead somewhere."""
    rng = np.random.default_rng(budget.seed)
    tokens = judge.goal.random_words(rng, budget.random_words, min(budget.length, below - 1))
    return read_side_by_side(judge, tokens, clock, f"{len(tokens):,} random words")
