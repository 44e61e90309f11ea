"""The search for a proof that a model is right on every word up to a length; `fsa2lrnn.checker` checks the proof.

The soundness of a certificate does not depend on this package: the search proposes coordinates, the number of letters
to remember and the start of a tail, and the checker computes the certified length from them.

For the joint states of several layers, the search is for the partition along which boxes certify the most letters.
Words have one node if they lead to one state of the machine, have the same last letters, and if the model's states
after them are close. Words are tried shortest first; a word whose node is known is not continued.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.deadline import NEVER, WORK, Deadline, SearchCutShort, WorkBudget, limited
from fsa2lrnn.errors import OutOfTime, UnsupportedFormat
from fsa2lrnn.nn.checkpoint import digest
from fsa2lrnn.nn.layer_checks import user_layers
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import SwitchedAffine, switched
from fsa2lrnn.verification.certificate import Certificate, checked, slack_of
from fsa2lrnn.verification.certify.tubes import TubeSearch
from fsa2lrnn.verification.check import MOST_READ, SCANS
from fsa2lrnn.verification.extraction import ModelSystem
from fsa2lrnn.verification.joint_sets import MOST_LENGTHS, JointSets, check_bounded
from fsa2lrnn.verification.modelled import check_modelled
from fsa2lrnn.verification.specification import Specification, specification_of
from fsa2lrnn.verification.walk import ROUNDS, explore

_STEPS = 20_000  # steps of an enumeration that cost no work
_STEP = 100_000  # multiplications that the calls of a step cost, however small the model
_CLAIMED = 1 - 1e-6  # the share of a margin that is claimed, so that other CPUs' float64 rounding does not matter


def certify(
    model: LRNN | SwitchedAffine,
    machine: MachineSource,
    memory: int | str = "auto",
    slack: float = 0.0,
    work: float = WORK,
    seconds: float | Deadline | None = None,
    ignore: Ignore = (),
    method: str = "auto",
) -> Certificate:
    """Return a certificate that the model gives the machine's output wherever it counts, up to a certified length.

    For one layer over letters, the proof encloses the states in sets, which hold for any scan that computes x_k from
    x_{k-1} by inner products. For several layers, it enumerates joint states bit for bit. If some round and they do not
    close within 20,000 steps, it encloses the joint states in boxes. If that proves no more, it enumerates further.

    Args:
        model: of one layer over letters in float32 or float64, or any LRNN.
        machine: over the same letters, or its source; the output on the empty word does not count.
        memory: the number of last letters that a set remembers, or "auto" for as many as increase the length.
        slack: additional absolute tolerance for each entry of the tables. The rounding of the gates, in any order of
            summation, is always included: it is bounded from their weights (`certificate.slack_of`), and usually limits
            models with wide gates. A model that `as_tables` returns looks its tables up, and needs no tolerance.
        work: the approximate number of multiplications of the search; equal work gives equal certificates on any CPU.
            One step of an enumeration costs as many as the model has numbers, at least 100,000; the first 20,000 steps
            cost none. For several layers, either search may spend it.
        seconds: an additional limit of processor time. If it ends the search, the certificate states the length proved
            so far, a `SearchCutShort` warning is issued, and the certified length depends on the speed of the CPU.
        ignore: which outputs of the machine do not count: none; "lacked", those that the model does not have; or a
            collection of them. The certificate names them.
        method: "auto", or "joint sets" alone, which may prove less than an enumeration, but for every shape of call.

    Returns:
        A certificate that `fsa2lrnn.check` accepts; its horizon is 0 if no length can be proved.

    Raises:
        FalseDeclaration: for a user-defined layer that computes other than it declares, on random inputs.
        InvalidMachine, UnsupportedFormat: if model and machine have different alphabets, if no output counts, if
            weights are NaN or too large or of a dtype whose rounding is not bounded, for a layer whose tables' rounding
            is not bounded, for joint sets alone if an operation leaves the range of its bound, for modules that are not
            modelled (`verification.modelled`), and for invalid options.
        OutOfTime: if the time limit passes before any length is proved.
        MissingPackage: without cvxpy, which shapes the sets of most trained models.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> certify(compile_machine(zoo.parity()), zoo.parity()).horizon > 10_000
    True
    """
    layers, machine = check_modelled(model), as_machine(machine)
    if method not in ("auto", "joint sets"):
        raise UnsupportedFormat(f'method {method!r} is not known: "auto" or "joint sets"')
    tables, effort = model if method != "auto" else _tables(model), WorkBudget(work, seconds)
    if isinstance(tables, LRNN):  # no tables: bound or enumerate the joint states
        goal = specification_of(tables, machine, ignore)
        if method == "auto":
            certificate = _of_layers(tables, machine, goal, effort)
        else:
            bounded = best_partition(tables, goal, effort) or Bounded(
                np.zeros((len(goal.delta), 1), np.int64), [], False
            )
            certificate = _by_joint_sets(_enumerated(tables, machine, goal, lambda _: False, NEVER), bounded)
        effort.warn_if_cut_short(certificate.horizon)
        return certificate
    if method != "auto":
        raise UnsupportedFormat("tables are of one layer, and joint sets of models: give the model, or no method")
    goal = specification_of(tables, machine, ignore)
    numbers = checked(tables)  # rejects NaN before anything is computed
    bound = slack_of(model, slack)
    with np.errstate(all="ignore"):  # numbers that overflow prove nothing
        search = TubeSearch(numbers, goal.target, bound, effort)
        walk = search.settled(search.best(memory))
    effort.warn_if_cut_short(walk.horizon)
    return Certificate(
        horizon=walk.horizon,
        # The checker recomputes the margins and accepts a claim only if it is not larger.
        margins=np.array(walk.margins) * _CLAIMED,
        method="sets",
        dtype=_name(tables),
        scans=SCANS,
        slack=slack,
        sha256=tables.sha256,
        machine=minimise(machine),
        tube=walk.tube,
        ignore=goal.ignored,
        tested_layers=layers,
    )


def _tables(model: LRNN | SwitchedAffine) -> SwitchedAffine | LRNN:
    """Return the tables of a model that has tables, else the model."""
    if isinstance(model, SwitchedAffine):
        return model
    return switched(model) if model.is_switched else model


def _of_layers(model: LRNN, machine: MooreMachine, goal: Specification, effort: WorkBudget) -> Certificate:
    """Return the certificate of a short enumeration if its states close, else of joint sets, or of a long one.

    While nothing rounds, the states of a long enumeration may close, too, so it comes before joint sets.
    """
    numbers = max(_STEP, sum(tensor.numel() for tensor in model.state_dict().values()))

    def allows(steps: int) -> bool:
        return steps <= MOST_READ and effort.allows(max(0, steps - _STEPS) * numbers)

    enumerated = _enumerated(model, machine, goal, lambda steps: steps <= _STEPS, effort.deadline)
    is_long = enumerated.horizon is not None and enumerated.scans != ROUNDS
    if is_long:
        enumerated = _enumerated(model, machine, goal, allows, effort.deadline)
    if enumerated.horizon is None:
        return enumerated
    try:
        with limited(effort.deadline):
            bounded = best_partition(model, goal, WorkBudget(effort.budget, effort.deadline))
    except (UnsupportedFormat, OutOfTime):
        bounded = None
    if bounded is not None and (bounded.is_whole or len(bounded.margins) > enumerated.horizon):
        return _by_joint_sets(enumerated, bounded)
    return enumerated if is_long else _enumerated(model, machine, goal, allows, effort.deadline)


def _enumerated(
    model: LRNN, machine: MooreMachine, goal: Specification, allows: Callable[[int], bool], deadline: Deadline
) -> Certificate:
    """Return the certificate by enumeration of joint states: of all lengths if they close without an error."""
    enumeration = explore(model, goal, allows, deadline=deadline)
    return Certificate(
        horizon=None if enumeration.is_closed and not enumeration.is_wrong else enumeration.length,
        margins=np.zeros(0),
        method="enumeration",
        dtype=_name(model),
        scans=enumeration.scans,
        slack=0.0,
        sha256=digest(model.state_dict()),
        machine=minimise(machine),
        ignore=goal.ignored,
        tested_layers=user_layers(model),
    )


def _by_joint_sets(other: Certificate, bounded: Bounded) -> Certificate:
    return replace(
        other,
        horizon=None if bounded.is_whole else len(bounded.margins),
        margins=np.array(bounded.margins) * _CLAIMED,
        method="joint sets",
        scans=SCANS,
        partition=bounded.partition,
    )


def _name(model: LRNN | SwitchedAffine) -> str:
    return str(model.dtype).removeprefix("torch.")


_CLOSE = (0.5, 0.25, 0.1)  # largest differences of states within a node, relative to the first state's largest number
_MOST = 1 << 12  # nodes
_LONGEST = 16  # last letters
_PER_NODE = 1e5  # multiplications that a node costs to find
_OPERATIONS = 4  # of a check, that take as long as one multiplication of the budget


class Bounded(NamedTuple):
    """A partition, margins at the lengths 1, 2, …, and whether no output of longer words counts."""

    partition: np.ndarray
    margins: list[float]
    is_whole: bool


def best_partition(model: LRNN, goal: Specification, effort: WorkBudget) -> Bounded | None:
    """Return the bounds of the partition that certifies the most, None if the budget or the time allows none.

    All degrees of closeness are tried, then the best one with more and more letters, as long as they help. Raises
    `UnsupportedFormat` for a model whose rounding is not bounded.
    """
    check_bounded(model)
    chosen: Bounded | None = None
    refusal: UnsupportedFormat | None = None
    # Under token shift a gate reads the letter before, so that a node has to know at least one letter.
    close, memory = _CLOSE, int(model.config.token_shift)
    while memory <= _LONGEST:
        parts: dict[bytes, tuple[float, np.ndarray]] = {}  # closeness may make no difference
        for each in close:
            partition = _partition(model, goal, each, memory, effort)
            if partition is not None:
                parts.setdefault(partition.tobytes(), (each, partition))
        tried = list[tuple[Bounded, float]]()
        for each, partition in parts.values():
            try:
                tried.append((_bounded(model, goal, partition, effort), each))
            except UnsupportedFormat as error:  # a finer partition may be too large
                refusal = error
        if not tried:
            if chosen is None and refusal is not None:
                raise refusal
            break
        longest, at = max(tried, key=lambda pair: (pair[0].is_whole, len(pair[0].margins)))
        # One more letter that does not help ends the search.
        if chosen is not None and len(longest.margins) <= len(chosen.margins):
            break
        chosen, close, memory = longest, (at,), memory + 1
        if chosen.is_whole:
            break
    return chosen


def _bounded(model: LRNN, goal: Specification, partition: np.ndarray, effort: WorkBudget) -> Bounded:
    """Return lower bounds of the margins, one per length, for a partition of the machine states, within `effort`.

    The last field of the result tells whether words of every later length count no more.
    """
    sets = JointSets(model, goal, partition)
    margins: list[float] = []
    walk = sets.margins()
    work = sets.work / _OPERATIONS
    while len(margins) < MOST_LENGTHS and effort.allows(work):
        effort.spend(work)
        margin = next(walk, None)
        if margin is None:
            return Bounded(partition, margins, True)
        if not margin > 0:
            break
        margins.append(margin)
    return Bounded(partition, margins, False)


def _partition(model: LRNN, goal: Specification, close: float, memory: int, effort: WorkBudget) -> np.ndarray | None:
    """Return a partition, int64 (|Σ|, n), None for too many nodes or if the budget or the time is used up."""
    system, n_letters = ModelSystem(model, deadline=effort.deadline), len(goal.delta)
    rows = system.start()
    first: list[np.ndarray] = [_numbers(system, rows)[0]]  # the first state found of each node
    keys: list[tuple[int, tuple[int, ...]]] = [(goal.start, ())]  # the machine's state and the last letters
    nodes, columns = {keys[0]: [0]}, [np.full(n_letters, -1)]
    frontier = [0]
    while frontier:
        live = goal.live[:, [keys[node][0] for node in frontier]].T
        if not effort.allows(_PER_NODE * live.sum()):
            return None
        effort.spend(_PER_NODE * live.sum())
        try:
            _, after = system.fan(rows, live)
        except OutOfTime:
            return None
        states, fresh = _numbers(system, after), list[int]()
        before = frontier
        frontier = []
        for i, (place, letter) in enumerate(zip(*(axis.tolist() for axis in np.nonzero(live)), strict=True)):
            state, word = keys[before[place]]
            key = int(goal.delta[letter, state]), ((*word, letter)[-memory:] if memory else ())
            # A word joins the first node of its key whose first state is close to its own.
            alike = nodes.setdefault(key, [])
            node = next((node for node in alike if _are_close(first[node], states[i], close)), None)
            if node is None:
                node = len(keys)
                if node == _MOST:
                    return None
                alike.append(node)
                keys.append(key)
                first.append(states[i])
                columns.append(np.full(n_letters, -1))
                frontier.append(node)
                fresh.append(i)
            columns[before[place]][letter] = node
        rows = after[fresh]
    return np.stack(columns, axis=1)


def _numbers(system: ModelSystem, rows: np.ndarray) -> np.ndarray:
    """Return the states of all layers in one row each: float64 (N, W)."""
    parts = [layer.x.detach().cpu().double().flatten(1).numpy() for layer in system.state_of(rows)]
    return np.concatenate(parts, axis=1)


def _are_close(first: np.ndarray, state: np.ndarray, close: float) -> bool:
    return bool(np.abs(first - state).max() <= close * np.abs(first).max())


__all__ = ["SearchCutShort", "WORK", "certify"]
