"""Decision lists over the literals of the subregular hierarchy, and the greedy search for a short one.

A rule has one literal or two, or their negations, as its condition, and is right on all remaining words. Rules are
chosen greedily by the words that they cover and the bits that describe them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata.language import product
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.learning.literals import Factors, Family, Subsequences, ends

_LONGEST, _RULES, _STATES = 6, 16, 30_000  # letters of a literal, rules of a list, states of a product
_ROUNDS, _ADDED = 16, 1000  # times that wrong words are added, and how many
_HOPELESS = 0.2  # share of wrong words at which a space is given up
_INFORMATIVE = 24  # literals per family that are tried in pairs

Words = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Tokens int64 (N, T), padded; lengths and labels, 0 or 1, of each word, (N,)."""


class Way(NamedTuple):
    """How rules are chosen: the label that all of them conclude, or None; the bits that a covered word is worth.

    Also whether pairs of literals are tried, and the bits of a word with the wrong label, by default those of its name.
    """

    label: int | None
    worth: float
    pairs: bool = True
    price: float | None = None


def some(words: Words, rows: slice | np.ndarray) -> Words:
    """Return some of the words."""
    return words[0][rows], words[1][rows], words[2][rows]


def wrong_words(machine: MooreMachine, words: Words) -> np.ndarray:
    """Return which words a machine over the letters 0 … n − 1 with the outputs 0 and 1 gets wrong."""
    return np.array(machine.outputs)[ends(machine, *words[:2])] != words[2]


@dataclass(frozen=True, eq=False)
class DecisionList:
    """Rules (acceptor, label) over the letters 0 … n − 1: the first that accepts decides, then the default label."""

    rules: tuple[tuple[MooreMachine, int], ...]
    default: MooreMachine
    way: Way
    cost: float  # bits of the rules
    bits: float  # and of the words that get another label

    def wrong(self, words: Words) -> np.ndarray:
        """Return which words get another label."""
        labels, is_open = np.full(len(words[2]), self.default.outputs[0]), np.ones(len(words[2]), bool)
        for rule, label in self.rules:
            applies = is_open & np.array(rule.outputs)[ends(rule, *words[:2])]
            labels[applies] = label
            is_open &= ~applies
        return labels != words[2]

    def machine(self) -> MooreMachine | None:
        """Return the minimal machine, None if it has too many states on the way."""
        machine = self.default
        for rule, label in reversed(self.rules):
            if machine.n_states * rule.n_states > _STATES:
                return None
            machine = product(machine, rule, lambda y, holds, label=label: label if holds else y).minimise()
        return machine


def _learned(words: Words, n: int, families: list[Family], way: Way) -> DecisionList:
    """Return the greedy list over some families of literals."""
    (label, worth, pairs, price), labels = way, words[2]
    rows, rules, bits = np.arange(len(labels)), list[tuple[MooreMachine, int]](), 0.0
    price = float(np.log2(2 * len(labels))) if price is None else price
    for _ in range(_RULES):
        totals = np.bincount(labels[rows], minlength=2)
        if totals.min() == 0:
            break
        best: tuple[float, list[tuple[Family, int, bool]], int] = (-np.inf, [], 0)
        counted = [family.counts(rows, labels) for family in families]
        for family, counts in zip(families, counted, strict=True):
            for y in (0, 1) if label is None else (label,):
                for sign in (True, False):
                    covered, wrong = (
                        each if sign else total - each
                        for each, total in zip(counts[[y, 1 - y]], totals[[y, 1 - y]], strict=True)
                    )
                    score = np.where((wrong == 0) & (covered > 0), covered * worth - family.bits, -np.inf)
                    if score.max() > best[0]:
                        best = float(score.max()), [(family, int(score.argmax()), sign)], y
        if pairs and best[0] < worth * totals.max() / 2:
            best = max(best, _pair(families, counted, rows, labels, label, worth), key=lambda each: each[0])
        _, parts, y = best
        if not parts:
            break
        covered = np.ones(len(rows), bool)
        for family, number, sign in parts:
            covered &= family.holds(number, rows) == sign
        cost = 1 + sum(float(family.bits[number]) + 1 for family, number, _ in parts)
        if covered.sum() * price <= cost:
            break
        bits += cost
        rules.append((_all_of([(family.acceptor(number), sign) for family, number, sign in parts]), y))
        rows = rows[~covered]
    totals = np.bincount(labels[rows], minlength=2)
    default = int(totals.argmax()) if label is None else 1 - label
    constant = MooreMachine([[0]] * n, [default], 0, range(n))
    return DecisionList(tuple(rules), constant, way, bits, bits + int(totals[1 - default]) * price)


