"""Repair a trained model: `repair` and `snap`.

`repair` observes the states of the model while it is right (`observed`), finds in each block the nearest exact affine
image of the machine (`representation`), fits the read-out of that image, and changes the tables as little as its
equations require (`probe`), optionally with bounded columns (`columns`). On request, the blocks also become dead-beat,
so that they forget everything else, with exact arithmetic (`dyadic`, `rational`).
"""

from __future__ import annotations

from typing import get_args

import torch

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.lower import compile_machine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.repairing.columns import cvxpy
from fsa2lrnn.repairing.observed import RepairStates, observe
from fsa2lrnn.repairing.result import Change, Columns, Mode, Repaired, RepairedHead
from fsa2lrnn.repairing.work import RepairAttempt, RepairWork
from fsa2lrnn.verification.specification import specification_of

__all__ = ["Change", "Columns", "RepairedHead", "Mode", "Repaired", "repair", "snap"]

_ATTEMPTS = (  # tried in this order until the repaired model is right
    RepairAttempt(0.8, 3.0),
    RepairAttempt(0.8, 3.0, marks_start=True),
    RepairAttempt(0.8, 1.0),
    RepairAttempt(0.5, 1.0),
)


def repair(
    model: LRNN,
    machine: MooreMachine,
    columns: Columns = "keep",
    mode: Mode = "least",
    ignore: Ignore = (),
    seconds: float | Deadline | None = None,
) -> Repaired:
    """Return a model near a trained one that implements exact images of `machine`: errors do not grow with length.

    Args:
        model: one block layer over letters, right at least on short words.
        machine: over the same letters; the output on the empty word does not count.
        columns: "keep" for the least change of the tables; "p<=1" for columns of a p-norm of at most 1, p as in the
            model's configuration. The repaired model has the rule "clip" with "p<=1", otherwise "none".
        mode: "least" for the least change; "deadbeat" for blocks that forget all but their image, so that finitely many
            states are reachable; "dyadic" for dead-beat blocks whose arithmetic is exact in the model's dtype. A dyadic
            model is proved equal to the machine on all words but the empty one before it is returned.
        ignore: which outputs of the machine do not count: none; "lacked", those that the model does not have; or a
            collection of them.
        seconds: the time limit; by default no limit.

    Raises:
        UnsupportedFormat: for several layers, an unknown option, or "p<=1" with a mode other than "least".
        NotExpressible: if no block holds an image of the machine, if no image satisfies the options, or
            if the model lacks an output that counts.
        NotExact: if the repaired model still makes mistakes.
        OutOfTime: if the time limit passes first.
        MissingPackage: for "p<=1" without cvxpy.

    >>> from fsa2lrnn.automata import zoo
    >>> repaired = repair(compile_machine(zoo.sum_mod(3)), zoo.sum_mod(3))
    >>> repaired.change.A < 1e-6, repaired.heads[0].image.rank
    (True, 3)
    """
    _check_options(columns, mode)
    if not isinstance(model, LRNN):
        raise UnsupportedFormat(f"cannot repair a {type(model).__name__}: only an LRNN exposes its recurrence")
    if len(model.layers) > 1:
        raise UnsupportedFormat(f"the model has {len(model.layers)} layers: only models with one layer can be repaired")
    deadline = Deadline.of(seconds)
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
                return work.finish(columns)
            except (NotExact, NotExpressible) as error:
                faults.append(error)
    if not faults:
        raise NotExpressible(
            "no block carries an affine image of the machine, not even nearly: no function of its states that a block "
            f"tells with a share of {_ATTEMPTS[-1].least_share} of the variance is near a set that all letters map "
            "into itself"
        )
    raise type(faults[0])("; and at another attempt: ".join(dict.fromkeys(map(str, faults))))


def snap(model: LRNN, machine: MooreMachine) -> LRNN:
    """Return the compiled model of `machine` in the dtype of `model`, which it replaces.

    >>> from fsa2lrnn.automata import zoo
    >>> snap(compile_machine(zoo.parity()).double(), zoo.parity()).dtype
    torch.float64
    """
    specification_of(model, machine, "lacked")  # checks that letters are equal and outputs overlap
    return compile_machine(machine, dtype=model.dtype)


def _check_options(columns: Columns, mode: Mode) -> None:
    for name, value, choices in [("columns", columns, get_args(Columns)), ("mode", mode, get_args(Mode))]:
        if value not in choices:
            raise UnsupportedFormat(f"{name} {value!r} is not known: choose one of {', '.join(choices)}")
    if columns == "p<=1" and mode != "least":
        raise UnsupportedFormat(
            f"columns='p<=1' goes with mode='least': the tables of a {mode} model follow from what it carries and "
            "leave no room to bound their columns"
        )
    if columns == "p<=1":
        cvxpy()  # before anything is computed
