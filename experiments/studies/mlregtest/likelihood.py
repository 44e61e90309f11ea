"""Rules that make labelled words more likely, if words are drawn uniformly by label and length as MLRegTest draws them.

A word with a label is then as likely as one of all words of its length that an acceptor gives this label: of two
acceptors that are right on all words, the one that gives a label to fewer words explains the words with this label
better. `likely` compares the words with a rare label with as many drawn from what the learned acceptor gives this
label. Rules that hold for many of the drawn words and for none of the given ones change the acceptor, as long as the
words get more likely by more bits than describe the rules.
"""

from __future__ import annotations

import time

import numpy as np

from experiments.studies.mlregtest.decision_lists import (
    DecisionList,
    Greed,
    Space,
    families_of,
    learn_list,
    product_table,
    tiers,
)
from experiments.studies.mlregtest.hierarchy import by_hierarchy, end_labels
from experiments.studies.mlregtest.letter_classes import letter_classes
from experiments.studies.mlregtest.state_search import Words, from_zero
from experiments.studies.mlregtest.words import LanguageWords
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.learning import Data

_WORD = 1.44  # bits that a drawn word without the label is worth, if these are few: 1 / ln 2
_GREED = Greed((0,), _WORD)
_SAMPLES = (4000, 60_000)  # words that rules are learned on, the second if the first give none
_ROUNDS, _COUNTEREXAMPLES = 8, 1000  # times that given words with a rule are added, and how many
_FINAL = 2  # spaces of literals that are compared on all words
_GAIN = 10.0  # bits of rules that are taken
_CHANGES = 6  # rounds of rules for both labels
_IN_ALL = 8  # times the seconds
_RARE = 0.25  # share of all words with a label that is compared
_SMALL, _MOST = 5, 12  # letters that are not united, and classes that are tried


def likely(data: Data, seconds: float = 6.0) -> MooreMachine:
    """Return the acceptor of `by_hierarchy`, with rules that make the words more likely.

    Args:
        seconds: as for `by_hierarchy`; the search for rules takes about as much per label and sample, and ends after
            eight times as much in all.
    """
    end = time.process_time() + _IN_ALL * seconds
    machine = by_hierarchy(data, seconds)
    words, n_letters = end_labels(data), len(data.alphabet)
    for seed in range(_CHANGES):
        before = machine
        for label in (False, True):
            has_time = time.process_time() < end - 2 * seconds
            if has_time and 0 < _share(machine, label, int(words[1].max())) < _RARE:
                machine = refined(machine, label, words, n_letters, seconds, seed)
        if machine == before:
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
    compared = _compared(machine, label, words, seed)
    classes = np.arange(n_letters) if n_letters <= _SMALL else letter_classes(*compared, n_letters)
    n_classes = int(classes.max()) + 1
    if not 1 < n_classes <= _MOST:
        return machine
    over_classes = np.ascontiguousarray(classes[compared[0]]), *compared[1:]
    for size in _SAMPLES:
        if (rules := _rules(over_classes, n_classes, size, seconds)) is not None:
            table, outputs = from_zero(machine)
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


def _rules(words: Words, n_letters: int, size: int, seconds: float) -> DecisionList | None:
    """Return rules that no word with the label 1 satisfies and whose words with the label 0 are worth more bits.

    They are learned on the first words; words with the label 1 that satisfy one are added.
    """
    tokens, lengths, labels = words
    end, random = time.process_time() + seconds, np.random.default_rng(0)
    spaces = [Space(tier, False) for tier in tiers(n_letters)] + [Space(None, True)]

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
        n, covered = int((labels == 0).sum()), int(excluded.sum())
        gain = n * np.log2(n / max(n - covered, 0.5)) - rules.bits + rules.errors * _WORD
        if rules.rules and gain > most:
            best, most = rules, gain
    return best
