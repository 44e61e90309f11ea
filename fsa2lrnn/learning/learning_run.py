"""The loop of `learn`: training starts in sequence, with evaluations, until a machine is accepted or the budget ends.

The seed determines the whole run. `LearningState` and the tensors hold all that persists between steps, so a resumed
run reproduces the uninterrupted one bit for bit.

In a `WholeRun`, for layers whose heads implement a machine together, the network is evaluated on fresh words. If it
makes no error on them, it is verified as a whole, and a counterexample joins the words. In a network of many heads,
those that are images of the target machine are trained alone as soon as they separate its outputs: heads of other
automata multiply the joint states and disturb the read-out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

import fsa2lrnn.learning.attempt as attempts
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime, UnsupportedFormat
from fsa2lrnn.learning.attempt import LearningStart
from fsa2lrnn.learning.examples import Examples, FreshWords
from fsa2lrnn.learning.judging import EVERY_WORD, LearningTarget
from fsa2lrnn.learning.prune import (
    CandidateMachine,
    LabelledStates,
    best_head,
    candidates,
    fewest,
    images,
    machine_of,
    observe,
    without_heads,
)
from fsa2lrnn.learning.recipe import Recipe
from fsa2lrnn.nn.checkpoint import Shapes
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.training.data import Batch
from fsa2lrnn.verdicts import Proved, Refuted, Undecided
from fsa2lrnn.verification.extraction import extract

_FEW = 0.1  # largest share of faulty labels with which a head is trained on alone
_REPAIRS = 50  # times that a head is repaired, with one more counterexample each time
_ROUNDS_DURING, _ROUNDS = (
    4,
    30,
)  # sets of heads per evaluation that are compared with the target: in between, at the end

Record = dict[str, int | float | str | tuple[str, ...]]


@dataclass(frozen=True)
class LearningState:
    """The state of a run without its tensors.

    Args:
        failures: the counterexamples that joined the data, as tokens.
        number, heads: the number of the current start, and how many heads it has.
    """

    steps: int
    seconds: float
    trail: tuple[Record, ...]
    failures: tuple[tuple[int, ...], ...]
    number: int
    heads: int
    at: attempts.StartState


class LearnedCandidate(NamedTuple):
    """The machine at the end of a run; `holds` is false if the target or the labels contradict it."""

    candidate: CandidateMachine
    holds: bool


class LearningRun:
    """A run of `learn` by training. Candidates are compared with the machine `target`, None for a user's words."""

    def __init__(self, recipe: Recipe, examples: Examples, target: LearningTarget | None, n_states: int | None) -> None:
        self.recipe, self.examples, self.target, self.n_states = recipe, examples, target, n_states
        self.generator = torch.Generator().manual_seed(recipe.seed)
        self.steps, self.seconds, self.trail = 0, 0.0, list[Record]()
        self.deadline = self._deadline()
        self.attempt = self._start(0)
        self._last: CandidateMachine | None = None

    def go(
        self, report: Callable[[Record], None] | None = None, after_step: Callable[[LearningRun], None] | None = None
    ) -> LearnedCandidate | None:
        """Train until a candidate passes its verification or the budget ends; return the candidate.

        The result is None if no head has a machine that can be listed.
        """
        begun, before = time.process_time(), self.seconds
        self.deadline = self._deadline()
        while True:
            candidate = None
            try:
                candidate = self._step(report)
            except OutOfTime:
                if self.deadline.left() > 0:  # of a limit other than this run's
                    raise
            self.seconds = before + time.process_time() - begun
            if candidate is not None:
                return candidate
            if self._is_out():
                return self._end()
            if after_step is not None:
                after_step(self)

    def standing(self) -> LearningState:
        """Return the state that resuming needs, without the tensors."""
        failures = self.examples.failures if isinstance(self.examples, FreshWords) else []
        one = self.attempt
        return LearningState(
            self.steps, self.seconds, tuple(self.trail), tuple(map(tuple, failures)), one.number, one.n_heads, one.at
        )  # fmt: skip

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights, the state of the optimiser and the random generator."""
        return self.attempt.trainer.tensors(words=self.generator)

    def begin_again(self, standing: LearningState) -> Shapes:
        """Restore the state of an earlier call; return the shapes of the tensors that `restore` expects.

        Raises `UnsupportedFormat` for a state that a run of this recipe cannot have.
        """
        self._check(standing)
        self.steps, self.seconds, self.trail = standing.steps, standing.seconds, list(standing.trail)
        if isinstance(self.examples, FreshWords):
            self.examples.failures = [list(word) for word in standing.failures]
        block = self.recipe.block_for(self.n_states, standing.number)
        self.attempt = LearningStart(self.recipe, self.examples, standing.number, block, standing.heads)
        self.attempt.at = standing.at
        return self.attempt.trainer.shapes(words=self.generator)

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the tensors after `begin_again`. Raises `CheckpointError` for an invalid random generator state."""
        self.attempt.trainer.restore(tensors, words=self.generator)

    def _check(self, standing: LearningState) -> None:
        """Raise `UnsupportedFormat` for a saved state that no run of this recipe reaches."""
        at, n_letters = standing.at, len(self.examples.alphabet)
        faults = [
            fault
            for fault, is_so in {
                f"steps = {standing.steps}": not 0 <= standing.number <= standing.steps,
                f"heads = {standing.heads}": standing.heads not in (1, self.recipe.heads),
                f"length = {at.length}": not 1 <= at.length <= self.attempt.full_length,
                "failures": not all(0 <= a < n_letters for word in standing.failures for a in word),
            }.items()
            if is_so
        ]
        if faults:
            raise UnsupportedFormat(f"{', '.join(faults)}: no run of this recipe stands there")

    @property
    def starts(self) -> int:
        """The number of starts so far."""
        return self.attempt.number + 1

    def _start(self, number: int) -> LearningStart:
        block = self.recipe.block_for(self.n_states, number)
        self.note("start", block=block)
        return LearningStart(self.recipe, self.examples, number, block, self.recipe.heads)

    def _step(self, report: Callable[[Record], None] | None) -> LearnedCandidate | None:
        """Take one step, look at the network when that is due, and start anew when nothing is left to learn.

        Return the candidate that passes its verification, None as long as there is not one.
        """
        attempt = self.attempt
        loss = attempt.update(self.generator)
        self.steps += 1
        if not math.isfinite(loss):
            self.note("diverged")
            self.attempt = self._start(attempt.number + 1)
            return None
        is_settled = attempt.is_settled
        if is_settled or attempt.at.step % self.recipe.look == 0:
            record: Record = {
                "step": self.steps, "start": attempt.number, "block": attempt.block, "length": attempt.at.length,
                "loss": loss, "error": attempt.at.error,
            }  # fmt: skip
            candidate = self._looked(record, report, is_settled)
            if candidate is not None or self.attempt is not attempt:
                return candidate
        if is_settled or attempt.is_stuck:
            self.attempt = self._next(is_settled)
        return None

    def _record(self, record: Record, report: Callable[[Record], None] | None) -> None:
        self.trail.append(record)
        if report is not None:
            report(record)

    def _looked(
        self, record: Record, report: Callable[[Record], None] | None, is_settled: bool
    ) -> LearnedCandidate | None:
        """Evaluate the heads, record it, and search for a set of heads to accept or a head to repair."""
        observed = self._observe()
        head, wrong = best_head(observed)
        self._record({**record, "best_head": head, "faults": wrong / len(observed.labels)}, report)
        candidate = self._evaluate(observed, is_settled)
        if candidate is None and self._is_to_be_repaired():
            self.attempt = self._repaired(head) or self.attempt
        return candidate

    def _next(self, is_settled: bool) -> LearningStart:
        """Return the start with its best head alone, or a new one, after a start that has nothing left to learn."""
        self.note("settled without a machine" if is_settled else "stuck")
        return self._focused(_FEW, self._observe()) or self._start(self.attempt.number + 1)

    def _focused(self, most: float, observed: LabelledStates) -> LearningStart | None:
        """Return the start reduced to its best head; None if its share of faults exceeds `most` or it is alone."""
        head, wrong = best_head(observed)
        if not self.attempt.is_full or self.attempt.is_alone or wrong > most * len(observed.labels):
            return None
        self.note("focused", head=head, faults=wrong / len(observed.labels))
        return self.attempt.focused(head)

    def _is_to_be_repaired(self) -> bool:
        every, at = self.recipe.repair, self.attempt.at
        return bool(every) and self.recipe.is_clean and not self.attempt.is_alone and at.step % every < self.recipe.look

    def _repaired(self, head: int) -> LearningStart | None:
        """Return the start with one head, repaired until fresh words and the target agree with it, or None."""
        alone, examples = self.attempt.focused(head), self.examples
        length, changes = examples.fit(min(alone.full_length, 2 * self.attempt.at.length)), 0
        for _ in range(_REPAIRS):
            # Repair on fresh words first, then compare the machine with the target.
            batch = examples.many(length, self.generator)
            patched = alone.repair(batch, self.deadline)
            changes += patched.changes
            if patched.after:
                self.note("not repaired", head=head, changes=changes, before=patched.before, after=patched.after)
                return None
            observed = observe(alone.heads, batch, examples.alphabet, examples.outputs)
            candidate = machine_of(observed, (0,))
            if candidate is None:
                return None
            word = None if self.target is None else self.target.failing_word(candidate.machine)
            if word is None:
                self.note("repaired", head=head, changes=changes, states=candidate.machine.n_states)
                return alone
            self.note("refuted", word=tuple(map(str, word)), states=candidate.machine.n_states)
            if isinstance(examples, FreshWords):
                examples.add(word)
            length = alone.full_length
        return None

    def _observe(self) -> LabelledStates:
        return self._observed(self.examples.evaluation_words(self.attempt.full_length, self.generator))

    def _observed(self, batch: Batch) -> LabelledStates:
        return observe(self.attempt.heads, batch, self.examples.alphabet, self.examples.outputs)

    def _evaluate(self, observed: LabelledStates, is_settled: bool) -> LearnedCandidate | None:
        """Return the first set of heads that the labels allow and the target does not refute; None if no set is found.

        A counterexample to a set joins the observations: it rules the set out, or gives the output of a joint state
        that no word had reached.
        """
        rounds = (_ROUNDS if is_settled else _ROUNDS_DURING) if self.recipe.is_clean else 1
        for _ in range(rounds):
            candidate = next(self._allowed(observed, is_settled), None)
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
                observed = observed.joined(self._observed(self.examples.labelled(word)))
        return None

    def _allowed(self, observed: LabelledStates, is_settled: bool) -> Iterator[CandidateMachine]:
        """Yield faultless heads (sets of them at the end) if labels are right, else the fewest heads at the end."""
        if self.recipe.is_clean:
            yield from candidates(observed, 0, most=3 if is_settled else 1)
        elif is_settled and (candidate := fewest(observed)) is not None:
            yield candidate

    def _deadline(self) -> Deadline:
        # Time that earlier calls have used counts, too.
        limit = self.recipe.seconds
        return NEVER if limit is None else Deadline(limit - self.seconds)

    def _is_out(self) -> bool:
        limit = self.recipe.seconds
        return self.steps >= self.recipe.steps or (limit is not None and self.seconds >= limit)

    def _end(self) -> LearnedCandidate | None:
        self.note("end of the budget")
        observed = self._observe()
        candidate = machine_of(observed, (best_head(observed)[0],)) or self._last
        return None if candidate is None else LearnedCandidate(candidate, holds=False)

    def note(self, event: str, **what: float | str | tuple[str, ...]) -> None:
        """Append an event to the trail."""
        self.trail.append({"step": self.steps, "event": event, **what})


