"""What `falsify` may spend, what it looked at, and what it answers."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.judge.equivalence import Verdict


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

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise UnsupportedFormat(f"budget: seconds = {self.seconds}, but more than 0 are needed")
        for name, value in vars(self).items():
            if value < (least := int(name == "length")):
                raise UnsupportedFormat(f"budget: {name} = {value}, but at least {least} is needed")


@dataclass(frozen=True)
class Searched:
    """One search and what it covered.

    Args:
        name: "exhaustive", "periodic", "random", "beam" or "shorten".
        what: the words that it looked at, in words.
        length: all those words were judged at every letter up to this length.
        words: how many words, at the longest length; letters: model steps taken.
        seconds: what it took.
        found: the length of the shortest failing word that it found, if any.
        finished: False where time cut it short.
    """

    name: str
    what: str
    length: int
    words: int
    letters: int
    seconds: float
    found: int | None
    finished: bool


@dataclass(frozen=True)
class Falsified(Verdict):
    """A word on which the model is wrong.

    Args:
        word: the letters; the model is wrong after the last of them and right wherever else it counts.
        model_trace, machine_trace: outputs after each letter; the model's is "NaN" where its logits are not numbers.
        margin: the logit of the output wanted at the last letter less the largest other; −∞ where one is not a number.
        scans: the scans of the model that are wrong after this word; the sequential one and the default always are.
        found_by: the search that found it.
        searches: everything that was searched.
        exhaustive_to: no shorter word than this fails, as far as single steps tell.
    """

    word: tuple[Hashable, ...]
    model_trace: tuple[Hashable, ...]
    machine_trace: tuple[Hashable, ...]
    margin: float
    scans: tuple[str, ...]
    found_by: str
    searches: tuple[Searched, ...]
    exhaustive_to: int

    @property
    def position(self) -> int:
        """Where the model is wrong, counted from 1: the last letter."""
        return len(self.word)

    @property
    def is_shortest(self) -> bool:
        """Whether all shorter words were tried."""
        return self.exhaustive_to >= self.position - 1

    @property
    def ran_out_of_time(self) -> bool:
        """Whether a search was cut short, so that another run may find another word."""
        return not all(search.finished for search in self.searches)


@dataclass(frozen=True)
class Unfalsified(Verdict):
    """No failing word among those that were searched: no proof of anything else (`prove_equivalent`, `certify`).

    Args:
        searches: everything that was searched.
        exhaustive_to: no word of at most this length fails, as far as single steps tell; None if that holds for words
            of every length, since the states closed.
    """

    searches: tuple[Searched, ...]
    exhaustive_to: int | None

    @property
    def ran_out_of_time(self) -> bool:
        """Whether a search was cut short."""
        return not all(search.finished for search in self.searches)


class Failure(NamedTuple):
    """A word that was run by the model itself and failed at its last letter and nowhere before."""

    tokens: np.ndarray  # int64 (T,)
    outputs: np.ndarray  # int64 (T,), of the sequential scan
    margin: float
    scans: tuple[str, ...]


class Outcome(NamedTuple):
    """What one search comes back with."""

    failure: Failure | None
    what: str
    length: int
    words: int
    letters: int
    finished: bool = True
    closed: bool = False


@dataclass(frozen=True)
class Clock:
    """A share of time that runs from its making."""

    seconds: float
    begun: float = field(default_factory=time.monotonic)

    @property
    def passed(self) -> float:
        """Seconds since then."""
        return time.monotonic() - self.begun

    @property
    def left(self) -> float:
        """Seconds that remain; negative when it is over."""
        return self.seconds - self.passed
