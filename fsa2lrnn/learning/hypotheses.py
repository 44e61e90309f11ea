"""Subregular hypotheses for words with one correct label of two at the end: decision lists, counters, small machines.

Letters that act alike are united. A decision list has literals as conditions, each rule right on all remaining words
and chosen greedily by the words that it covers and the bits that describe it. A counter weighs letters modulo a number.

If words are drawn uniformly by label and length, then of two acceptors that are right on all words, the one that gives
a label to fewer words explains the words with this label better: a word of n letters takes log₂ of the share of all
such words that get its label. The machine that describes itself and the words in the fewest bits is the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import torch

from fsa2lrnn.automata.language import product
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime
from fsa2lrnn.learning.literals import Factors, Family, Subsequences, ends, letter_classes
from fsa2lrnn.learning.search import search
from fsa2lrnn.learning.word_files import Data

_BOUNDS = (4.5, 3.0)  # of |z| for letters that act alike, the second if the first leaves words wrong
_SMALL, _MOST = 5, 12  # letters that are not united, and classes that are tried
_VALUES = (1.0, 12.0)  # bits that a covered word is worth
_LONGEST, _RULES, _STATES = 6, 16, 30_000  # letters of a literal, rules of a list, states of a product
_FEW, _FINAL, _ROUNDS, _ADDED = 2000, 4, 16, 1000  # words at first, spaces refined, times that wrong words are added
_HOPELESS = 0.2  # share of wrong words at which a space is given up
_INFORMATIVE = 24  # literals per family that are tried in pairs
_SHORT = 60.0  # bits of a list of single literals that ends the search
_WEIGHTINGS, _MODULI = 1 << 18, range(2, 8)
_SEARCH = 0.1  # of the time for small machines

Words = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Tokens int64 (N, T), padded; lengths and labels, 0 or 1, of each word, (N,)."""


def subregular(data: Data, limit: Deadline) -> Iterator[MooreMachine]:
    """Yield the best hypothesis that is right on all words, if there is one, else the best decision list.

    Raises `OutOfTime` at the deadline, and `BudgetExceeded` for more than `_MOST` classes of letters.
    """
    tokens, lengths, k = data.tokens.numpy(), data.lengths.numpy(), len(data.alphabet)
    labels = data.labels.numpy()[np.arange(len(tokens)), lengths]
    words = tokens, lengths, labels
    right, nearly = list[MooreMachine](), list[tuple[int, MooreMachine]]()
    for bound in _BOUNDS:
        classes = np.arange(k) if k <= _SMALL else letter_classes(*words, k, bound)
        n = int(classes.max()) + 1
        if n > _MOST:
            continue
        united = np.ascontiguousarray(classes[tokens]), lengths, labels
        with suppress(OutOfTime):
            for machine in _hypotheses(data, united, n, limit):
                of = MooreMachine(machine.delta[classes], machine.outputs, machine.start, range(k))
                wrong = int(_wrong(of, words).sum())
                right += [of] if not wrong else []
                nearly.append((wrong, of))
        if right or k <= _SMALL:
            break
    if not nearly:
        limit.check("comparing hypotheses")
        raise BudgetExceeded(f"more than {_MOST} classes of letters: learn from more words")
    best = min(right, key=lambda each: _bits(each, words)) if right else min(nearly, key=lambda pair: pair[0])[1]
    outputs = [data.outputs[y == 1] for y in best.outputs]
    yield MooreMachine(best.delta, outputs, best.start, data.alphabet).minimise()


def _hypotheses(data: Data, words: Words, n: int, limit: Deadline) -> Iterator[MooreMachine]:
    """Yield machines over the letters 0 … n − 1 with the outputs 0 and 1; lists may be wrong on some words."""
    spaces = [_Space(tier, False) for tier in _tiers(n)] + [_Space((), True)]
    ranked = _ranked(words, n, spaces, False, limit)
    short = _refined(words, n, *ranked[0], False, limit)
    if short.bits <= _SHORT and (machine := short.machine()) is not None:
        yield machine
    if (counter := _counter(*words, n)) is not None:
        yield counter
    else:
        united = replace(data, alphabet=tuple(range(n)), tokens=torch.from_numpy(words[0]), outputs=(0, 1))
        with suppress(OutOfTime):
            for found in search(united, False, limit.share(_SEARCH)):
                if not _wrong(found, words).any():
                    yield found
                    break
        tiers = [space.tier for _, space in ranked if space.tier][:_FINAL]
        if (longer := _longer_list(words, n, tiers, limit).machine()) is not None:
            yield longer


def _some(words: Words, rows: slice | np.ndarray) -> Words:
    return words[0][rows], words[1][rows], words[2][rows]


def _wrong(machine: MooreMachine, words: Words) -> np.ndarray:
    """Return which words a machine over the letters 0 … n − 1 with the outputs 0 and 1 gets wrong."""
    return np.array(machine.outputs)[ends(machine, *words[:2])] != words[2]


@dataclass(frozen=True, eq=False)
class DecisionList:
    """Rules (acceptor, label) over the letters 0 … n − 1: the first that accepts decides, then the default label."""

    rules: tuple[tuple[MooreMachine, int], ...]
    default: MooreMachine
    bits: float

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


def _learned(
    words: Words, n: int, families: list[Family], label: int | None, worth: float, pairs: bool
) -> DecisionList:
    """Return the greedy list over some families, all of whose rules conclude `label`, or either one for None."""
    labels = words[2]
    rows, rules, bits = np.arange(len(labels)), list[tuple[MooreMachine, int]](), 0.0
    price = float(np.log2(2 * len(labels)))  # to name a word with the wrong label
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
    default = MooreMachine([[0]] * n, [int(totals.argmax())], 0, range(n))
    return DecisionList(tuple(rules), default, bits + int(totals.min()) * price)


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


