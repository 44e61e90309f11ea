"""The loop of `learn`: starts one after the other, looked at as they go, until a machine stands or the budget is out.

Everything follows from the seed; what carries on from step to step is `state`, so a run that was cut off goes on to the
same bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.decomposition.cascade import Cascade
from fsa2lrnn.errors import OutOfTime, UnsupportedFormat
from fsa2lrnn.lrnn.tensor_file import Shapes
from fsa2lrnn.training.data import Batch
from fsa2lrnn.training.learning import attempt as attempts
from fsa2lrnn.training.learning.attempt import LearningStart
from fsa2lrnn.training.learning.examples import Examples, FreshWords
from fsa2lrnn.training.learning.film import EARLY, Frame, frame_of, with_frame
from fsa2lrnn.training.learning.judging import LearningTarget
from fsa2lrnn.training.learning.prune import (
    CandidateMachine,
    LabelledStates,
    best_head,
    candidates,
    fewest,
    machine_of,
    observe,
)
from fsa2lrnn.training.learning.recipe import Recipe
from fsa2lrnn.training.snapshot import put_back, shapes_of, tensors_of

_FEW = 0.1  # faults, of all labels, with which a head is worth going on with alone
_MENDED = 50  # times that a head is mended, a failing word more each time
_ROUNDS_ON_THE_WAY, _ROUNDS = 4, 30  # sets of heads that are compared with a target at one look

Record = dict[str, int | float | str | tuple[str, ...]]


@dataclass(frozen=True)
class LearningState:
    """Where a run stands, beside its tensors.

    Args:
        failures: the words that joined the data, as tokens.
        number, heads: of the start under way.
        film: its frames so far.
    """

    steps: int
    seconds: float
    trail: tuple[Record, ...]
    failures: tuple[tuple[int, ...], ...]
    number: int
    heads: int
    at: attempts.StartState
    film: tuple[Frame, ...] = ()


class LearnedCandidate(NamedTuple):
    """A machine that the run ends with; `holds` unless the target or the labels speak against it."""

    candidate: CandidateMachine
    holds: bool


class LearningRun:
    """A run of `learn` by training. `target` is what candidates are compared with, None where there is none; `cascade`
    what is taught first, if anything is."""

    cascade: Cascade | None = None

    def __init__(self, recipe: Recipe, examples: Examples, target: LearningTarget | None, n_states: int | None) -> None:
        self.recipe, self.examples, self.target, self.n_states = recipe, examples, target, n_states
        self.generator = torch.Generator().manual_seed(recipe.seed)
        self.steps, self.seconds, self.trail = 0, 0.0, list[Record]()
        self.deadline = self._deadline()
        self.film: tuple[Frame, ...] = ()
        self.attempt = self._start(0)
        self._last: CandidateMachine | None = None

    def go(
        self, report: Callable[[Record], None] | None = None, after_step: Callable[[LearningRun], None] | None = None
    ) -> LearnedCandidate | None:
        """Train until a machine stands or the budget is out; None if not even one head has a machine to show."""
        begun, before = time.monotonic(), self.seconds
        self.deadline = self._deadline()
        while True:
            found = None
            with suppress(OutOfTime):
                found = self._step(report)
            self.seconds = before + time.monotonic() - begun
            if found is not None:
                return found
            if self._is_out():
                return self._end()
            if after_step is not None:
                after_step(self)

    def standing(self) -> LearningState:
        """What going on needs beside the tensors."""
        failures = self.examples.failures if isinstance(self.examples, FreshWords) else []
        one = self.attempt
        return LearningState(
            self.steps, self.seconds, tuple(self.trail), tuple(map(tuple, failures)), one.number, one.n_heads, one.at,
            self.film,
        )  # fmt: skip

    def tensors(self) -> dict[str, Tensor]:
        """The weights, what the optimiser knows of them, the random generator."""
        return tensors_of(self.attempt.model, self.attempt.optimiser, words=self.generator)

    def begin_again(self, standing: LearningState) -> Shapes:
        """Stand where another call left off, but for the tensors, whose shapes are returned.

        Raises `UnsupportedFormat` for a standing that this run can't have.
        """
        self._check(standing)
        self.steps, self.seconds, self.trail = standing.steps, standing.seconds, list(standing.trail)
        self.film = standing.film
        if isinstance(self.examples, FreshWords):
            self.examples.failures = [list(word) for word in standing.failures]
        block = self.recipe.block_for(self.n_states, standing.number)
        self.attempt = LearningStart(self.recipe, self.examples, standing.number, block, standing.heads)
        self.attempt.at = standing.at
        return shapes_of(self.attempt.model, self.attempt.optimiser, words=self.generator)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """The rest of standing there. Raises `CheckpointError` for random numbers that are none."""
        put_back(tensors, self.attempt.model, self.attempt.optimiser, words=self.generator)

    def _check(self, standing: LearningState) -> None:
        at, n_letters = standing.at, len(self.examples.alphabet)
        faults = [
            fault
            for fault, is_so in {
                f"steps = {standing.steps}": not 0 <= standing.number <= standing.steps,
                f"heads = {standing.heads}": standing.heads not in (1, self.recipe.heads),
                f"length = {at.length}": not 1 <= at.length <= self.attempt.full_length,
                "failures": not all(0 <= a < n_letters for word in standing.failures for a in word),
                "film": not all(
                    frame.fits(n_letters, len(self.examples.outputs), self.recipe.heads) for frame in standing.film
                ),
            }.items()
            if is_so
        ]
        if faults:
            raise UnsupportedFormat(f"{', '.join(faults)}: no run of this recipe stands there")

    @property
    def starts(self) -> int:
        """How many starts there were."""
        return self.attempt.number + 1

    def _start(self, number: int) -> LearningStart:
        block = self.recipe.block_for(self.n_states, number)
        self.note("start", block=block)
        attempt = LearningStart(self.recipe, self.examples, number, block, self.recipe.heads)
        self._take(attempt)
        return attempt

    def _step(self, report: Callable[[Record], None] | None) -> LearnedCandidate | None:
        attempt = self.attempt
        loss = attempt.update(self.generator)
        self.steps += 1
        if not math.isfinite(loss):
            self.note("diverged")
            self.attempt = self._start(attempt.number + 1)
            return None
        if attempt.at.step in EARLY and not attempt.is_alone:
            self._take(attempt)
        is_settled = attempt.is_settled
        if is_settled or attempt.at.step % self.recipe.look == 0:
            seen = self._observe()
            self._take(attempt, seen)
            head, wrong = best_head(seen)
            record = {
                "step": self.steps, "start": attempt.number, "block": attempt.block, "length": attempt.at.length,
                "loss": loss, "error": attempt.at.error, "best_head": head, "faults": wrong / len(seen.labels),
            }  # fmt: skip
            self.trail.append(record)
            if report is not None:
                report(record)
            if (found := self._look(seen, is_settled)) is not None:
                return found
            if self._is_to_be_mended() and (mended := self._mended(head)) is not None:
                self.attempt = mended
                return None
        if is_settled or attempt.is_stuck:
            self.note("settled without a machine" if is_settled else "stuck")
            self.attempt = self._focused(_FEW, self._observe()) or self._start(attempt.number + 1)
        return None

    def _focused(self, most: float, seen: LabelledStates) -> LearningStart | None:
        """The start gone on with its best head, if that has few faults; None if it has more than a share of `most`, or
        is alone already."""
        head, wrong = best_head(seen)
        if not self.attempt.is_full or self.attempt.is_alone or wrong > most * len(seen.labels):
            return None
        self.note("focused", head=head, faults=wrong / len(seen.labels))
        alone = self.attempt.focused(head)
        self._take(alone, event="focused", heads=(head,))
        return alone

    def _is_to_be_mended(self) -> bool:
        every, at = self.recipe.mend, self.attempt.at
        return bool(every) and self.recipe.is_clean and not self.attempt.is_alone and at.step % every < self.recipe.look

    def _mended(self, head: int) -> LearningStart | None:
        """The start gone on with one head, mended until neither fresh words nor the target speak against it; None if
        that can't be had."""
        alone, examples = self.attempt.focused(head), self.examples
        length, changes = examples.fit(min(alone.full_length, 2 * self.attempt.at.length)), 0
        for _ in range(_MENDED):
            batch = examples.many(length, self.generator)
            found = alone.mend(batch, self.deadline)
            changes += found.changes
            if found.after:
                self.note("not mended", head=head, changes=changes, before=found.before, after=found.after)
                return None
            seen = observe(alone.heads, batch, examples.alphabet, examples.outputs)
            candidate = machine_of(seen, (0,))
            if candidate is None:
                return None
            word = None if self.target is None else self.target.failing_word(candidate.machine)
            if word is None:
                self.note("mended", head=head, changes=changes, states=candidate.machine.n_states)
                self._take(alone, seen, "mended", (head,))
                return alone
            self.note("refuted", word=tuple(map(str, word)), states=candidate.machine.n_states)
            if isinstance(examples, FreshWords):
                examples.add(word)
            length = alone.full_length
        return None

    def _take(
        self, attempt: LearningStart, seen: LabelledStates | None = None, event: str = "", heads: tuple[int, ...] = ()
    ) -> None:
        """A frame of the film. Words that are looked at for it alone are none of the run's: they are drawn apart."""
        if seen is None:
            words = self.examples.look(attempt.full_length, torch.Generator().manual_seed(self.recipe.seed))
            seen = observe(attempt.heads, words, self.examples.alphabet, self.examples.outputs)
        if not heads:
            heads = self.film[-1].heads if attempt.is_alone and self.film else tuple(range(attempt.n_heads))
        frame = frame_of(seen, self.steps, attempt.number, attempt.at.length, heads, event)
        self.film = with_frame(self.film, frame)

    def _observe(self) -> LabelledStates:
        return self._observed(self.examples.look(self.attempt.full_length, self.generator))

    def _observed(self, batch: Batch) -> LabelledStates:
        return observe(self.attempt.heads, batch, self.examples.alphabet, self.examples.outputs)

    def _look(self, seen: LabelledStates, is_settled: bool) -> LearnedCandidate | None:
        """The first set of heads that holds, of those that the labels allow.

        A word on which a set fails is added to what was seen of the heads: it rules the set out, or says what a joint
        state puts out that no word had reached.
        """
        rounds = (_ROUNDS if is_settled else _ROUNDS_ON_THE_WAY) if self.recipe.is_clean else 1
        for _ in range(rounds):
            candidate = next(self._allowed(seen, is_settled), None)
            if candidate is None:
                return None
            self._last = candidate
            word = None if self.target is None else self.target.failing_word(candidate.machine)
            if word is None:
                return LearnedCandidate(candidate, holds=True)
            self.note("refuted", word=tuple(map(str, word)), states=candidate.machine.n_states)
            if isinstance(self.examples, FreshWords):
                self.examples.add(word)
                self.attempt.warm()
                seen = seen.joined(self._observed(self.examples.labelled(word)))
        return None

    def _allowed(self, seen: LabelledStates, is_settled: bool) -> Iterator[CandidateMachine]:
        """Where labels are right, heads without a fault: single ones at any look. Else the fewest, at the end."""
        if self.recipe.is_clean:
            yield from candidates(seen, 0, most=3 if is_settled else 1)
        elif is_settled and (candidate := fewest(seen)) is not None:
            yield candidate

    def _deadline(self) -> Deadline:
        """The end of the time that earlier calls have left."""
        limit = self.recipe.seconds
        return NEVER if limit is None else Deadline(limit - self.seconds)

    def _is_out(self) -> bool:
        limit = self.recipe.seconds
        return self.steps >= self.recipe.steps or (limit is not None and self.seconds >= limit)

    def _end(self) -> LearnedCandidate | None:
        self.note("end of the budget")
        seen = self._observe()
        self._take(self.attempt, seen)
        candidate = machine_of(seen, (best_head(seen)[0],)) or self._last
        return None if candidate is None else LearnedCandidate(candidate, holds=False)

    def note(self, event: str, **what: float | str | tuple[str, ...]) -> None:
        """Put an event into the trail."""
        self.trail.append({"step": self.steps, "event": event, **what})
