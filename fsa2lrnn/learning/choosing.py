"""The choice of a method for a user's words: what the data show, the methods in turn, and the simplest machine.

The machine with the shortest description of the labels and itself wins. The choice ends early if it is found twice
from independent starts, if a method without random choices describes the labels in half of their nats, or if a
hypothesis has no errors; and if its errors depend neither on the state nor on the last letters, as wrong labels do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.heads import Heads
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime, counted
from fsa2lrnn.learning.hypotheses import subregular
from fsa2lrnn.learning.merging import description, merge, wrong_labels
from fsa2lrnn.learning.result import NoiseEstimate
from fsa2lrnn.learning.search import search
from fsa2lrnn.learning.word_files import Data

SECONDS = 120.0
"""The default limit of the choice, in seconds of processor time."""
_STALE = 100  # starts without a shorter description, after which the search ends
_ROUND = 16  # starts of the search, after which a machine that was found twice ends it
_SIMPLE = 0.5  # times the nats of uniform labels: a merger or hypothesis of a shorter description ends the choice
_SHARE = {"merging": 0.5, "hypotheses": 0.8}  # of the limit


@dataclass(frozen=True)
class DataSurvey:
    """What is seen of words with outputs before anything is learned.

    Args:
        shortest, longest: letters of the words with a label.
        at_end: whether each word has one label, at its end.
        repeated, contradicting: labels of prefixes that occur more than once, and those that are not the most frequent
            one of their prefix.
        by_ending: share of labels that are not the most frequent one after the same `ending` last letters.
    """

    words: int
    shortest: int
    longest: int
    letters: int
    outputs: int
    labels: int
    at_end: bool
    repeated: int
    contradicting: int
    ending: int
    by_ending: float

    def __str__(self) -> str:
        place = "at the ends" if self.at_end else f"{self.labels / self.words:.1f} per word"
        same = f"{self.contradicting:,} of {self.repeated:,} labels of equal words contradict the others"
        return (
            f"{self.words:,} words of {self.shortest} to {self.longest} letters, {self.letters} letters, "
            f"{self.outputs} outputs, {place}; {same if self.repeated else 'no two words are equal'}, "
            f"{self.by_ending:.1%} of all after the same last {counted(self.ending, 'letter')}"
        )


def survey(data: Data) -> DataSurvey:
    """Return what is seen of the data.

    >>> from fsa2lrnn.learning.word_files import from_pairs
    >>> seen = survey(from_pairs([("ab", 1), ("ab", 0), ("bb", 1), ("aab", 0)]))
    >>> seen.at_end, seen.repeated, seen.contradicting, seen.ending, seen.by_ending
    (True, 2, 1, 1, 0.5)
    """
    tokens, labels, lengths = data.tokens.numpy(), data.labels.numpy(), data.lengths.numpy()
    rows, places = np.nonzero(labels != UNCOUNTED)
    given, k = labels[rows, places], len(data.alphabet)
    ending = max(1, int(math.log(max(len(given) / 20, 2), max(k, 2))))
    # Prefixes as hashes: the polynomial of their letters modulo 2^64.
    hashes = np.zeros(labels.shape, np.uint64)
    for t in range(tokens.shape[1]):
        hashes[:, t + 1] = hashes[:, t] * np.uint64(0x9E3779B97F4A7C15) + tokens[:, t].astype(np.uint64) + np.uint64(1)
    codes = np.zeros(len(rows), np.int64)
    for back in range(1, ending + 1):
        inside = places >= back
        codes = codes * (k + 1) + np.where(inside, tokens[rows, np.maximum(places - back, 0)], k)
    repeated, contradicting = _minority(hashes[rows, places], given, 2)
    everything, differing = _minority(codes, given, 1)
    return DataSurvey(
        len(tokens), int(places.min()), int(places.max()), k, len(data.outputs), len(given),
        bool(len(rows) == len(tokens) and (places == lengths[rows]).all()), repeated, contradicting, ending,
        differing / everything,
    )  # fmt: skip


def _minority(groups: np.ndarray, labels: np.ndarray, least: int) -> tuple[int, int]:
    """Return the labels in groups of at least so many, and those that are not the most frequent of their group."""
    numbers = np.unique(groups, return_inverse=True)[1].ravel()
    totals = np.bincount(numbers)
    n_outputs = int(labels.max()) + 1
    codes, counts = np.unique(numbers * n_outputs + labels, return_counts=True)
    most = np.maximum.reduceat(counts, np.unique(codes // n_outputs, return_index=True)[1])
    many = totals >= least
    return int(totals[many].sum()), int((totals - most)[many].sum())


def estimate_noise(machine: MooreMachine, data: Data) -> NoiseEstimate:
    """Return the share of labels that differ from the machine's outputs, and how much it depends on the context.

    Errors are counted by the state and the last two letters. The sum of their squared deviations from independence,
    each divided by its variance, has the mean and half the variance of its number of terms if errors are independent.
    """
    labels, tokens = data.labels.numpy(), data.tokens.numpy()
    rows, places = np.nonzero(labels != UNCOUNTED)
    states = Heads(machine.delta[:, None, :], np.array([machine.start])).states(tokens)[rows, places, 0]
    number = {output: j for j, output in enumerate(data.outputs)}
    wrong = np.array([number[output] for output in machine.outputs])[states] != labels[rows, places]
    k, share = len(data.alphabet), wrong.mean()
    context = states.astype(np.int64)
    for back in (1, 2):
        context = context * (k + 1) + np.where(places >= back, tokens[rows, np.maximum(places - back, 0)], k)
    of, counts = np.unique(context, return_inverse=True, return_counts=True)[1:]
    many = counts * share >= 1
    deviation = np.bincount(of.ravel(), wrong)[many] - counts[many] * share
    terms = int(many.sum())
    squares = (deviation**2 / (counts[many] * share * (1 - share))).sum() if terms else 0.0
    return NoiseEstimate(int(wrong.sum()), len(wrong), float((squares - terms) / math.sqrt(2 * max(terms, 1))))


def choose(data: Data, noise: float | None, limit: Deadline, report: Callable[[str], None]) -> MooreMachine:
    """Return the machine of the shortest description that the methods find within the limit.

    Args:
        noise: the stated share of wrong labels, None if it is to be estimated.
        report: called once with what is seen and chosen.

    Raises `BudgetExceeded` if no method finds a machine.
    """
    # Methods look at the first words first, and files are often sorted.
    data = data.shuffled(0)
    seen = survey(data)
    methods = plan(seen)
    report(f"{seen}: {' and '.join(methods)}, at most {limit.seconds:g} s of processor time")
    best, least, times, at = None, (seen.labels, math.inf), 0, 0
    n_bits = seen.labels * math.log(seen.outputs)
    for method in methods:
        part = limit if method == methods[-1] else limit.share(_SHARE[method])
        with suppress(OutOfTime, BudgetExceeded):
            for count, machine in enumerate(_machines(method, data, noise, part), 1):
                # If all labels are right, a machine that is wrong on fewer of them is better.
                described = wrong_labels(machine, data) if noise == 0 else 0, description(machine, data)
                if described < least:
                    best, least, times, at = machine, described, 1, count
                elif described == least:  # the same machine, or one that the labels do not tell from it
                    times += 1
                if method == "search" and count - at >= _STALE:
                    break
                is_repeated = times > 1 and (method != "search" or count >= _ROUND)
                is_simple = method != "search" and described[1] < _SIMPLE * n_bits
                # A hypothesis is short by its own description, which its table may hide.
                is_simple |= method == "hypotheses" and not wrong_labels(machine, data)
                if best is not None and (is_repeated or is_simple) and estimate_noise(best, data).is_noise:
                    return best
    if best is None:
        raise BudgetExceeded(
            f"no machine was found within {limit.seconds:g} s of processor time: give more seconds or more words"
        )
    return best


def plan(seen: DataSurvey) -> list[str]:
    """Return the methods for the data, in the order in which they run.

    Merging takes labels that contradict nothing. Hypotheses are for two correct labels at the ends of words so long
    that hardly one is the beginning of another, with which a search begins.
    """
    is_clean = not seen.contradicting
    has_short_words = seen.shortest < math.log(seen.labels) / math.log(max(seen.letters, 2))
    has_hypotheses = is_clean and seen.at_end and seen.outputs == 2 and not has_short_words
    return [*(["hypotheses"] if has_hypotheses else ["merging"] if is_clean else []), "search"]


def _machines(method: str, data: Data, noise: float | None, part: Deadline) -> Iterator[MooreMachine]:
    """Yield the machines of a method."""
    if method == "search":
        yield from search(data, noise == 0, part)
    elif method == "merging":
        yield merge(data, part)
    else:
        yield from subregular(data, part)
