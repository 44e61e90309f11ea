"""Subregular hypotheses for words with one correct label of two at the end: decision lists, counters, small machines.

Letters that act alike are united. A counter weighs letters modulo a number. Each hypothesis that is right on all words
is changed so that the words get likelier (`likelihood`); the result is the one that describes itself and the words in
the fewest bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime
from fsa2lrnn.learning.decision_lists import DecisionList, Space, Way, Words, ranked, refined, tiers, wrong_words
from fsa2lrnn.learning.growing import grown
from fsa2lrnn.learning.likelihood import BOUNDS, MOST, SMALL, bits, is_plausible, likelier
from fsa2lrnn.learning.literals import letter_classes
from fsa2lrnn.learning.word_files import Data

_SINGLE = (Way(None, 1.0, pairs=False),)
_WAYS = tuple(Way(label, worth) for worth in (1.0, 12.0) for label in (None, 0, 1))
_FEW, _FINAL = 2000, 4  # words at first, spaces refined
_FEW_ERRORS = 0.02  # share of wrong words for which one letter is taken apart, rather than a finer partition
_SHORT = 60.0  # bits of a list of single literals that ends the search
_WEIGHTINGS, _MODULI = 1 << 18, range(2, 8)
_COMPARED, _GROWN, _RANKED = 0.5, 0.4, 0.5  # of the time: all hypotheses; of that small machines; of the rest ranking
_SIMPLE = 8  # states of a small machine beyond which longer lists are learned too


def subregular(data: Data, limit: Deadline) -> Iterator[MooreMachine]:
    """Yield the best hypothesis that is right on all words, if there is one, else the best decision list.

    Raises `OutOfTime` at the deadline, and `BudgetExceeded` for more than `MOST` classes of letters.
    """
    tokens, lengths, k = data.tokens.numpy(), data.lengths.numpy(), len(data.alphabet)
    labels = data.labels.numpy()[np.arange(len(tokens)), lengths]
    words = tokens, lengths, labels
    right, nearly = dict[MooreMachine, None](), list[tuple[int, MooreMachine]]()
    begun = limit.share(_COMPARED)
    bounds = [*BOUNDS]
    classes = np.arange(k) if k <= SMALL else letter_classes(*words, k, bounds.pop(0), limit)
    while True:
        n, least = int(classes.max()) + 1, np.ones(len(labels), bool)
        united = np.ascontiguousarray(classes[tokens]), lengths, labels
        over = partial(_over_letters, classes)
        with suppress(OutOfTime):
            for machine in _hypotheses(united, n, begun) if n <= MOST else ():
                of = over(machine)
                wrong = wrong_words(of, words)
                right |= {} if wrong.any() else {of: None}
                nearly.append((int(wrong.sum()), of))
                least = min(least, wrong, key=np.sum)
        if right or k <= SMALL or begun.left() < 0:
            break
        if least.mean() < _FEW_ERRORS and n < min(k, MOST):
            classes = _letter_apart(classes, words, least)
        elif bounds:
            classes = letter_classes(*words, k, bounds.pop(0), limit)
        else:
            break
    if not right and n <= MOST:
        with suppress(OutOfTime):
            right[over(next(grown(united, n, limit, seed=1)))] = None
    if not (right or nearly):
        limit.check("comparing hypotheses")
        raise BudgetExceeded(f"more than {MOST} classes of letters: learn from more words")
    if not right:
        best = min(nearly, key=lambda pair: pair[0])[1]
    else:
        drawn = words if all(is_plausible(machine, words) for machine in right) else None
        for machine in sorted(right, key=lambda each: each.n_states) if drawn else ():
            right[likelier(machine, words, limit)] = None
        best = min(right, key=lambda each: bits(each, drawn))
    outputs = [data.outputs[y == 1] for y in best.outputs]
    yield MooreMachine(best.delta, outputs, best.start, data.alphabet)


def _over_letters(classes: np.ndarray, machine: MooreMachine) -> MooreMachine:
    delta, k = machine.delta[classes], len(classes)
    return MooreMachine(delta, machine.outputs, machine.start, range(k)).minimise()


def _letter_apart(classes: np.ndarray, words: Words, wrong: np.ndarray) -> np.ndarray:
    """Return the classes with one letter apart: that which wrong words contain most often beyond expectation."""
    tokens, lengths, _ = words
    inside = np.arange(tokens.shape[1]) < lengths[:, None]
    has_letter = np.stack([((tokens == a) & inside).any(1) for a in range(len(classes))])
    share, n = has_letter.mean(1), wrong.sum()
    z = (has_letter[:, wrong].sum(1) - n * share) / np.sqrt(n * share * (1 - share) + 1e-9)
    alone = np.bincount(classes)[classes] == 1
    return np.where(np.arange(len(classes)) == np.where(alone, -np.inf, z).argmax(), classes.max() + 1, classes)


def _hypotheses(words: Words, n: int, limit: Deadline) -> Iterator[MooreMachine]:
    """Yield machines over the letters 0 … n − 1 with the outputs 0 and 1; lists may be wrong on some words."""
    spaces = [Space(tier, False) for tier in tiers(n)] + [Space((), True)]
    lists = ranked(words, n, spaces, _SINGLE, _FEW, limit)
    short = refined(words, n, *lists[0], _FEW, limit)
    is_short = short.bits <= _SHORT and not short.wrong(words).any()
    if is_short and (machine := short.machine()) is not None:
        yield machine
    if (counter := _counter(*words, n)) is not None:
        yield counter
    if is_short or counter is not None:
        return
    with suppress(OutOfTime):
        yield (small := next(grown(words, n, limit.share(_GROWN))))
        if small.n_states <= _SIMPLE:
            return
    first = [space.tier for _, space in lists if space.tier][:_FINAL]
    if (longer := _longer_list(words, n, first, limit).machine()) is not None:
        yield longer


def _longer_list(words: Words, n: int, first: list[tuple[int, ...]], limit: Deadline) -> DecisionList:
    """Return the shortest list with rules of one literal or two, over the first tiers, subsequences, or both."""
    every = tuple(range(n))
    spaces = [Space(tier, False) for tier in first] + [Space((), True), Space(every, True, 2), Space(every, True, 4)]
    lists = list[DecisionList]()
    for few, space in ranked(words, n, spaces, _WAYS, _FEW, limit.share(_RANKED))[:_FINAL]:
        # More words lengthen a list: one that is already longer than a complete one is left out.
        if not lists or few.bits < min(each.bits for each in lists):
            lists.append(refined(words, n, few, space, _FEW, limit))
    return min(lists, key=lambda each: each.bits)


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
