"""Comparison of a model with a machine: margins of its logits, and confirmation of failures by the model itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.nn.network import Network
from fsa2lrnn.verification.extraction import NOT_A_NUMBER
from fsa2lrnn.verification.extraction.runner import Runner
from fsa2lrnn.verification.falsify.verdict import Failure
from fsa2lrnn.verification.specification import specification_of

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