def _all_of(parts: list[tuple[MooreMachine, bool]]) -> MooreMachine:
    """Return the acceptor of the words on which each acceptor answers so."""
    machine, sign = parts[0]
    both = MooreMachine(machine.delta, [output == sign for output in machine.outputs], machine.start, machine.alphabet)
    for machine, sign in parts[1:]:
        both = product(both, machine, lambda x, y, sign=sign: x and y == sign)
    return both


def _pair(
    families: list[Family],
    counted: list[np.ndarray],
    rows: np.ndarray,
    labels: np.ndarray,
    label: int | None,
    worth: float,
):
    """Return the score, the literals and the label of the best pair of the most informative literals per family."""
    totals, which, columns = (
        np.bincount(labels[rows], minlength=2),
        list[tuple[Family, int, bool]](),
        list[np.ndarray](),
    )
    for family, counts in zip(families, counted, strict=True):
        gain = -_entropy(*counts) - _entropy(*(totals[:, None] - counts))
        _, first = np.unique(counts[:, np.argsort(-gain, kind="stable")[: 8 * _INFORMATIVE]], axis=1, return_index=True)
        for number in np.argsort(-gain, kind="stable")[np.sort(first)[:_INFORMATIVE]].tolist():
            holds = family.holds(number, rows)
            which += [(family, number, True), (family, number, False)]
            columns += [holds, ~holds]
    x, bits = np.stack(columns).astype(np.float32), np.array([family.bits[number] + 1 for family, number, _ in which])
    inside = [x[:, labels[rows] == y] @ x[:, labels[rows] == y].T for y in (0, 1)]  # words that satisfy both
    best: tuple[float, list[tuple[Family, int, bool]], int] = (-np.inf, [], 0)
    for y in (0, 1) if label is None else (label,):
        score = np.where((inside[1 - y] == 0) & (inside[y] > 0), inside[y] * worth - bits[:, None] - bits, -np.inf)
        i, j = np.unravel_index(int(score.argmax()), score.shape)
        if score[i, j] > best[0]:
            best = float(score[i, j]), [which[i], which[j]], y
    return best


def _entropy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    n = np.maximum(a + b, 1)
    return -(a * np.log2(np.maximum(a / n, 1e-12)) + b * np.log2(np.maximum(b / n, 1e-12)))


def tiers(n: int) -> list[tuple[int, ...]]:
    """Return all non-empty tiers that omit at most two of the letters 0 … n − 1."""
    tiers = (tuple(a for a in range(n) if a not in out) for size in range(3) for out in combinations(range(n), size))
    return [tier for tier in tiers if tier]


class Space(NamedTuple):
    """Lists over the factors on a tier, () for none, or subsequences, or both, of at most so many letters."""

    tier: tuple[int, ...]
    has_subsequences: bool
    longest: int = _LONGEST


def _of_space(words: Words, n: int, space: Space, ways: Iterable[Way]) -> DecisionList:
    """Return the shortest list of a space, over the ways to choose rules."""
    families: list[Family] = [Factors(*words[:2], n, space.tier, space.longest)] if space.tier else []
    families += [Subsequences(*words[:2], n, space.longest)] if space.has_subsequences else []
    return min((_learned(words, n, families, way) for way in ways), key=lambda each: each.bits)


def ranked(
    words: Words, n: int, spaces: Iterable[Space], ways: tuple[Way, ...], few: int, limit: Deadline
) -> list[tuple[DecisionList, Space]]:
    """Return the lists of the spaces that the time allows for the first `few` words, the shortest first.

    Raises `OutOfTime` if it allows none.
    """
    lists = list[tuple[DecisionList, Space]]()
    for space in spaces:
        if lists and limit.left() < 0:
            break
        limit.check(f"comparing decision lists over {n} classes of letters")
        lists.append((_of_space(some(words, slice(few)), n, space, ways), space))
    return sorted(lists, key=lambda each: each[0].bits)


def refined(
    words: Words, n: int, first: DecisionList, space: Space, few: int, limit: Deadline, counted: int | None = None
) -> DecisionList:
    """Learn again with wrong words added until no new word is wrong; `bits` then count the errors on all words.

    If `counted` is given, only words with this label are called wrong, and none of them may be.
    """
    price = np.log2(2 * len(words[2])) if counted is None else np.inf
    chosen, random = np.arange(min(few, len(words[2]))), np.random.default_rng(0)
    lists, learned, counts = list[DecisionList](), first, counted is None or words[2] == counted
    for _ in range(_ROUNDS):
        wrong = np.flatnonzero(learned.wrong(words) & counts)
        missed = np.setdiff1d(wrong, chosen)
        lists.append(replace(learned, bits=learned.bits + (len(missed) * price if len(missed) else 0)))
        if not len(missed) or len(wrong) > _HOPELESS * len(words[2]) or limit.left() < 0:
            break
        chosen = np.concatenate([chosen, random.permutation(missed)[:_ADDED]])
        learned = _of_space(some(words, chosen), n, space, (first.way,))
    return min(lists, key=lambda each: each.bits)
