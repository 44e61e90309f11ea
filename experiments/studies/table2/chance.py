"""The exact score of a constant answer in the paper's Table 2, computed from the machine and the protocol.

The paper reports a mean over trials of the best of 40 evaluations, each of the last output of 128 fresh words. The
maximum of many evaluations exceeds the expectation of each, so a constant answer scores above its true accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.training.data import make_sampler, shares_of, words

LOOKS, WORDS, TRIALS = 40, 128, 5


@dataclass(frozen=True)
class ChanceLevel:
    """The score of the best constant answer.

    Attributes:
        answer: the best constant answer.
        share: its accuracy at the last output, from 0 to 1.
        best_of_looks: the expected best evaluation of a trial.
        deviation: the standard deviation of the best evaluation.
        interval: bounds that contain the mean over trials with a probability of 95 %.
    """

    answer: Hashable
    share: float
    best_of_looks: float
    deviation: float
    interval: tuple[float, float]

    def to_json(self) -> dict[str, Any]:
        """Return all fields as a JSON object."""
        return asdict(self)


def level(task: str, length: int) -> ChanceLevel:
    """Return the chance level of a task for words of about `length` letters, drawn as in the paper's code."""
    shares = output_shares(task, length)
    answer = max(shares, key=shares.__getitem__)
    best = best_of_looks(shares[answer])
    scores = np.arange(WORDS + 1) / WORDS
    mean = float(best @ scores)
    deviation = math.sqrt(float(best @ (scores - mean) ** 2))
    return ChanceLevel(answer, shares[answer], mean, deviation, mean_interval(best))


def output_shares(task: str, length: int) -> dict[Hashable, float]:
    """Return the probability of each output of a task at the end of a word, drawn as in the paper's code."""
    machine = MooreMachine.from_source(task)
    return shares_of(words(machine, make_sampler("task", machine, task)), length)


def best_of_looks(share: float, n_evaluations: int = LOOKS, n_words: int = WORDS) -> np.ndarray:
    """Return the distribution (n_words + 1,) of the number of right words in the best evaluation, at accuracy `share`.

    >>> best = best_of_looks(0.5, n_evaluations=2, n_words=1)
    >>> best.tolist()
    [0.25, 0.75]
    """
    k = np.arange(n_words + 1)
    chooses = np.array([math.comb(n_words, int(i)) for i in k], dtype=float)
    cumulated = np.minimum(np.cumsum(chooses * share**k * (1 - share) ** (n_words - k)), 1)
    cumulated[-1] = 1
    return np.diff(cumulated**n_evaluations, prepend=0)  # the maximum of independent draws has the power as its cdf


def mean_interval(best: np.ndarray, trials: int = TRIALS, coverage: float = 0.95) -> tuple[float, float]:
    """Return the central interval that contains the mean score of `trials` trials with probability `coverage`.

    >>> mean_interval(np.array([0.0, 1.0]))
    (1.0, 1.0)
    """
    total = np.ones(1)
    for _ in range(trials):
        total = np.convolve(total, best)
    below = np.cumsum(total)
    tail = (1 - coverage) / 2
    low, high = (int(np.searchsorted(below, q - 1e-12)) for q in (tail, 1 - tail))
    scale = trials * (len(best) - 1)
    return low / scale, high / scale
