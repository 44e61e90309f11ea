"""What `falsify` may spend, and what each of its searches comes back with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fsa2lrnn.errors import UnsupportedFormat


@dataclass(frozen=True)
class Budget:
    """How far to look. Counts bind first, as a rule; only where the time runs out does the answer depend on the clock.

    Args:
        seconds: for everything together, more or less: a batch that has begun is finished.
        words: joint states that the exhaustive search may hold at one length.
        length: letters up to which periodic words, random words and beams go.
        period, prefix: the longest period, and the longest word before it, of the periodic words.
        periodic_words: how many of them at most, the shortest first.
        random_words: how many.
        width: states that a beam keeps for each state of the machine, two at least.
        seed: of the random words.
        rounds: of the guided beam, each a beam forward and functionals backward.

    Raises:
        UnsupportedFormat: for a negative number, and for no seconds or no length at all.
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
    """A word that was run by the model itself and failed at its last letter and nowhere before."""

    tokens: np.ndarray  # int64 (T,)
    outputs: np.ndarray  # int64 (T,), of the sequential scan
    margin: float
    scans: tuple[str, ...]


class SearchOutcome(NamedTuple):
    """What one search comes back with."""

    failure: Failure | None
    what: str
    length: int
    words: int
    letters: int
    finished: bool = True
    closed: bool = False