_PAIRS = 100_000  # of states, up to which a network is verified during training
_MANY = 16  # heads above which some are made constant before the verification
_AFTER, _MORE = 0.5, 0.1  # seconds, or a share of the time limit, for the verification at the end


class WholeRun(LearningRun):
    """A run in which all heads together are the candidate, with the network's own read-out."""

    examples: FreshWords
    target: LearningTarget

    def __init__(self, recipe: Recipe, examples: FreshWords, target: LearningTarget, n_states: int) -> None:
        super().__init__(recipe, examples, target, n_states)
        self.verdict: Proved | Refuted | Undecided | None = None

    def _looked(
        self, record: Record, report: Callable[[Record], None] | None, is_settled: bool
    ) -> LearnedCandidate | None:
        """Verify the network if it makes no error on fresh words; return it if proved."""
        wrong, labels = self._faults()
        self._record({**record, "faults": wrong / labels}, report)
        if not wrong and (candidate := self._verified(labels)) is not None:
            return candidate
        at = self.attempt.at
        if (
            self._is_wide
            and at.rests == 0
            and self.target.scope == EVERY_WORD
            and not (is_settled or self.attempt.is_stuck)
        ):
            self._focus()
        return None

    def _next(self, is_settled: bool) -> LearningStart:
        self.note("settled without a proof" if is_settled else "stuck")
        return self._start(self.attempt.number + 1)

    def verified(self) -> LearnedCandidate | None:
        """Return the network in its current state as a candidate if it is proved correct, else None."""
        wrong, labels = self._faults()
        return None if wrong else self._verified(labels)

    def _faults(self) -> tuple[int, int]:
        """Return the number of wrong labels on fresh words, and the number of labels."""
        batch = self.examples.evaluation_words(self.attempt.full_length, self.generator)
        with torch.no_grad():
            predicted = self.attempt.model(batch.tokens, empty_word=True).argmax(-1)
        counts = batch.labels != UNCOUNTED
        return int((predicted != batch.labels)[counts].sum()), int(counts.sum())

    @property
    def _is_wide(self) -> bool:
        return self.attempt.n_heads > _MANY

    def _focus(self) -> None:
        """Continue with the images of the target if they determine its outputs: train only the read-out, on them."""
        attempt, machine = self.attempt, self.target.specification
        heads, is_enough = images(attempt.model, machine)
        if is_enough:
            self.note("images", heads=len(heads))
            others = set(range(attempt.n_heads)) - set(heads)
            self.attempt = attempt.reading_out(without_heads(attempt.model, others))

    def _verified(self, labels: int) -> LearnedCandidate | None:
        """Return the candidate if the network is proved equal to the target; a counterexample joins the words."""
        # Many heads that have learned nothing multiply the joint states: such a network is verified without them.
        model = self._with_fewer_heads() if self._is_wide else self.attempt.model
        self.verdict = self.target.judge_network(model, _PAIRS, seconds=self.deadline)
        if isinstance(self.verdict, Proved):
            self.attempt.model = model
            return LearnedCandidate(self._candidate(0, labels), holds=True)
        if isinstance(self.verdict, Refuted):
            self.note("refuted", word=tuple(map(str, self.verdict.word)))
            self.examples.add(self.verdict.word)
            self.attempt.warm()
        return None

    def _with_fewer_heads(self) -> LRNN:
        """Return a copy of the network in which heads that no output of fresh words depends on are constant."""
        batch, model = self.examples.evaluation_words(self.attempt.full_length, self.generator), self.attempt.model
        counts, still = batch.labels != UNCOUNTED, 0
        for head in range(self.attempt.n_heads):
            candidate = without_heads(model, (head,))
            with torch.no_grad():
                predicted = candidate(batch.tokens, empty_word=True).argmax(-1)
            if torch.equal(predicted[counts], batch.labels[counts]):
                model, still = candidate, still + 1
        self.note("fewer heads", still=still)
        return model

    def _candidate(self, wrong: int, labels: int) -> CandidateMachine:
        """Return the target machine as the candidate of a network that is proved equivalent to it."""
        return CandidateMachine(tuple(range(self.attempt.n_heads)), self.target.specification, wrong, labels)

    def _end(self) -> LearnedCandidate | None:
        """Return the trained network, proved or with its extracted machine; None if that has too many states."""
        self.note("end of the budget")
        wrong, labels = self._faults()
        # The trained network is verified after the time limit, within a short limit of its own.
        deadline = NEVER if self.recipe.seconds is None else Deadline(max(_AFTER, _MORE * self.recipe.seconds))
        self.verdict = self.target.judge_network(self.attempt.model, _PAIRS, seconds=deadline)
        if isinstance(self.verdict, Proved):
            return LearnedCandidate(self._candidate(wrong, labels), holds=True)
        try:
            machine = extract(self.attempt.model, _PAIRS, seconds=deadline)
        except BudgetExceeded:
            return None
        return LearnedCandidate(self._candidate(wrong, labels)._replace(machine=machine), holds=False)
