"""Decision lists over the literals of the subregular hierarchy, learned from labelled words, and their automata.

A rule says that all words that satisfy one literal, or two, or none of one, have a label. Rules are chosen greedily:
each is right on all remaining words, and covers most of them compared with the bits that describe it; the words that it
covers are removed. The list that describes the words in the fewest bits is chosen among several families of literals:
factors on the whole word or on a tier, subsequences, and both. Nothing is known about the class of the language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numba import njit

from experiments.studies.mlregtest.literals import FactorFamily, Family, Literal, SubsequenceFamily
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import NEVER, Deadline

Conclusions = tuple[int, ...]
_ANY: tuple[Conclusions, ...] = ((0, 1), (0,), (1,))  # labels that all rules of a list may conclude
_LONGEST = 6  # letters of a factor or subsequence
_RULES = 16
_PAIRED = 24  # most informative literals per family that are tried in pairs
_SCREENED, _FINAL = 2000, 4  # words of the first comparison of families, and families compared on all words
_ROUNDS, _ADDED = 16, 1000  # times that wrong words are added, and how many
_SHORT = 60.0  # bits of a list of single literals that ends the search if it is right on all words
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

    def predict(self, tokens: np.ndarray, lengths: np.ndarray, n_letters: int) -> np.ndarray:
        """Return the label of each word, int64 (N,)."""
        labels, is_open = np.full(len(tokens), self.default), np.ones(len(tokens), bool)
        for rule in self.rules:
            applies = is_open.copy()
            for literal, polarity in rule.condition:
                delta, accepts = literal.table(n_letters)
                applies &= accepts[_ends(delta, tokens, lengths)] == polarity
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
                condition, q = _product(condition, table)
                holds = holds[q[:, 0]] & (accepts[q[:, 1]] == polarity)
            delta, q = _product(delta, condition)
            outputs = np.where(holds[q[:, 1]], rule.label, outputs[q[:, 0]])
            machine = MooreMachine(delta=delta, outputs=outputs.tolist(), alphabet=range(n_letters)).minimise()
            delta, outputs = np.asarray(machine.delta), np.array(machine.outputs)
        return MooreMachine(delta=delta, outputs=outputs.tolist(), alphabet=range(n_letters))


@njit(cache=True)
def _ends(delta, tokens, lengths):
    """Return the state after each word."""
    ends = np.zeros(len(tokens), np.int64)
    for i in range(len(tokens)):
        for t in range(lengths[i]):
            ends[i] = delta[tokens[i, t], ends[i]]
    return ends


def _product(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the reachable product of two tables with start 0, and the pair of states of each of its states."""
    codes, frontier = np.zeros(1, np.int64), np.zeros(1, np.int64)
    width = right.shape[1]
    while len(frontier):
        after = np.unique(left[:, frontier // width] * width + right[:, frontier % width])
        frontier = np.setdiff1d(after, codes)
        codes = np.concatenate([codes, frontier])
    order = np.argsort(codes)
    after = left[:, codes // width] * width + right[:, codes % width]
    delta = order[np.searchsorted(codes[order], after)]
    return delta, np.stack([codes // width, codes % width], 1)


def learn_list(
    families: Sequence[Family],
    n_words: int,
    labels: np.ndarray,
    concluding: Conclusions,
    pairs: bool,
    deadline: Deadline = NEVER,
) -> DecisionList:
    """Return the greedy decision list of these families, all of whose rules conclude one of these labels.

    Words that no rule covers get the label of most of them; the others count as errors.
    """
    words, rules, bits = np.arange(n_words), list[Rule](), 0.0
    worth = np.log2(2 * n_words)  # bits that name a word with the wrong label
    for _ in range(_RULES):
        totals = np.bincount(labels[words], minlength=2)
        if totals.min() == 0:
            break
        deadline.check(f"choosing literals, {len(rules)} rules so far")
        counts = [family.counts(words, labels) for family in families]
        singles = [
            _best_single(family, each, totals, concluding, worth) for family, each in zip(families, counts, strict=True)
        ]
        score, chosen = max(singles, key=lambda single: single[0])
        if pairs and score < worth * totals[list(concluding)].max() / 2:
            pair = _best_pair(families, counts, words, labels, concluding, worth)
            if pair[0] > score:
                score, chosen = pair
        if score <= 0:
            break
        parts, label = chosen
        covered = np.ones(len(words), bool)
        for family, number, polarity in parts:
            covered &= family.holds(number, words) == polarity
        bits += 1 + sum(float(family.bits[number]) + 1 for family, number, _ in parts)
        rules.append(Rule(tuple((family.literal(number), polarity) for family, number, polarity in parts), label))
        words = words[~covered]
    totals = np.bincount(labels[words], minlength=2)
    errors = int(totals.min())
    return DecisionList(tuple(rules), int(totals.argmax()), bits + errors * worth, errors)


def _best_single(family, counts, totals, concluding, worth):
    """Return the score and the rule of the best literal that, present or absent, fixes the label."""
    best = (-np.inf, ((), 0))
    for label in concluding:
        other = 1 - label
        for polarity in (True, False):
            covered = counts[label] if polarity else totals[label] - counts[label]
            wrong = counts[other] if polarity else totals[other] - counts[other]
            score = np.where((wrong == 0) & (covered > 0), covered * worth - family.bits, -np.inf)
            number = int(score.argmax())
            if score[number] > best[0]:
                best = (float(score[number]), (((family, number, polarity),), label))
    return best


def _best_pair(families, counts, words, labels, concluding, worth):
    """Return the score and the rule of the best two literals, among the most informative of each family."""
    columns, which = list[np.ndarray](), list[tuple[Family, int, bool]]()
    for family, each in zip(families, counts, strict=True):
        for number in _informative(each, np.bincount(labels[words], minlength=2)):
            holds = family.holds(number, words)
            columns += [holds, ~holds]
            which += [(family, number, True), (family, number, False)]
    x = np.stack(columns, 1).astype(np.float32)
    bits = np.array([family.bits[number] for family, number, _ in which])
    both = [x[labels[words] == y].T @ x[labels[words] == y] for y in (0, 1)]
    best = (-np.inf, ((), 0))
    for label in concluding:
        score = np.where(both[1 - label] == 0, both[label] * worth - bits[:, None] - bits, -np.inf)
        score = np.where(both[label] > 0, score, -np.inf)
        i, j = np.unravel_index(score.argmax(), score.shape)
        if score[i, j] > best[0]:
            best = (float(score[i, j]), ((which[i], which[j]), label))
    return best


def _informative(counts: np.ndarray, totals: np.ndarray) -> list[int]:
    """Return the literals with the most information about the label; of equal counts the first."""

    def entropy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        n = np.maximum(a + b, 1)
        p, q = np.maximum(a / n, 1e-12), np.maximum(b / n, 1e-12)
        return -(a * np.log2(p) + b * np.log2(q))

    gain = -entropy(counts[0], counts[1]) - entropy(totals[0] - counts[0], totals[1] - counts[1])
    chosen, seen = list[int](), set[tuple[int, int]]()
    most = min(8 * _PAIRED, len(gain) - 1)
    best = np.sort(np.argpartition(-gain, most)[: most + 1])
    for number in best[np.argsort(-gain[best], kind="stable")].tolist():
        pair = (int(counts[0, number]), int(counts[1, number]))
        if pair not in seen:
            seen.add(pair)
            chosen.append(number)
        if len(chosen) == _PAIRED:
            break
    return chosen


def simplest_list(
    tokens: np.ndarray, lengths: np.ndarray, labels: np.ndarray, n_letters: int, deadline: Deadline = NEVER
) -> DecisionList:
    """Return the decision list with the shortest description among all families.

    A family is first tried on some of the words; the best are learned again with the words that they get wrong, until
    they are right on all. Raises `OutOfTime` at the deadline.
    """
    few = min(_SCREENED, len(tokens))
    everything = tuple(range(n_letters))
    tiers = [tuple(a for a in everything if a not in out) for n in range(3) for out in combinations(everything, n)]
    tiers = [tier for tier in tiers if tier]

    def learn(
        tier: tuple[int, ...] | None,
        subsequences: bool,
        some: np.ndarray,
        *,
        conclusions: Sequence[Conclusions] = _ANY,
        pairs: bool = True,
    ) -> DecisionList:
        families = list[Family]()
        if tier is not None:
            families.append(FactorFamily(tokens[some], lengths[some], tier, _LONGEST))
        if subsequences:
            families.append(SubsequenceFamily(tokens[some], lengths[some], n_letters, _LONGEST))
        lists = (learn_list(families, len(some), labels[some], each, pairs, deadline) for each in conclusions)
        return min(lists, key=lambda each: each.bits)

    def refined(tier: tuple[int, ...] | None, subsequences: bool, first: DecisionList) -> DecisionList:
        some, learned, random = np.arange(few), first, np.random.default_rng(0)
        for _ in range(_ROUNDS):
            wrong = np.flatnonzero(learned.predict(tokens, lengths, n_letters) != labels)
            # Words that are already used and still wrong would change nothing.
            new = np.setdiff1d(wrong, some)
            learned = replace(
                learned, bits=learned.bits + (len(wrong) - learned.errors) * np.log2(2 * len(tokens)), errors=len(wrong)
            )
            if not len(new) or learned.errors > _HOPELESS * len(tokens):
                return learned
            some = np.concatenate([some, random.permutation(new)[:_ADDED]])
            learned = learn(tier, subsequences, some)
        wrong = int((learned.predict(tokens, lengths, n_letters) != labels).sum())
        return replace(learned, bits=learned.bits + (wrong - learned.errors) * np.log2(2 * len(tokens)), errors=wrong)

    first = np.arange(few)
    # Lists of single literals first: where a short one is right on all words, pairs are not tried.
    keys = [(tier, False) for tier in tiers] + [(None, True)]
    screened = {key: learn(*key, first, conclusions=_ANY[:1], pairs=False) for key in keys}
    key = min(screened, key=lambda key: screened[key].bits)
    if screened[key].bits <= _SHORT:
        learned = refined(*key, screened[key])
        if not learned.errors and learned.bits <= _SHORT:
            return learned
    best = sorted(tiers, key=lambda tier: screened[tier, False].bits)[:_FINAL]
    keys = [*((tier, False) for tier in best), (None, True), *((tier, True) for tier in {*best[:2], everything})]
    screened = {key: learn(*key, first) for key in keys}
    lists = list[DecisionList]()
    for key in sorted(screened, key=lambda key: screened[key].bits)[:_FINAL]:
        # More words lengthen a list: one that is already longer than a complete one is left out.
        if not lists or screened[key].bits < min(each.bits for each in lists):
            lists.append(refined(*key, screened[key]))
    return min(lists, key=lambda each: each.bits)