def _tiers(n: int) -> list[tuple[int, ...]]:
    """Return all non-empty tiers that omit at most two of the letters 0 … n − 1."""
    tiers = (tuple(a for a in range(n) if a not in out) for size in range(3) for out in combinations(range(n), size))
    return [tier for tier in tiers if tier]


class _Space(NamedTuple):
    """Lists over the factors on a tier, () for none, or subsequences, or both, of at most so many letters."""

    tier: tuple[int, ...]
    has_subsequences: bool
    longest: int = _LONGEST


def _of_space(words: Words, n: int, space: _Space, pairs: bool) -> DecisionList:
    """Return the shortest list of a space, over the ways to choose rules."""
    families: list[Family] = [Factors(*words[:2], n, space.tier, space.longest)] if space.tier else []
    families += [Subsequences(*words[:2], n, space.longest)] if space.has_subsequences else []
    ways = [(y, worth) for worth in _VALUES for y in (None, 0, 1)] if pairs else [(None, _VALUES[0])]
    return min((_learned(words, n, families, *way, pairs) for way in ways), key=lambda each: each.bits)


def _ranked(
    words: Words, n: int, spaces: Iterable[_Space], pairs: bool, limit: Deadline
) -> list[tuple[DecisionList, _Space]]:
    """Return the lists of several spaces for some of the words, the shortest first."""
    lists = list[tuple[DecisionList, _Space]]()
    for space in spaces:
        limit.check(f"comparing decision lists over {n} classes of letters")
        lists.append((_of_space(_some(words, slice(_FEW)), n, space, pairs), space))
    return sorted(lists, key=lambda each: each[0].bits)


def _refined(words: Words, n: int, first: DecisionList, space: _Space, pairs: bool, limit: Deadline) -> DecisionList:
    """Learn again with wrong words added until no new word is wrong; `bits` then count the errors on all words."""
    chosen, random = np.arange(min(_FEW, len(words[2]))), np.random.default_rng(0)
    lists, learned = list[DecisionList](), first
    for _ in range(_ROUNDS):
        wrong = np.flatnonzero(learned.wrong(words))
        missed = np.setdiff1d(wrong, chosen)
        lists.append(replace(learned, bits=learned.bits + len(missed) * np.log2(2 * len(words[2]))))
        if not len(missed) or len(wrong) > _HOPELESS * len(words[2]) or limit.left() < 0:
            break
        chosen = np.concatenate([chosen, random.permutation(missed)[:_ADDED]])
        learned = _of_space(_some(words, chosen), n, space, pairs)
    return min(lists, key=lambda each: each.bits)


def _longer_list(words: Words, n: int, tiers: list[tuple[int, ...]], limit: Deadline) -> DecisionList:
    """Return the shortest list with rules of one literal or two, over the first tiers, subsequences, or both."""
    every = tuple(range(n))
    spaces = [_Space(tier, False) for tier in tiers] + [
        _Space((), True),
        _Space(every, True, 2),
        _Space(every, True, 4),
    ]
    refined = list[DecisionList]()
    for first, space in _ranked(words, n, spaces, True, limit)[:_FINAL]:
        # More words lengthen a list: one that is already longer than a complete one is left out.
        if not refined or first.bits < min(each.bits for each in refined):
            refined.append(_refined(words, n, first, space, True, limit))
    return min(refined, key=lambda each: each.bits)


def _counter(tokens: np.ndarray, lengths: np.ndarray, labels: np.ndarray, n: int) -> MooreMachine | None:
    """Return the acceptor that weighs letters modulo the least number and is right on all words; None if none is.

    All weights are tried on some words as long as their number is small, else the weights 0 and 1.
    """
    in_word = np.arange(tokens.shape[1]) < lengths[:, None]
    counts = np.stack([((tokens == a) & in_word).sum(1) for a in range(n)], 1)
    few = counts[:96].T
    for p in _MODULI:
        values = p if p**n <= _WEIGHTINGS else 2
        for begin in range(0, values**n, 4096):
            weights = np.arange(begin, min(begin + 4096, values**n))[:, None] // values ** np.arange(n) % values
            residues = weights @ few % p
            of = [[(residues[:, labels[:96] == y] == r).any(1) for y in (0, 1)] for r in range(p)]
            for w in weights[~np.any([zero & one for zero, one in of], 0)]:
                both = np.stack([np.bincount(counts[labels == y] @ w % p, minlength=p) for y in (0, 1)])
                if not (both.min(0) > 0).any():
                    delta = (np.arange(p) + w[:, None]) % p
                    return MooreMachine(delta, (both[1] > both[0]).astype(int).tolist(), 0, range(n)).minimise()
    return None


def _bits(machine: MooreMachine, words: Words) -> float:
    """Return the bits of a machine's outputs and pairs of a state and a next state, and those of the words."""
    k, n = machine.delta.shape
    step, at, outputs = np.zeros((n, n)), np.eye(1, n, machine.start)[0], np.array(machine.outputs)
    np.add.at(step, (np.tile(np.arange(n), k), machine.delta.ravel()), 1 / k)
    bits = n + 2 * np.log2(max(n, 1)) * sum(len(set(row)) for row in machine.delta.T.tolist())
    sizes = Counter(zip(words[1].tolist(), words[2].tolist(), strict=True))
    for length in range(max(length for length, _ in sizes) + 1):
        for label in (0, 1):
            bits += sizes[length, label] * np.log2(max(at[outputs == label].sum(), 1e-300))
        at = at @ step  # the probabilities of the states after one more letter, drawn uniformly
    return float(bits)
