"""The loop of `learn` for layers whose heads share a machine out among them: the network is proved as a whole.

It is looked at on fresh words; where it makes no mistake on them it is judged, and a word on which it fails joins them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.extraction import extract
from fsa2lrnn.training.learning.examples import FreshWords
from fsa2lrnn.training.learning.judging import LearningTarget
from fsa2lrnn.training.learning.prune import CandidateMachine
from fsa2lrnn.training.learning.recipe import Recipe
from fsa2lrnn.training.learning.run import LearnedCandidate, LearningRun, Record
from fsa2lrnn.verdicts import Proved, Refuted, Undecided

_PAIRS = 100_000  # of states, up to which a network is judged on the way
_AFTER, _MORE = 0.5, 0.1  # seconds, or a share of the time limit, for the judgement at the end


class WholeRun(LearningRun):
    """A run in which all heads together are the candidate, with the network's own read-out."""

    examples: FreshWords
    target: LearningTarget

    def __init__(self, recipe: Recipe, examples: FreshWords, target: LearningTarget, n_states: int) -> None:
        super().__init__(recipe, examples, target, n_states)
        self.verdict: Proved | Refuted | Undecided | None = None

    def _step(self, report: Callable[[Record], None] | None) -> LearnedCandidate | None:
        attempt = self.attempt
        loss = attempt.update(self.generator)
        self.steps += 1
        if not math.isfinite(loss):
            self.note("diverged")
            self.attempt = self._start(attempt.number + 1)
            return None
        is_settled = attempt.is_settled
        if is_settled or attempt.at.step % self.recipe.look == 0:
            wrong, labels = self._faults()
            record: Record = {
                "step": self.steps, "start": attempt.number, "block": attempt.block, "length": attempt.at.length,
                "loss": loss, "error": attempt.at.error, "faults": wrong / labels,
            }  # fmt: skip
            self.trail.append(record)
            if report is not None:
                report(record)
            if not wrong and (found := self._judged(labels)) is not None:
                return found
        if is_settled or attempt.is_stuck:
            self.note("settled without a proof" if is_settled else "stuck")
            self.attempt = self._start(attempt.number + 1)
        return None

    def _take(self, *_seen: object, **_named: object) -> None:
        """No frame of a film: a head alone is none of the machines that are looked for."""

    def judged(self) -> LearnedCandidate | None:
        """The verdict on the network as it is, if it is a proof."""
        wrong, labels = self._faults()
        return None if wrong else self._judged(labels)

    def _faults(self) -> tuple[int, int]:
        """Labels of fresh words that the network misses, and how many there are."""
        batch = self.examples.look(self.attempt.full_length, self.generator)
        with torch.no_grad():
            given = self.attempt.model(batch.tokens, empty_word=True).argmax(-1)
        counts = batch.labels != UNCOUNTED
        return int((given != batch.labels)[counts].sum()), int(counts.sum())

    def _judged(self, labels: int) -> LearnedCandidate | None:
        self.verdict = self.target.judge_network(self.attempt.model, _PAIRS, seconds=self.deadline)
        if isinstance(self.verdict, Proved):
            return LearnedCandidate(self._candidate(0, labels), holds=True)
        if isinstance(self.verdict, Refuted):
            self.note("refuted", word=tuple(map(str, self.verdict.word)))
            self.examples.add(self.verdict.word)
            self.attempt.warm()
        return None

    def _candidate(self, wrong: int, labels: int) -> CandidateMachine:
        """The machine of a network that is proved equal to the target is the target's."""
        return CandidateMachine(
            tuple(range(self.recipe.layers * self.attempt.n_heads)), self.target.wanted, wrong, labels
        )

    def _end(self) -> LearnedCandidate | None:
        self.note("end of the budget")
        wrong, labels = self._faults()
        # What was trained is judged after its time, but not for long.
        deadline = NEVER if self.recipe.seconds is None else Deadline(max(_AFTER, _MORE * self.recipe.seconds))
        self.verdict = self.target.judge_network(self.attempt.model, _PAIRS, seconds=deadline)
        if isinstance(self.verdict, Proved):
            return LearnedCandidate(self._candidate(wrong, labels), holds=True)
        try:
            machine = extract(self.attempt.model, _PAIRS, seconds=deadline)
        except BudgetExceeded:
            return None
        return LearnedCandidate(self._candidate(wrong, labels)._replace(machine=machine), holds=False)
