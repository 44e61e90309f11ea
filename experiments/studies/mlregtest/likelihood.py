"""Rules that make labelled words more likely, if words are drawn uniformly by label and length as MLRegTest draws them.

A word with a label is then as likely as one of all words of its length that an acceptor gives this label: of two
acceptors that are right on all words, the one that gives a label to fewer words explains the words with this label
better. `likely` compares the words with a rare label with as many drawn from what the learned acceptor gives this
label. Rules that hold for many of the drawn words and for none of the given ones change the acceptor, as long as the
words get more likely by more bits than describe the rules; these bits are counted on words drawn anew. Then single
transitions and outputs change as long as no word gets wrong and the words get more likely by more bits than describe
the change (`improved`).

Two acceptors are refined so: that of `by_hierarchy` and that of the shortest decision list. Of those that are right on
all words, the one that describes the words in the fewest bits is taken, its own description included (`description`).
"""

from __future__ import annotations

import time
from collections import Counter
from typing import NamedTuple

import numpy as np
from numba import njit

from experiments.studies.mlregtest.decision_lists import (
    DecisionList,
    Greed,
    Space,
    families_of,
    learn_list,
    product_table,
    tiers,
)
from experiments.studies.mlregtest.hierarchy import by_hierarchy, by_lists, end_labels
from experiments.studies.mlregtest.letter_classes import letter_classes
from experiments.studies.mlregtest.state_search import Words, complexity, errors_of, from_zero
from experiments.studies.mlregtest.words import LanguageWords
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.learning import Data

_WORD = 1.44  # bits that a drawn word without the label is worth, if these are few: 1 / ln 2
_GREED = Greed((0,), _WORD)
_SAMPLES = (4000, 60_000)  # words that rules are learned on, the second if the first give none
_ROUNDS, _COUNTEREXAMPLES = 8, 1000  # times that given words with a rule are added, and how many
_FINAL = 2  # spaces of literals that are compared on all words
_GAIN = 10.0  # bits of rules that are taken
_CHANGES = 6  # rounds of rules for both labels
_IN_ALL, _AGAIN = 8, 3  # times the seconds, in all and if no acceptor is right
_RARE = 0.25  # share of all words with a label that is compared
_SMALL, _MOST = 5, 12  # letters that are not united, and classes that are tried
_IMPROVED, _CANDIDATES = 60, 30_000  # states of a machine that is improved, and changes of single letters


def likely(data: Data, seconds: float = 12.0) -> MooreMachine:
    """Return the acceptor of the shortest description, of `by_hierarchy` or of a list, each with and without rules.

    If no acceptor is right on all words, it is learned again in three times the time.

    Args:
        seconds: as for `by_hierarchy`; the search for rules takes about as much per label and sample, and ends after
            eight times as much in all for either acceptor.

    Raises:
        UnsupportedFormat: as `by_hierarchy` does.
        BudgetExceeded: if neither acceptor can be learned.
    """
    words, candidates, problem = end_labels(data), list[MooreMachine](), BudgetExceeded()
    for each in (seconds, _AGAIN * seconds):
        for learn in (by_hierarchy, by_lists):
            end = time.process_time() + _IN_ALL * each
            try:
                machine = learn(data, each)
            except BudgetExceeded as error:
                problem = error
                continue
            if machine not in candidates:
                candidates += [machine, _with_rules(machine, words, len(data.alphabet), each, end)]
        if any(not errors_of(machine, words) for machine in candidates):
            break
    if not candidates:
        raise problem
    return min(candidates, key=lambda each: (errors_of(each, words), description(each, words)))


def description(machine: MooreMachine, words: Words) -> float:
    """Return the bits of a machine's outputs and of the pairs of a state and a next state, and those of the words.

    A word of n letters takes log₂ of the share of all words of n letters that the machine gives its label, relative to
    a word whose label is not known.
    """
    n_states, pairs = complexity(machine)
    bits = n_states + 2 * pairs * np.log2(max(n_states, 1))
    for (length, label), size in _sizes(words).items():
        bits += size * np.log2(max(_share(machine, label, length), 1e-300))
    return float(bits)


def _sizes(words: Words) -> dict[tuple[int, bool], int]:
    """Return the number of words of each length and label."""
    return {(int(n), bool(y)): int(size) for (n, y), size in Counter(zip(words[1], words[2], strict=True)).items()}


