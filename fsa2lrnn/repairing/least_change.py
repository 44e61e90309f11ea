"""Repair a trained model.

`repair` observes the states of the model while it is right (`observed`), finds in each block the nearest exact affine
image of the machine (`representation`), fits the read-out of that image, and changes the tables as little as its
equations require (`probe`). On request, the blocks also become dead-beat, so that they forget everything else, with
exact arithmetic (`dyadic`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.display import Brief
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import SwitchedAffine, switched
from fsa2lrnn.repairing.dyadic import AMPLITUDES, PLACES, DeadbeatBlock, Places, dead_beat, forget, round_block
from fsa2lrnn.repairing.observed import RepairStates, StateObservations, is_right, observe
from fsa2lrnn.repairing.probe import Block, ReadoutProbe, explained_share, fit, least_change
from fsa2lrnn.repairing.representation import Representation, learned_representation, mark_of_start, with_constant
from fsa2lrnn.verdicts import Proved, Scope
from fsa2lrnn.verification.equivalence import prove_equivalent
from fsa2lrnn.verification.specification import Specification, specification_of

Mode = Literal["least", "deadbeat", "dyadic"]
"""The aim of a repair: the least change, dead-beat blocks, or dead-beat blocks with exact arithmetic."""


class Change(NamedTuple):
    """The relative change ‖after − before‖ / ‖before‖ (Frobenius) of the tables A, the tables v, and x₀."""

    A: float
    v: float
    x0: float


@dataclass(frozen=True, eq=False)
class RepairedHead(Brief):
    """The repair of one block.

    Args:
        head: the number of the block.
        image: the exact affine image of the machine that it implements; row q of `image.phi` belongs to state
            `Repaired.states[q]` of the minimal machine, the last row to the initial state.
        told: R², the share of the image's variance that a read-out explained before the repair.
        residual_before, residual_after: the residuals of L6's equations (`ReadoutProbe.residual`).
        change: the relative change (Frobenius) of the block's A.
    """

    head: int
    image: Representation
    told: float
    residual_before: float
    residual_after: float
    change: float


@dataclass(frozen=True, eq=False)
class Repaired(Brief):
    """A repaired model of the trained class, and the changes made.

    Args:
        model: the repaired model, whose tables implement an exact image of the machine.
        mode: the option of `repair`.
        heads: the blocks with an image; the others are unchanged or, in a dead-beat model, forget everything.
        states: int64 (n + 1,), states of the minimal machine by number; the last is the initial one.
        scope: the outputs of the machine that counted.
        change: the relative change (Frobenius) of A, v and x₀, over all letters and blocks.
        places: the binary places of a dyadic model, else None.
    """

    model: LRNN
    mode: Mode
    heads: tuple[RepairedHead, ...]
    states: np.ndarray
    scope: Scope
    change: Change
    places: Places | None

    def to_json(self) -> dict[str, Any]:
        """Return all fields but the model as a JSON object."""
        return {
            "mode": self.mode,
            "change": self.change._asdict(),
            "places": None if self.places is None else vars(self.places),
            "states": self.states.tolist(),
            "scope": self.scope.to_json(),
            "heads": [
                {
                    "head": head.head,
                    "rank": head.image.rank,
                    "classes": head.image.classes,
                    "phi": head.image.phi.tolist(),
                    **{name: getattr(head, name) for name in ("told", "residual_before", "residual_after", "change")},
                }
                for head in self.heads
            ],
        }


_CHECKED = (100, 1_000)  # number and length of the test words of a repaired model, uniform and live
_PAIRS = 100_000  # the most pairs of states in the proof of a dyadic model
_AXES = (("A", 1), ("v", 1), ("x0", 0))


class RepairAttempt(NamedTuple):
    """The thresholds of one attempt at a repair.

    Args:
        least_share: the least share of a function's variance that a block must explain to represent the function.
        stiffness: the weight of L6's equations relative to the observations, when the read-out of an image is fitted.
        marks_start: whether a dead-beat block without an image distinguishes the start from all other positions,
            because its state after the first letter may matter.
    """

    least_share: float
    stiffness: float
    marks_start: bool = False


class RepairWork:
    """A repair in progress: the images, their read-outs, and the tables in float64."""

    def __init__(
        self,
        model: LRNN,
        machine: MooreMachine,
        goal: Specification,
        tables: SwitchedAffine,
        states: RepairStates,
        observed: StateObservations,
        attempt: RepairAttempt,
        mode: Mode,
        deadline: Deadline = NEVER,
    ) -> None:
        self._model, self._machine, self._states, self._observed = model, machine, states, observed
        self._goal, self._tables, self._deadline = goal, tables, deadline
        self._mode: Mode = mode
        A, v, x0 = (t.numpy() for t in (tables.A, tables.v, tables.x0))
        self._learned = [Block(A[:, h], v[:, h], x0[h]) for h in range(len(x0))]
        learned = {  # the nearest exact image of each block, None without one
            h: learned_representation(observed.head(h), block.x0, states, attempt.least_share, deadline)
            for h, block in enumerate(self._learned)
        }
        self.images = {h: image for h, image in learned.items() if image is not None}
        if mode == "least":  # the other modes make blocks forget all but their images
            for h, image in self.images.items():
                block = self._learned[h]
                self.images[h] = with_constant(image, observed.head(h), block.A, block.v)
        elif attempt.marks_start:
            self.images |= {h: mark_of_start(states) for h in learned.keys() - self.images.keys()}
        self._probes = {
            h: fit(self._learned[h], image, observed.head(h), attempt.stiffness) for h, image in self.images.items()
        }

    def finish(self) -> Repaired:
        """Return the repaired model. Raises `NotExact` or `NotExpressible` if this attempt fails."""
        if self._mode == "dyadic":
            return self._dyadic()
        blocks = self._least()
        if self._mode == "deadbeat":
            blocks = [beat if isinstance(beat, Block) else beat.block for beat in self._beats(blocks)]
        model = self._build(blocks)
        self._check(model)
        return self._report(model, {h: (self.images[h], self._probes[h]) for h in self.images})

    def _least(self) -> list[Block]:
        """Return each block with the least change that its image requires; a block without an image stays."""
        return [
            least_change(block, self.images[h], self._probes[h]) if h in self.images else block
            for h, block in enumerate(self._learned)
        ]

    def _beats(self, blocks: list[Block]) -> list[DeadbeatBlock | Block]:
        observed = observe(self._assemble(blocks), self._states)
        return [
            dead_beat(block, self.images[h], self._probes[h], observed.head(h))
            if h in self.images
            else forget(block, observed.head(h))
            for h, block in enumerate(blocks)
        ]

    def _dyadic(self) -> Repaired:
        """Return the first dyadic model, from many places to few, that its dtype holds and that is proved correct."""
        beats = self._beats(self._least())
        # Floats represent all integers of up to this many binary digits: 24 in float32, 53 in float64.
        digits = -int(np.log2(torch.finfo(self._model.dtype).eps)) + 1
        reason, refusals = "every one needs more digits", []
        for amplitude, places in product(AMPLITUDES, PLACES):  # from many binary places to few
            self._deadline.check("repair: rounding to dyadic numbers")
            try:
                rounded = {
                    h: round_block(beat, self.images[h], places, amplitude)
                    for h, beat in enumerate(beats)
                    if isinstance(beat, DeadbeatBlock)
                }
            except NotExpressible as error:
                refusals.append(error)
                continue
            if max(block.bits for block in rounded.values()) > digits:  # T26: exact sums fit into the mantissa
                continue
            blocks = [beat if isinstance(beat, Block) else rounded[h].block for h, beat in enumerate(beats)]
            model = self._build(blocks)
            ignored, deadline = self._goal.ignored, self._deadline
            verdict = prove_equivalent(model, self._machine, _PAIRS, False, ignored, deadline)
            if isinstance(verdict, Proved):
                carried = {h: (block.image, block.beat.probe) for h, block in rounded.items()}
                return self._report(model, carried, places)
            reason = f"with {places} the verdict is {verdict}"
        self._deadline.check("repair: proving dyadic models")
        if len(refusals) == len(AMPLITUDES) * len(PLACES):
            raise refusals[0]
        raise NotExact(
            f"no dyadic model that {self._model.dtype} holds in {digits} digits gives the machine's outputs: "
            f"{reason}; try a wider dtype, or mode='least'"
        )

    def _assemble(self, blocks: list[Block]) -> SwitchedAffine:
        A, v, x0 = (np.stack([getattr(block, name) for block in blocks], axis) for name, axis in _AXES)
        return replace(self._tables, A=torch.from_numpy(A), v=torch.from_numpy(v), x0=torch.from_numpy(x0))

    def _build(self, blocks: list[Block]) -> LRNN:
        tables = self._assemble(blocks).to(self._model.dtype)
        return LRNN.from_affine(tables, "none", self._model.config.p)

    def _check(self, model: LRNN) -> None:
        """Raise `NotExact` if a repaired model is wrong on test words drawn uniformly, or from live letters."""
        tables, rng = switched(model), np.random.default_rng(1)
        for is_live in (False, True):
            tokens = self._states.draw(rng, *_CHECKED, is_live)
            right = is_right(tables, self._states, tables.run(torch.from_numpy(tokens)), self._states.path(tokens))
            if not right.all():
                raise NotExact(
                    f"the repaired model is wrong at {np.count_nonzero(~right):,} of {right.size:,} positions, first "
                    f"after {int((~right).any(0).argmax()) + 1} letters: what its blocks carry, ranks "
                    f"{[image.rank for image in self.images.values()]}, does not decide the output; train it further"
                )

    def _report(
        self,
        model: LRNN,
        carried: Mapping[int, tuple[Representation, ReadoutProbe]],
        places: Places | None = None,
    ) -> Repaired:
        """Return the result with the changes of tables, and the residuals of each image before and after."""
        after = switched(model).to(torch.float64)
        A, v, x0 = (t.numpy() for t in (after.A, after.v, after.x0))
        # Residuals before the repair are those of the learned images, afterwards those of the images now implemented.
        heads = tuple(
            RepairedHead(
                h,
                image,
                explained_share(self._probes[h], self.images[h], self._observed.head(h)),
                self._probes[h].residual(self._learned[h], self.images[h]),
                probe.residual(Block(A[:, h], v[:, h], x0[h]), image),
                _relative(A[:, h], self._learned[h].A),
            )
            for h, (image, probe) in carried.items()
        )
        before = self._tables
        return Repaired(
            model,
            self._mode,
            heads,
            self._states.numbers,
            self._goal.scope,
            Change(*(_relative(new, getattr(before, name).numpy()) for name, new in (("A", A), ("v", v), ("x0", x0)))),
            places,
        )


def _relative(after: np.ndarray, before: np.ndarray) -> float:
    return float(np.linalg.norm(after - before) / (np.linalg.norm(before) or 1.0))


__all__ = ["Change", "RepairedHead", "Mode", "Repaired", "repair"]

_ATTEMPTS = (  # tried in this order until the repaired model is right
    RepairAttempt(0.8, 3.0),
    RepairAttempt(0.8, 3.0, marks_start=True),
    RepairAttempt(0.8, 1.0),
    RepairAttempt(0.5, 1.0),
)


def repair(
    model: LRNN,
    machine: MachineSource,
    mode: Mode = "least",
    ignore: Ignore = (),
    seconds: float | Deadline | None = None,
) -> Repaired:
    """Return a model near a trained one that implements exact images of `machine`: errors do not grow with length.

    The columns of the repaired model are not normalised.

    Args:
        model: one block layer over letters, right at least on short words.
        machine: over the same letters, or its source; the output on the empty word does not count.
        mode: "least" for the least change; "deadbeat" for blocks that forget all but their image, so that finitely many
            states are reachable; "dyadic" for dead-beat blocks whose arithmetic is exact in the model's dtype. A dyadic
            model is proved equal to the machine on all words but the empty one before it is returned.
        ignore: which outputs of the machine do not count: none; "lacked", those that the model does not have; or a
            collection of them.
        seconds: the limit of processor time; by default no limit.

    Raises:
        UnsupportedFormat: for several layers, or an unknown mode.
        NotExpressible: if no block holds an image of the machine, if no rational image fits, or if
            the model lacks an output that counts.
        NotExact: if the repaired model still makes mistakes.
        OutOfTime: if the time limit passes first.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> repaired = repair(compile_machine(zoo.sum_mod(3)), zoo.sum_mod(3))
    >>> repaired.change.A < 1e-6, repaired.heads[0].image.rank
    (True, 3)
    """
    if mode not in get_args(Mode):
        raise UnsupportedFormat(f"mode {mode!r} is not known: choose one of {', '.join(get_args(Mode))}")
    if not isinstance(model, LRNN):
        raise UnsupportedFormat(f"cannot repair a {type(model).__name__}: only an LRNN exposes its recurrence")
    if len(model.layers) > 1:
        raise UnsupportedFormat(f"the model has {len(model.layers)} layers: only models with one layer can be repaired")
    machine, deadline = as_machine(machine), Deadline.of(seconds)
    tables = switched(model).to(torch.float64)
    goal = specification_of(model, machine, ignore)
    states = RepairStates.of(goal)
    if (states.counts & ~states.answerable).any():
        raise NotExpressible(
            f"the model lacks outputs of the machine, {', '.join(map(repr, goal.outputs[goal.known :]))}, which no "
            'change of its tables gives it: leave them out by ignore="lacked", or train a model that has them'
        )
    observed = observe(tables, states)
    faults: list[NotExact | NotExpressible] = []
    for attempt in _ATTEMPTS:  # return the first repaired model that is right
        if attempt.marks_start and mode == "least":
            continue  # blocks that keep their rest need no mark of the start
        work = RepairWork(model, machine, goal, tables, states, observed, attempt, mode, deadline)
        if work.images:
            try:
                return work.finish()
            except (NotExact, NotExpressible) as error:
                faults.append(error)
    if not faults:
        raise NotExpressible(
            "no block carries an affine image of the machine, not even nearly: no function of its states that a block "
            f"tells with a share of {_ATTEMPTS[-1].least_share} of the variance is near a set that all letters map "
            "into itself"
        )
    raise type(faults[0])("; and at another attempt: ".join(dict.fromkeys(map(str, faults))))
