"""Bounds on the number of Householder factors per letter in one layer of heads, with certificates (T36).

A head with m factors I − β k kᵀ per letter represents functions on which every letter differs from the identity by rank
at most m. Their constituents have this property too. The functions that can be built from constituents that qualify
form a submodule; if it does not separate all states, m factors do not suffice. No number of factors suffices if the
equations of contracting letters refute the machine (T58).
"""

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
from fsa2lrnn.families import linear
from fsa2lrnn.families.block_sizes import StateBlock, analysed, refusal, too_large
from fsa2lrnn.families.block_sizes.block_search import BlockSearch
from fsa2lrnn.families.block_sizes.chain import SubmoduleChain, chain_certificate, reach
from fsa2lrnn.families.block_sizes.constituents import ModuleKind
from fsa2lrnn.families.family_answers import Impossibility, certificate_header
from fsa2lrnn.families.householder import sink_keys, sink_of
from fsa2lrnn.families.refutation import refuted

BUDGET = 60.0  # seconds


@dataclass(frozen=True)
class FactorBounds:
    """Bounds on the number of factors I − β k kᵀ per letter in one layer of heads.

    Args:
        machine: the minimal machine.
        lower: fewer factors do not suffice; None if no number of factors suffices, by `refutation`.
        upper: this number of factors suffices; None if no construction is known.
        impossible: the certificate that lower − 1 factors, or any number, do not suffice; None for lower = 0 or 1.
        refutation: the equations by which no number of factors suffices; None if there are none.
        heads: the functions of heads that prove `upper` for permutations and constants; otherwise empty.
        note: why a bound is missing or not proved; "" otherwise.
    """

    machine: MooreMachine
    lower: int | None
    upper: int | None
    impossible: dict[str, Any] | None
    heads: tuple[StateBlock, ...]
    note: str
    refutation: Impossibility | None = None

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
    # T36 (d): with a sink at 0, a letter takes one factor per step of its chains and of its cycles.
    upper = None if sink is None else max(len(sink_keys(row, sink)) for row in minimal.delta)
    are_free = all(len(np.unique(row)) in (1, n) for row in minimal.delta)  # permutations and constants
    # T36 (c) and (d) construct layers of factors for the other machines, so that T58 cannot refute them.
    if upper is None and not are_free and (refutation := refuted(minimal, "contracting", "householder")):
        return FactorBounds(minimal, None, None, refutation.to_json(), (), "", refutation)
    if note := too_large(minimal):
        # Without factors every letter fixes all differences of vectors, so two reachable states need at least one.
        return FactorBounds(minimal, min(1, n - 1), upper, None, (), note)
    deadline = budget if isinstance(budget, Deadline) else Deadline(budget)
    check = partial(deadline.check, "looking for fewer factors")
    try:
        return _accepted(_bounds(minimal, upper, are_free, check))
    except (BudgetExceeded, NotExact) as fault:
        return FactorBounds(minimal, min(1, n - 1), upper, None, (), str(fault))


def _bounds(minimal: MooreMachine, upper: int | None, are_free: bool, check: Callable[[], None]) -> FactorBounds:
    """Return bounds on the number of reflections per letter and head.

    A kind on which some letter moves r dimensions needs r factors. So the least number is the least m for which the
    kinds that need at most m separate all states, if the letters are free; otherwise it is a lower bound.
    """
    n = minimal.n_states
    module, kinds = analysed(minimal, check)
    if n == 1 or kinds is None:
        note = "" if n == 1 else "some constituent was neither split nor proved irreducible"
        return FactorBounds(minimal, min(1, n - 1), 0 if n == 1 else upper, None, (), note)
    counts, impossible = [_count(kind) for kind in kinds], None

    def reached(m: int) -> SubmoduleChain:
        return reach(module, kinds, [i for i, count in enumerate(counts) if count <= m], check)

    lower, excluded, found = 0, None, reached(0)
    for count in sorted({*counts} - {0}):  # all kinds together separate all states
        # U_0 is the largest submodule of kinds that m factors can move; if it separates all states, m may suffice.
        if found.merged(0) is None:
            break
        # T36 (a): the kinds of smaller counts leave two states with one vector, so fewer than `count` factors do not
        # suffice.
        lower, excluded, found = count, found, reached(count)
    if lower > 1 and excluded is not None:
        impossible = chain_certificate(minimal, f"householder({lower - 1})", 0, kinds, excluded)
    heads: tuple[StateBlock, ...] = ()
    if are_free:
        # T36 (c): for permutations and constants the necessary condition is also sufficient.
        upper = lower
        heads = tuple(BlockSearch(module, minimal, kinds, "R", found, check).of_copies())
    note = "" if upper is not None else "no construction is known for such letters"
    return FactorBounds(minimal, lower, upper, impossible, heads, note)


def _count(kind: ModuleKind) -> int:
    """Return the largest rank of T_a − 1 over all letters a, on a real constituent of a kind."""
    one = linear.identity(kind.dimension)
    largest = max(linear.rank(letter - one) for letter in kind.standard.module.letters)
    # The constituents of a kind are conjugate, so that each has the same share of the rank over the rationals.
    return largest * kind.weight("R") // kind.dimension


def _accepted(bounds: FactorBounds) -> FactorBounds:
    """Return the bounds without those whose certificates `recheck` refuses."""
    if bounds.heads and (fault := refusal(bounds.to_json())):
        bounds = replace(bounds, upper=None, heads=(), note=f"the heads that were found do not do ({fault})")
    if bounds.impossible is not None and (fault := refusal(bounds.impossible)):
        note = f"the certificate of the lower bound was refused ({fault}): please report this machine"
        bounds = replace(bounds, lower=1, impossible=None, note=note)
    return bounds
