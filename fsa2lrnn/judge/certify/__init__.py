"""How long is a model right on every word? The search for a proof; `fsa2lrnn.judge.check` judges what it finds.

Nothing here has to be right for a certificate to be: the search proposes coordinates, how many letters to remember and
where a tail may begin, and the horizon is what the judge makes of them.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.judge.certificate import Certificate
from fsa2lrnn.judge.certify.search import Search
from fsa2lrnn.judge.check import SCANS, digest
from fsa2lrnn.judge.check.enumeration import explore
from fsa2lrnn.judge.check.rounding import format_of
from fsa2lrnn.judge.goal import Goal, goal_for
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import SwitchedAffine, switched

_ULPS = 16  # of the largest entry: more than orders of summation in the gates change, as a test measures
_PAIRS = 20_000  # of an enumeration
_CLAIMED = 1 - 1e-6  # of a margin, so that other machines' roundings of float64 do not matter


def certify(
    model: LRNN | SwitchedAffine,
    machine: MooreMachine,
    memory: int | str = "auto",
    slack: float | None = None,
    seconds: float = 40.0,
    ignore: Ignore = (),
) -> Certificate:
    """Up to which length the model gives the machine's output at every position that counts, of every word.

    One layer over letters is followed in sets of states, floats as they are computed by any scan that makes x_k from
    x_{k-1} by inner products. Other models are enumerated, bit for bit, as far as a budget of joint states goes.

    Args:
        model: of one layer over letters in float32 or float64, or any LRNN.
        machine: over the same letters; the output on the empty word does not count.
        memory: how many last letters a set remembers, or "auto" for as many as pay.
        slack: by how much, entry by entry, tables may differ that are made by other products of the same gates; by
            default 16 units in the last place of the largest entry.
        seconds: after which no further coordinates and memories are tried.
        ignore: which outputs of the machine do not count: none; "lacked", those that the model does not have; or a
            collection of them. The certificate names them.

    Returns:
        a certificate that `fsa2lrnn.judge.check.check` accepts; its horizon is 0 where nothing can be shown.

    Raises:
        InvalidMachine, UnsupportedFormat: if model and machine have unlike alphabets, if no output counts, if numbers
            are none or too large or of a dtype whose rounding is not bounded, and for options that make no sense.
        MissingPackage: without cvxpy, which shapes the sets of most trained models.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> certify(compile_machine(zoo.parity()), zoo.parity()).horizon > 10_000
    True
    """
    tables = _tables(model)
    if isinstance(tables, LRNN):
        return _enumerated(tables, machine, goal_for(tables, machine, ignore))
    goal = goal_for(tables, machine, ignore)
    format_of(tables)  # before anything is computed with numbers that may be none
    slack = default_slack(model) if slack is None else slack
    if not 0 <= slack < np.inf:
        raise UnsupportedFormat(f"slack = {slack}: what tables may differ by is a number of at least 0")
    with np.errstate(all="ignore"):  # of numbers that overflow nothing is shown
        search = Search(tables, goal, slack, time.monotonic() + seconds)
        walk = search.settled(search.best(memory))
    return Certificate(
        horizon=walk.horizon,
        margins=np.array(walk.margins) * _CLAIMED,
        method="sets",
        dtype=_name(tables),
        scans=SCANS,
        slack=slack,
        sha256=tables.sha256,
        machine=minimise(machine),
        tube=walk.tube,
        ignore=goal.ignored,
    )


def default_slack(model: LRNN | SwitchedAffine) -> float:
    """16 units in the last place of the largest entry of A and v; 0 for tables, and for gates that look them up.

    A layer looks tables up if for each letter one number at most goes into any product of its gates and no bias is
    added (`Layer.is_lookup`): there is then no sum whose order could matter.
    """
    if isinstance(model, SwitchedAffine) or model.recurrences[0].is_lookup(model.first_inputs()):
        return 0.0
    tables = switched(model)
    largest = max(float(tables.A.abs().max()), float(tables.v.abs().max()))
    return _ULPS * torch.finfo(tables.dtype).eps * largest


def _tables(model: LRNN | SwitchedAffine) -> SwitchedAffine | LRNN:
    """What is to be certified: tables where a model has them, else the model."""
    if isinstance(model, SwitchedAffine):
        return model
    return switched(model) if model.is_switched else model


def _enumerated(model: LRNN, machine: MooreMachine, goal: Goal) -> Certificate:
    found = explore(model, goal, _PAIRS)
    return Certificate(
        horizon=None if found.is_closed and not found.is_wrong else found.length,
        margins=np.zeros(0),
        method="enumeration",
        dtype=_name(model),
        scans=found.scans,
        slack=0.0,
        sha256=digest(model),
        machine=minimise(machine),
        ignore=goal.ignored,
    )


def _name(model: LRNN | SwitchedAffine) -> str:
    return str(model.dtype).removeprefix("torch.")


__all__ = ["certify", "default_slack"]