def _with_rules(machine: MooreMachine, words: Words, n_letters: int, seconds: float, end: float) -> MooreMachine:
    """Return the machine after rules and changes that make the words more likely, until the processor time `end`."""
    for seed in range(_CHANGES):
        before = machine
        for label in (False, True):
            has_time = time.process_time() < end - 2 * seconds
            if has_time and 0 < _share(machine, label, int(words[1].max())) < _RARE:
                try:
                    machine = refined(machine, label, words, n_letters, seconds, seed)
                except BudgetExceeded:  # the rules make too many states
                    continue
        if machine == before and (machine := improved(machine, words)) == before:
            break
    return machine


def _share(machine: MooreMachine, label: bool, length: int) -> float:
    """Return the share of all words of a length that get a label."""
    share = np.array([float(output == label) for output in machine.outputs])
    for _ in range(length):
        share = share[machine.delta].mean(0)
    return float(share[machine.start])


def refined(
    machine: MooreMachine, label: bool, words: Words, n_letters: int, seconds: float, seed: int
) -> MooreMachine:
    """Return the machine that gives the label to no words of certain rules, if such rules were found."""
    compared, again = (_compared(machine, label, words, each) for each in (seed, seed + _CHANGES))
    table, outputs = from_zero(machine)
    partitions = [np.arange(n_letters)]
    if n_letters > _SMALL:
        alike = np.unique(table, axis=0, return_inverse=True)[1].ravel()
        partitions = [letter_classes(*compared, n_letters), alike]
        if len(np.unique(partitions, axis=1).T) == len(np.unique(alike)) == len(np.unique(partitions[0])):
            partitions = [alike]  # the same classes
        partitions = [classes for classes in partitions if 1 < classes.max() + 1 <= _MOST]
    for size in _SAMPLES:
        for classes in partitions:
            n_classes = int(classes.max()) + 1
            first, second = ((np.ascontiguousarray(classes[each[0]]), *each[1:]) for each in (compared, again))
            if (rules := _rules(first, second, n_classes, size, seconds)) is not None:
                of_rules, keeps = from_zero(rules.machine(n_classes))
                both, q = product_table(table, of_rules[classes])
                of = np.where(keeps[q[:, 1]], outputs[q[:, 0]], not label)
                return MooreMachine(delta=both, outputs=of.tolist(), alphabet=machine.alphabet).minimise()
    return machine


def _compared(machine: MooreMachine, label: bool, words: Words, seed: int) -> Words:
    """Return the words with a label, labelled 1, and as many that the machine gives this label, labelled 0."""
    tokens, lengths, labels = words
    given = np.flatnonzero(labels == label)
    draw = LanguageWords(machine, seed)
    parts = [(tokens[given], lengths[given], np.ones(len(given), np.int64))]
    for length, size in zip(*np.unique(lengths[given], return_counts=True), strict=True):
        drawn = np.zeros((size, tokens.shape[1]), np.int64)
        drawn[:, :length] = draw.draw(int(length), label, int(size))
        parts.append((drawn, np.full(size, length), np.zeros(size, np.int64)))
    order = np.random.default_rng(seed).permutation(2 * len(given))
    a, b, c = (np.concatenate(each)[order] for each in zip(*parts, strict=True))
    return a, b, c


def _rules(words: Words, again: Words, n_letters: int, size: int, seconds: float) -> DecisionList | None:
    """Return rules that no word with the label 1 satisfies and whose words with the label 0 are worth more bits.

    They are learned on the first words; words with the label 1 that satisfy one are added. What they are worth is
    counted on other words with the label 0, those of `again`.
    """
    tokens, lengths, labels = words
    end, random = time.process_time() + seconds, np.random.default_rng(0)
    spaces = [Space(tier, False) for tier in tiers(n_letters)] + [Space(None, True)]
    tokens_again, lengths_again, _ = (part[again[2] == 0] for part in again)

    def learned(space: Space, some: np.ndarray) -> DecisionList:
        families = families_of(space, tokens[some], lengths[some], n_letters)
        return learn_list(families, len(some), labels[some], _GREED, space.paired, _WORD)

    lists = dict[Space, DecisionList]()
    few = np.arange(min(size, len(labels)))
    for space in spaces:
        if not lists or time.process_time() < end:
            lists[space] = learned(space, few)
    best, most = None, _GAIN
    for space in sorted(lists, key=lambda space: lists[space].bits)[:_FINAL]:
        rules, some = lists[space], few
        for _ in range(_ROUNDS):
            excluded = rules.predict(tokens, lengths, n_letters) == 0
            wrong = np.flatnonzero(excluded & (labels == 1))
            if not len(wrong):
                break
            some = np.union1d(some, random.permutation(wrong)[:_COUNTEREXAMPLES])
            rules = learned(space, some)
        else:
            continue
        n, covered = len(lengths_again), int((rules.predict(tokens_again, lengths_again, n_letters) == 0).sum())
        gain = n * np.log2(n / max(n - covered, 0.5)) - rules.bits + rules.errors * _WORD
        if rules.rules and gain > most:
            best, most = rules, gain
    return best


