"""Decision lists over the literals of the subregular hierarchy, learned from labelled words, and their automata.

A rule says that all words that satisfy certain literals, one to three, or do not satisfy them, have a label. Rules are
chosen greedily: each is right on all remaining words, and covers most of them compared with the bits that describe it;
the words that it covers are removed. The list that describes the words in the fewest bits is chosen among several
families of literals: factors on the whole word or on a tier, subsequences, and both. Nothing is known about the class
of the language.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numba import njit

from experiments.studies.mlregtest.literals import FactorFamily, Family, Literal, SubsequenceFamily
from experiments.studies.mlregtest.state_search import ends
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded


class Greed(NamedTuple):
    """How rules are chosen: the labels that they may conclude, and the bits that a covered word is worth."""

    concluding: tuple[int, ...]
    worth: float


_VALUES = (1.0, 12.0)
_GREEDS = tuple(Greed(labels, worth) for worth in _VALUES for labels in ((0, 1), (0,), (1,)))
_LONGEST = 6  # letters of a factor or subsequence
_RULES = 16
_PAIRED, _ALL = 16, 48  # most informative literals per family that are tried together; of two letters at most
_SCREENED, _FINAL = 2000, 4  # words of the first comparison of families, and families compared on all words
_ROUNDS, _ADDED = 16, 1000  # times that wrong words are added, and how many
_SHORT = 60.0  # bits of a list of single literals that ends the search if it is right on all words
_STATES = 100_000  # of an automaton before it is minimised
_HOPELESS = 0.2  # share of wrong words at which a family is given up


@dataclass(frozen=True)
class Rule:
    """Words that satisfy every (literal, polarity) have the label."""

    condition: tuple[tuple[Literal, bool], ...]
    label: int


@dataclass(frozen=True)
class DecisionList:
    """The first rule that applies gives the label, else the default; `bits` describe the words by it."""

    rules: tuple[Rule, ...]
    default: int
    bits: float
    errors: int
    greed: Greed

    def predict(self, tokens: np.ndarray, lengths: np.ndarray, n_letters: int) -> np.ndarray:
        """Return the label of each word, int64 (N,)."""
        labels, is_open = np.full(len(tokens), self.default), np.ones(len(tokens), bool)
        for rule in self.rules:
            applies = is_open.copy()
            for literal, polarity in rule.condition:
                delta, accepts = literal.table(n_letters)
                applies &= accepts[ends(delta, tokens, lengths)] == polarity
            labels[applies] = rule.label
            is_open &= ~applies
        return labels

    def machine(self, n_letters: int) -> MooreMachine:
        """Return the minimal acceptor over the letters 0 … n−1, with the outputs 0 and 1."""
        delta, outputs = np.zeros((n_letters, 1), np.int64), np.array([self.default])
        for rule in reversed(self.rules):
            holds = np.ones(1, bool)
            condition = np.zeros((n_letters, 1), np.int64)
            for literal, polarity in rule.condition:
                table, accepts = literal.table(n_letters)
                condition, q = product_table(condition, table)
                holds = holds[q[:, 0]] & (accepts[q[:, 1]] == polarity)
            delta, q = product_table(delta, condition)
            outputs = np.where(holds[q[:, 1]], rule.label, outputs[q[:, 0]])
            machine = MooreMachine(delta=delta, outputs=outputs.tolist(), alphabet=range(n_letters)).minimise()
            delta, outputs = np.asarray(machine.delta), np.array(machine.outputs)
        return MooreMachine(delta=delta, outputs=outputs.tolist(), alphabet=range(n_letters))


def product_table(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the reachable product of two tables with start 0, and the pair of states of each of its states."""
    codes, frontier = np.zeros(1, np.int64), np.zeros(1, np.int64)
    width = right.shape[1]
    while len(frontier):
        after = np.unique(left[:, frontier // width] * width + right[:, frontier % width])
        frontier = np.setdiff1d(after, codes)
        codes = np.concatenate([codes, frontier])
        if len(codes) > _STATES:
            raise BudgetExceeded(
                f"the automaton of the decision list has more than {_STATES:,} states: learn from more words, "
                "so that the list gets shorter, or by another method"
            )
    order = np.argsort(codes)
    after = left[:, codes // width] * width + right[:, codes % width]
    delta = order[np.searchsorted(codes[order], after)]
    return delta, np.stack([codes // width, codes % width], 1)


def learn_list(
    families: Sequence[Family],
    n_words: int,
    labels: np.ndarray,
    greed: Greed,
    paired: int,
    price: float | None = None,
) -> DecisionList:
    """Return the greedy decision list of these families, all of whose rules are chosen in one way.

    `paired` literals per family, 0 for none, are tried together where no single one covers half of the words. Words
    that no rule covers get the label of most of them; the others count as errors, of so many bits (`price`).
    """
    words, rules, bits = np.arange(n_words), list[Rule](), 0.0
    if price is None:
        price = float(np.log2(2 * n_words))  # to name a word with the wrong label
    for _ in range(_RULES):
        totals = np.bincount(labels[words], minlength=2)
        if totals.min() == 0:
            break
        counts = [family.counts(words, labels) for family in families]
        singles = [_best_single(family, each, totals, greed) for family, each in zip(families, counts, strict=True)]
        score, chosen = max(singles, key=lambda single: single[0])
        if paired and score < greed.worth * totals[list(greed.concluding)].max() / 2:
            pair = _best_conjunction(families, counts, words, labels, greed, paired)
            if pair[0] > score:
                score, chosen = pair
        parts, label = chosen
        if not parts:
            break
        covered = np.ones(len(words), bool)
        for family, number, polarity in parts:
            covered &= family.holds(number, words) == polarity
        cost = 1 + sum(float(family.bits[number]) + 1 for family, number, _ in parts)
        if covered.sum() * price <= cost:
            break
        bits += cost
        rules.append(Rule(tuple((family.literal(number), polarity) for family, number, polarity in parts), label))
        words = words[~covered]
    totals = np.bincount(labels[words], minlength=2)
    errors = int(totals.min())
    return DecisionList(tuple(rules), int(totals.argmax()), bits + errors * price, errors, greed)


def _best_single(family, counts, totals, greed):
    """Return the score and the rule of the best literal that, present or absent, fixes the label."""
    best = (-np.inf, ((), 0))
    for label in greed.concluding:
        other = 1 - label
        for polarity in (True, False):
            covered = counts[label] if polarity else totals[label] - counts[label]
            wrong = counts[other] if polarity else totals[other] - counts[other]
            score = np.where((wrong == 0) & (covered > 0), covered * greed.worth - family.bits, -np.inf)
            number = int(score.argmax())
            if score[number] > best[0]:
                best = (float(score[number]), (((family, number, polarity),), label))
    return best


def _best_conjunction(families, counts, words, labels, greed, paired):
    """Return the score and the rule of the best two or three literals, among the most informative of each family."""
    columns, which = list[np.ndarray](), list[tuple[Family, int, bool]]()
    of = labels[words]
    for family, each in zip(families, counts, strict=True):
        for number in _informative(each, np.bincount(of, minlength=2), paired):
            holds = family.holds(number, words)
            columns += [holds, ~holds]
            which += [(family, number, True), (family, number, False)]
    best = (-np.inf, ((), 0))
    if not columns:
        return best
    x, bits = np.stack(columns), np.array([family.bits[number] + 1 for family, number, _ in which])
    sides = [_packed(x[:, of == y]) for y in (0, 1)]
    for label in greed.concluding:
        score, *parts = _search_conjunctions(sides[label], sides[1 - label], bits, greed.worth)
        if score > best[0]:
            best = (score, (tuple(which[k] for k in parts if k >= 0), label))
    return best


def _packed(x: np.ndarray) -> np.ndarray:
    """Return the rows as bits, bool (n, N) -> uint64 (n, ⌈N / 64⌉)."""
    padded = np.zeros((len(x), -(-x.shape[1] // 64) * 64), bool)
    padded[:, : x.shape[1]] = x
    return np.packbits(padded, axis=1).view(np.uint64)


@njit(cache=True)
def _ones(bits):
    """Return the number of ones in a vector of uint64."""
    count = 0
    for v in bits:
        v = v - ((v >> np.uint64(1)) & np.uint64(0x5555555555555555))
        v = (v & np.uint64(0x3333333333333333)) + ((v >> np.uint64(2)) & np.uint64(0x3333333333333333))
        v = (v + (v >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        count += (v * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return count


@njit(cache=True)
def _search_conjunctions(inside, outside, bits, worth):
    """Return the best score of two or three columns that no word outside satisfies, and the columns, −1 for none."""
    n = len(inside)
    best, first, second, third = -np.inf, -1, -1, -1
    for i in range(n):
        if _ones(inside[i]) * worth - bits[i] <= best:
            continue
        for j in range(i + 1, n):
            both = inside[i] & inside[j]
            cost = bits[i] + bits[j]
            score = _ones(both) * worth - cost
            if score <= max(best, -cost):
                continue
            wrong = outside[i] & outside[j]
            if not wrong.any():
                best, first, second, third = score, i, j, -1
                continue
            for k in range(j + 1, n):
                score = _ones(both & inside[k]) * worth - cost - bits[k]
                if score > max(best, -cost - bits[k]) and not (wrong & outside[k]).any():
                    best, first, second, third = score, i, j, k
    return best, first, second, third


def _informative(counts: np.ndarray, totals: np.ndarray, paired: int) -> list[int]:
    """Return the literals with the most information about the label; of equal counts the first."""

    def entropy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        n = np.maximum(a + b, 1)
        p, q = np.maximum(a / n, 1e-12), np.maximum(b / n, 1e-12)
        return -(a * np.log2(p) + b * np.log2(q))

    gain = -entropy(counts[0], counts[1]) - entropy(totals[0] - counts[0], totals[1] - counts[1])
    chosen, seen = list[int](), set[tuple[int, int]]()
    most = min(8 * paired, len(gain) - 1)
    best = np.sort(np.argpartition(-gain, most)[: most + 1])
    for number in best[np.argsort(-gain[best], kind="stable")].tolist():
        pair = (int(counts[0, number]), int(counts[1, number]))
        if pair not in seen:
            seen.add(pair)
            chosen.append(number)
        if len(chosen) == paired:
            break
    return chosen


class Space(NamedTuple):
    """Lists over one or two families: the tier of the factors, None for none; most letters; literals tried together."""

    tier: tuple[int, ...] | None
    has_subsequences: bool
    longest: int = _LONGEST
    paired: int = _PAIRED


def tiers(n_letters: int) -> list[tuple[int, ...]]:
    """Return all non-empty tiers that omit at most two of the letters 0 … n_letters − 1."""
    letters = tuple(range(n_letters))
    kept = (tuple(a for a in letters if a not in out) for n in range(3) for out in combinations(letters, n))
    return [tier for tier in kept if tier]


def families_of(space: Space, tokens: np.ndarray, lengths: np.ndarray, n_letters: int) -> list[Family]:
    """Return the families of literals of a space, counted on the words."""
    families = list[Family]()
    if space.tier is not None:
        families.append(FactorFamily(tokens, lengths, space.tier, space.longest))
    if space.has_subsequences:
        families.append(SubsequenceFamily(tokens, lengths, n_letters, space.longest))
    return families


class Search:
    """The search for the shortest list that describes words over the letters 0 … n−1 with a label, 0 or 1, each.

    Args:
        tokens: int64 (N, T), padded.
        lengths, labels: of each word, (N,).
        seconds: processor time of `short_list` or `longer_list` after which no further space is searched.
    """

    def __init__(
        self, tokens: np.ndarray, lengths: np.ndarray, labels: np.ndarray, n_letters: int, seconds: float
    ) -> None:
        self.tokens, self.lengths, self.labels, self.n_letters = tokens, lengths, labels, n_letters
        self._seconds = seconds
        self._begin()
        self._few = np.arange(min(_SCREENED, len(tokens)))
        self._price = np.log2(2 * len(tokens))
        self._tiers = tiers(n_letters)

    def short_list(self) -> DecisionList | None:
        """Return a short list of single literals that is right on all words, None if none was learned."""
        self._begin()
        spaces = [Space(tier, False) for tier in self._tiers] + [Space(None, True)]
        lists = {space: self._learn(space, self._few, _GREEDS[:1], pairs=False) for space in spaces}
        self._tiers.sort(key=lambda tier: lists[Space(tier, False)].bits)
        space = min(spaces, key=lambda space: lists[space].bits)
        if lists[space].bits > _SHORT:
            return None
        learned = self._refined(space, lists[space])
        return None if learned.errors or learned.bits > _SHORT else learned

    def longer_list(self) -> DecisionList:
        """Return the shortest list with rules of one literal or two, after `short_list`.

        A space is first tried on some of the words; the best are searched again with the words that they get wrong.
        """
        self._begin()
        letters = tuple(range(self.n_letters))
        mixed = list(dict.fromkeys([letters, *self._tiers[:2]]))
        spaces = [Space(tier, False) for tier in self._tiers[:_FINAL]] + [Space(None, True)]
        spaces += [Space(tier, True, 2, _ALL) for tier in mixed] + [Space(tier, True) for tier in mixed]
        lists = dict[Space, DecisionList]()
        for space in spaces:
            # Half of the time is for the search with all words.
            if not lists or time.process_time() < self._half:
                lists[space] = self._learn(space, self._few)
        refined = list[DecisionList]()
        for space in sorted(lists, key=lambda space: lists[space].bits)[:_FINAL]:
            # More words lengthen a list: one that is already longer than a complete one is left out.
            if not refined or (self._has_time and lists[space].bits < min(each.bits for each in refined)):
                refined.append(self._refined(space, lists[space]))
        return min(refined, key=lambda each: each.bits)

    def _begin(self) -> None:
        self._half = time.process_time() + self._seconds / 2
        self._end = self._half + self._seconds / 2

    @property
    def _has_time(self) -> bool:
        return time.process_time() < self._end

    def _learn(
        self, space: Space, some: np.ndarray, greeds: Sequence[Greed] = _GREEDS, *, pairs: bool = True
    ) -> DecisionList:
        families = families_of(space, self.tokens[some], self.lengths[some], self.n_letters)
        paired = space.paired if pairs else 0
        lists = (learn_list(families, len(some), self.labels[some], each, paired) for each in greeds)
        return min(lists, key=lambda each: each.bits)

    def _refined(self, space: Space, learned: DecisionList) -> DecisionList:
        """Learn again with wrong words added until no new word is wrong; return the list with its length and errors."""
        some, random = self._few, np.random.default_rng(0)
        best: DecisionList | None = None
        for _ in range(_ROUNDS):
            wrong = np.flatnonzero(learned.predict(self.tokens, self.lengths, self.n_letters) != self.labels)
            bits = learned.bits + (len(wrong) - learned.errors) * self._price
            learned = replace(learned, bits=bits, errors=len(wrong))
            if best is None or learned.bits < best.bits:
                best = learned
            new = np.setdiff1d(wrong, some)
            if not len(new) or len(wrong) > _HOPELESS * len(self.tokens) or not self._has_time:
                break
            some = np.concatenate([some, random.permutation(new)[:_ADDED]])
            learned = self._learn(space, some, [learned.greed])
        return best or learned
