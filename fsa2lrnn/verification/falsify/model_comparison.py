"""The budget of `falsify`, and its comparison of a model with a machine.

The comparison gives margins of the logits, and confirms failures by the model itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat, check_type
from fsa2lrnn.nn.network import Network
from fsa2lrnn.verification.extraction import NOT_A_NUMBER
from fsa2lrnn.verification.extraction.runner import Runner
from fsa2lrnn.verification.specification import specification_of


@dataclass(frozen=True)
class Budget:
    """The limits of a search. Usually the counts bind first; the result depends on the clock only if time runs out.

    Args:
        seconds: the approximate limit of processor time for all searches: a batch that has begun is finished.
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
        check_type(self.seconds, Real, "seconds", "a number above 0")
        if not self.seconds > 0:
            raise UnsupportedFormat(f"budget: seconds = {self.seconds}, but more than 0 are needed")
        for name, value in vars(self).items():
            if name != "seconds":
                check_type(value, Integral, name, "a whole number")
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


CONFIRMED_BY = ("sequential", "auto")


class OutputMarks(NamedTuple):
    """Which entries (…,) are wrong, bool, and the margins of the expected outputs, +∞ where no output counts."""

    wrong: np.ndarray
    margin: np.ndarray

    def worst(self, n: int) -> np.ndarray:
        """Return the indices of at most n wrong entries among (N,), least margins first."""
        where = np.flatnonzero(self.wrong)
        return where[np.argsort(self.margin[where], kind="stable")][:n]


class ModelComparison:
    """A model and its specification, both run on letter numbers."""

    def __init__(self, model: Network, machine: MooreMachine, ignore: Ignore = ()) -> None:
        self.model = model
        self.runner = Runner(model)
        self.goal = specification_of(model, machine, ignore)

    @property
    def n_letters(self) -> int:
        """The number of letters, |Σ|."""
        return len(self.goal.delta)

    def marks(self, logits: Tensor, states: np.ndarray) -> OutputMarks:
        """Compare logits (…, |Γ|) with machine states (…,). Ties go to the first output, as in `transduce`."""
        counts, answerable = self.goal.counts[states], self.goal.answerable[states]
        logits = logits.detach().to(torch.promote_types(logits.dtype, torch.float32))
        expected = torch.as_tensor(np.where(answerable, self.goal.wanted[states], 0), device=logits.device)[..., None]
        own = logits.gather(-1, expected)[..., 0]
        other = logits.scatter(-1, expected, -torch.inf).amax(-1)
        is_nan = logits.isnan().any(-1)
        wrong = (logits.argmax(-1) != expected[..., 0]) | is_nan
        margin = (own - other).masked_fill(is_nan | (own == -torch.inf), -torch.inf)
        margins = np.where(answerable, margin.double().cpu().numpy(), np.where(counts, -np.inf, np.inf))
        return OutputMarks((wrong.cpu().numpy() | ~answerable) & counts, margins)

    def confirm(self, tokens: np.ndarray) -> Failure | None:
        """Return the shortest prefix of a word on which the model fails by both its sequential and its default scan.

        `forward` runs the whole word, in the model's own dtype. The result is None if no prefix fails.
        """
        if not len(tokens):
            return None
        states = self.goal.path(tokens[None])
        logits = {method: self._logits(tokens, method) for method in CONFIRMED_BY}
        wrong = np.all([self.marks(values, states).wrong[0] for values in logits.values()], axis=0)
        if not wrong.any():
            return None
        first = int(wrong.argmax()) + 1
        if first < len(tokens):
            return self.confirm(tokens[:first])  # a scan may round differently on a shorter word
        scans = [
            method for method in self.model.methods if self.marks(self._logits(tokens, method), states).wrong[0, -1]
        ]
        own_logits = logits["sequential"][0]
        outputs = own_logits.argmax(-1).masked_fill(own_logits.isnan().any(-1), NOT_A_NUMBER).cpu().numpy()
        margin = float(self.marks(logits["sequential"], states).margin[0, -1])
        return Failure(tokens, outputs, margin, tuple(scans))

    def confirm_first(self, words: list[np.ndarray]) -> Failure | None:
        """Return the shortest failure among a few words, or None if the model fails on none of them."""
        failures = [failure for word in words if (failure := self.confirm(word)) is not None]
        return min(failures, key=lambda failure: len(failure.tokens), default=None)

    def _logits(self, tokens: np.ndarray, method: str) -> Tensor:
        with torch.no_grad():
            return self.model(torch.as_tensor(tokens, device=self.model.device)[None], method)