def improved(machine: MooreMachine, words: Words) -> MooreMachine:
    """Return the machine after changes of single transitions or outputs that make words of their labels more likely.

    Each change leaves all words right, and is worth `_GAIN` bits more than it takes to name it among all changes. A
    machine that gets words wrong or has more than `_IMPROVED` states is returned as it is.
    """
    sizes = _sizes(words)
    order = np.random.default_rng(0).permutation(len(words[1]))  # so that few words tell that a change is wrong
    mixed = tuple(part[order] for part in words)
    while machine.n_states <= _IMPROVED and not errors_of(machine, words):
        table, outputs = from_zero(machine)
        changes = _changes(table)
        gains = _gains(table, outputs.astype(bool), changes, sizes)
        order = np.argsort(-gains, kind="stable")
        for k in order[gains[order] > _GAIN + np.log2(len(gains))]:
            delta, of = table.copy(), outputs.copy()
            if k < len(changes.state):
                delta[changes.letters[k], changes.state[k]] = changes.to[k]
            else:
                of[k - len(changes.state)] ^= 1
            if _is_right(delta, of, *mixed):
                machine = MooreMachine(delta=delta, outputs=of.tolist(), alphabet=machine.alphabet).minimise()
                break
        else:
            break
    return machine


@njit(cache=True)
def _is_right(delta, outputs, tokens, lengths, labels):
    """Return whether a table with the start 0 is right on all words."""
    for i in range(len(lengths)):
        q = 0
        for t in range(lengths[i]):
            q = delta[tokens[i, t], q]
        if outputs[q] != labels[i]:
            return False
    return True


class _Changes(NamedTuple):
    """Transitions redirected from a state to another by some letters."""

    letters: list[np.ndarray]
    state: np.ndarray
    to: np.ndarray


def _changes(table: np.ndarray) -> _Changes:
    """Return all changes of letters that act alike, and of single letters unless these are too many."""
    alike = np.unique(table, axis=0, return_inverse=True)[1].ravel()
    n = table.shape[1]
    groups = [np.flatnonzero(alike == c) for c in range(alike.max() + 1)]
    if len(table) * n * n <= _CANDIDATES:
        groups += [np.array([a]) for a in range(len(table)) if (alike == alike[a]).sum() > 1]
    of, state, to = (x.ravel() for x in np.meshgrid(range(len(groups)), range(n), range(n), indexing="ij"))
    differs = np.array([table[group[0]] for group in groups])[of, state] != to
    return _Changes([groups[g] for g in of[differs]], state[differs], to[differs])


def _gains(table: np.ndarray, outputs: np.ndarray, changes: _Changes, sizes: dict[tuple[int, bool], int]) -> np.ndarray:
    """Return by how many bits the words get more likely by each change, and by a change of each state's output."""
    n_letters, n = table.shape
    step = np.zeros((n, n))
    np.add.at(step, (np.tile(np.arange(n), n_letters), table.ravel()), 1 / n_letters)
    count, every = len(changes.state), np.arange(len(changes.state))
    share = np.array([len(letters) / n_letters for letters in changes.letters])
    before = np.array([table[letters[0], q] for letters, q in zip(changes.letters, changes.state, strict=True)])
    at, reached = np.eye(1, n)[0], np.tile(np.eye(1, n), (count, 1))  # probabilities of the states
    gains = np.zeros(count + n)
    for length in range(1, max(length for length, _ in sizes) + 1):
        moved = reached[every, changes.state] * share
        reached = reached @ step
        reached[every, before] -= moved
        reached[every, changes.to] += moved
        at = at @ step
        for label in (False, True):
            if size := sizes.get((length, label)):
                is_label = outputs == label
                now = at[is_label].sum()
                flipped = now + np.where(is_label, -at, at)
                after = np.concatenate([reached[:, is_label].sum(1), flipped])
                gains += size * np.log2(now / np.maximum(after, 1e-300))
    return gains
