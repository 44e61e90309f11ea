"""Bounds on the factors of a layer of Householder products, with certificates (T36 of docs/theory.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, NotExact
from fsa2lrnn.extra.block_size import analysed, minimal_block, too_large
from fsa2lrnn.extra.block_size.answer import refusal
from fsa2lrnn.extra.block_size.blocks import StateBlock
from fsa2lrnn.extra.block_size.products import (
    excluded,
    factors,
    largest_rank,
    least_factors,
    reach,
)
from fsa2lrnn.extra.block_size.search import BlockSearch
from fsa2lrnn.families.householder import paths, sink_of
from fsa2lrnn.families.verdicts import certificate_header

BUDGET = 60.0  # seconds


@dataclass(frozen=True)
class FactorBounds:
    """Bounds on the number of factors I − β k kᵀ per letter in one layer of heads.

    Args:
        machine: the minimal machine.
        lower: fewer factors do not suffice; None if no number of factors suffices.
        upper: this number of factors suffices; None if no construction is known.
        impossible: the certificate that lower − 1 factors, or any number, do not suffice; None for lower = 0 or 1.
        heads: the functions of heads that prove `upper` for permutations and constants; otherwise empty.
        sink: the sink of the construction of T36 (d), whose vector is 0; None if it does not apply.
        note: why a bound is missing or not proved; "" otherwise.
    """

    machine: MooreMachine
    lower: int | None
    upper: int | None
    impossible: dict[str, Any] | None
    heads: tuple[StateBlock, ...]
    sink: int | None
    note: str

    def to_json(self) -> dict[str, Any]:
        """Return the certificate, for `recheck`, that `heads`, not empty, need at most `upper` factors per letter."""
        return {
            **certificate_header(self.machine, f"householder({max(self.upper or 1, 1)})", "representable"),
            "field": "R",
            "blocks": [head.to_json() for head in self.heads],
        }


def factor_bounds(machine: MooreMachine, budget: float | Deadline = BUDGET) -> FactorBounds:
    """Return bounds on the number of Householder factors per letter that a machine needs in one layer (T36).

    For permutations and constants they meet, unless the budget in seconds ends or a certificate cannot be written.

    >>> from fsa2lrnn.automata import zoo
    >>> [factor_bounds(machine).upper for machine in (zoo.group("S4"), zoo.group("S3"), zoo.dyck(1, 2))]
    [2, 2, 3]
    >>> factor_bounds(zoo.cerny(4)).lower is None
    True
    """
    minimal = minimise(machine)
    n = minimal.n_states
    sink = sink_of(minimal.delta) if n > 1 else None
    upper = None if sink is None else max(_of_letter(row, sink) for row in minimal.delta)
    if note := too_large(minimal):
        return FactorBounds(minimal, min(1, n - 1), upper, None, (), sink, note)
    deadline = budget if isinstance(budget, Deadline) else Deadline(budget)
    check = partial(deadline.check, "looking for fewer factors")
    try:
        return _accepted(_bounds(minimal, sink, upper, deadline, check))
    except (BudgetExceeded, NotExact) as fault:
        return FactorBounds(minimal, min(1, n - 1), upper, None, (), sink, str(fault))


def _bounds(
    minimal: MooreMachine, sink: int | None, upper: int | None, deadline: Deadline, check: Callable[[], None]
) -> FactorBounds:
    n = minimal.n_states
    module, kinds = analysed(minimal, check)
    if n == 1 or kinds is None:
        note = "" if n == 1 else "some constituent was neither split nor proved irreducible"
        return FactorBounds(minimal, min(1, n - 1), 0 if n == 1 else upper, None, (), sink, note)
    found = factors(minimal.delta, kinds, check)
    lower = least = least_factors(module, found, check)
    impossible = None
    if least is None or least > 1:
        impossible = excluded(minimal, module, found, None if least is None else least - 1, check)
        lower = least if impossible is not None else 1
    whole = largest_rank(module)
    if lower is not None and lower < whole:
        smaller = minimal_block(minimal, "R", deadline)
        if smaller.lower == n - 1 and smaller.impossible is not None:
            lower, impossible = whole, {**smaller.impossible, "family": f"householder({whole - 1})"}
    heads: tuple[StateBlock, ...] = ()
    if least is not None and all(len(np.unique(row)) in (1, n) for row in minimal.delta):
        chosen = reach(module, found, least, check)
        heads = tuple(BlockSearch(module, minimal, kinds, "R", chosen, check).of_copies(chosen))
        upper = least
    note = "" if upper is not None or lower is None else "no construction is known for such letters"
    return FactorBounds(minimal, lower, upper, impossible, heads, sink, note)


def _accepted(bounds: FactorBounds) -> FactorBounds:
    if bounds.heads and (fault := refusal(bounds.to_json())):
        bounds = replace(bounds, upper=None, heads=(), note=f"the heads that were found do not do ({fault})")
    if bounds.impossible is not None and (fault := refusal(bounds.impossible)):
        note = f"the certificate of the lower bound was refused ({fault}): please report this machine"
        bounds = replace(bounds, lower=min(1, bounds.machine.n_states - 1), impossible=None, note=note)
    return bounds


def _of_letter(row: np.ndarray, sink: int) -> int:
    chains, cycles = paths(row, sink)
    return sum(map(len, chains)) + sum(len(cycle) - 1 for cycle in cycles)
