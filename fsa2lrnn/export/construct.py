"""Choose a construction of a machine by gated delta layers: one head, heads in parallel, or a stack of layers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.cascade.congruence import lattice, meet
from fsa2lrnn.deadline import check_current
from fsa2lrnn.errors import BudgetExceeded, NotExpressible
from fsa2lrnn.export.cascades import cascaded
from fsa2lrnn.export.plan import MAX_STATES, Orbit, StagePlan, side_by_side
from fsa2lrnn.export.reflections import reflections
from fsa2lrnn.export.registers import MAX_WINDOW, register, two_stages, windowed

_MAX_HEADS = 8  # the most heads in parallel
_CONGRUENCES = 300  # the most congruences whose quotients are tried as heads


def construct(machine: MooreMachine, has_reflections: bool, longest_lag: int = MAX_WINDOW) -> StagePlan:
    """Return a plan of gated delta layers that implements the minimal machine.

    Args:
        machine: any machine; it is minimised first.
        has_reflections: whether β reaches 2 in the layer.
        longest_lag: the number of previous letters that the convolution of a layer reads.

    Raises:
        NotExpressible: if no stack of the constructions is found. This does not prove that none exists.
        BudgetExceeded: for a machine with more than `MAX_STATES` states, or if every construction exceeded a limit on
            windows or units.

    >>> from fsa2lrnn.automata import zoo
    >>> construct(zoo.parity(), has_reflections=True).how
    'one head: reflections, 2 matrices'
    """
    minimal = minimise(machine)
    if minimal.n_states > MAX_STATES:
        raise BudgetExceeded(
            f"{minimal.n_states:,} states, and whole models are written for {MAX_STATES:,} at most, each a unit of the "
            "MLP: give a smaller machine"
        )
    identity = np.arange(minimal.n_states)
    for partition in _partitions(minimal, only_all=True):
        if (heads := _heads_for(minimal, [partition], has_reflections)) is not None:
            return heads
    too_many: BudgetExceeded | None = None
    for length in range(1, longest_lag + 1):
        try:
            behind = windowed(minimal, length)
        except BudgetExceeded as fault:  # other constructions need no windows
            too_many = fault
            break
        if behind is not None and (plan := two_stages(minimal, behind)) is not None:
            return plan
    chosen, refined = list[np.ndarray](), np.zeros(minimal.n_states, np.int64)
    for partition in _partitions(minimal, only_all=False):
        check_current("searching for heads")
        finer = meet(refined, partition)
        if finer.max() == refined.max() or _one_head(minimal, partition, has_reflections) is None:
            continue
        chosen, refined = [*chosen, partition], finer
        if np.array_equal(refined, identity) and len(chosen) <= _MAX_HEADS:
            heads = _heads_for(minimal, chosen, has_reflections)
            if heads is not None:
                return heads
    if (cascade := cascaded(minimal, has_reflections)) is not None:
        return cascade
    if too_many is not None:
        raise too_many
    kinds = "registers and transpositions above counters" if has_reflections else "registers"
    raise NotExpressible(
        f"no stack of the known constructions was found for this machine of {minimal.n_states} states (heads side by "
        f"side, a register behind windows of {longest_lag + 1} letters, a cascade of {kinds}); this does not prove "
        "that there is none"
    )


def _partitions(minimal: MooreMachine, only_all: bool) -> Iterator[np.ndarray]:
    if only_all:
        yield np.arange(minimal.n_states)
        return
    yield from lattice(np.unique(minimal.delta, axis=0), _CONGRUENCES).partitions[1:]


def _one_head(minimal: MooreMachine, partition: np.ndarray, has_reflections: bool) -> tuple[Orbit, str] | None:
    first = np.unique(partition, return_index=True)[1]
    delta = partition[minimal.delta[:, first]]
    if (orbit := register(delta)) is not None:
        return orbit, "a register"
    if has_reflections and (orbit := reflections(delta, int(partition[minimal.start]))) is not None:
        return orbit, "reflections"
    return None


def _heads_for(minimal: MooreMachine, partitions: list[np.ndarray], has_reflections: bool) -> StagePlan | None:
    candidates = [_one_head(minimal, partition, has_reflections) for partition in partitions]
    heads = [pair for pair in candidates if pair is not None]
    if len(heads) < len(candidates):
        return None
    kinds = ", ".join(kind for _, kind in heads)
    count = "one head" if len(heads) == 1 else f"{len(heads)} heads side by side"
    sizes = " × ".join(str(len(orbit.states)) for orbit, _ in heads)
    try:
        return side_by_side(minimal, [orbit for orbit, _ in heads], f"{count}: {kinds}, {sizes} matrices")
    except (BudgetExceeded, NotExpressible):
        return None
