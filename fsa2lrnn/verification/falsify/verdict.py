"""The budget of `falsify` and the outcome of each of its searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fsa2lrnn.errors import UnsupportedFormat


@dataclass(frozen=True)
class Budget:
    """The limits of a search. Usually the counts bind first; the result depends on the clock only if time runs out.

    Args:
        seconds: the approximate time limit for all searches: a batch that has begun is finished.
        words: the most joint states that the exhaustive search holds at one length.
        length: the greatest length of periodic words, random words and beams, in letters.
        period, prefix: the longest period, and the longest word before it, of the periodic words.
        periodic_words: the number of periodic words at most, the shortest first.
        random_words: the number of random words.
        width: the number of states that a beam keeps for each machine state, at least two.
        seed: the random seed of the random words.
        rounds: the number of rounds of the guided beam, each a forward and a backward pass.

    Raises:
        UnsupportedFormat: for a negative number, and for a `seconds` or `length` of zero.
    """

    seconds: float = 20.0
    words: int = 100_000
    length: int = 2_000
    period: int = 3
    prefix: int = 1
    periodic_words: int = 2_000
    random_words: int = 128
    width: int = 32
    seed: int = 0
    rounds: int = 8

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise UnsupportedFormat(f"budget: seconds = {self.seconds}, but more than 0 are needed")
        for name, value in vars(self).items():
            if value < (least := int(name == "length")):
                raise UnsupportedFormat(f"budget: {name} = {value}, but at least {least} is needed")


class Failure(NamedTuple):
    """A word on which the model itself, when run, is wrong at the last letter and nowhere before."""

    tokens: np.ndarray  # int64 (T,)
    outputs: np.ndarray  # int64 (T,), of the sequential scan
    margin: float
    scans: tuple[str, ...]


class SearchOutcome(NamedTuple):
    """The outcome of a search; `finished` is False if time ran out, `closed` True if all joint states were read."""

    failure: Failure | None
    what: str
    length: int
    words: int
    letters: int
    finished: bool = True
    closed: bool = False
