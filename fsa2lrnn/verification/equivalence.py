"""Proof or refutation that a model equals a machine on every word of every length (docs/theory.md §5).

A compiled model reaches finitely many states. `prove_equivalent` explores the joint graph of (model state, machine
state) from the start, letter by letter, and compares model states by the bits of their floats, until no letter leads to
a new pair. It returns what it explored, a shortest counterexample, or the budget that ran out; it never infers equality
from a sample.

All runs give the right outputs, although read-outs round, if steps are exact and margins exceed rounding (T28). The
step of a dyadic repair multiplies and adds dyadic numbers that fit into the mantissa, so that it is exact in any order
of summation; LayerNorm and the read-out's products round, by no more than their error bound.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Protocol

import numpy as np
from safetensors.numpy import save

from fsa2lrnn import symbols
from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.formats import json_file
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.checker.margins import ScaledReadout
from fsa2lrnn.checker.pairs import steps_exactly
from fsa2lrnn.checker.replay import ShortWords, least_margin
from fsa2lrnn.checker.rounding import Ball
from fsa2lrnn.compile.recurrence import Recurrence
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import OutOfTime, UnsupportedFormat, check_type
from fsa2lrnn.files import write_atomically
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.verdicts import Coverage, Proved, Refuted, Undecided
from fsa2lrnn.verification.certificate import checked, slack_of
from fsa2lrnn.verification.coverage import STEPPING, model_digest, of_exact, of_exact_steps, of_integers, of_letters
from fsa2lrnn.verification.extraction import ModelSystem
from fsa2lrnn.verification.extraction.breadth_first import TransitionSystem
from fsa2lrnn.verification.modelled import check_modelled
from fsa2lrnn.verification.specification import Specification, specification_of
from fsa2lrnn.verification.walk import JointWalk, RoundingWatch

FORMAT, VERSION = "fsa2lrnn-equivalence-certificate", 1


@dataclass(frozen=True, eq=False)
class PairsTable:
    """All reachable pairs of model state and machine state, first the pair of the empty word.

    Args:
        rows: uint8 (N, D), the bytes of the model states.
        states: int64 (N,), the machine states.
        successors: int64 (N, |Σ|), −1 where no position that follows counts.
        start_is_read: whether the output of the first pair is compared.
        letters: the number of letters read.
    """

    rows: np.ndarray
    states: np.ndarray
    successors: np.ndarray
    start_is_read: bool
    letters: int

    @property
    def read(self) -> slice:
        """The pairs whose outputs are compared."""
        return slice(0 if self.start_is_read else 1, None)


def write_certificate(
    path: Path, model: LRNN, machine: MooreMachine, goal: Specification, covers: Coverage, table: PairsTable
) -> None:
    """Write a proof by enumeration into one safetensors file, atomically.

    The file names the scans of `covers` that compute x_k from x_{k-1}, since the checker computes no others. The digest
    is that of the model's tables if it has tables, else of the model.

    Raises `UnsupportedFormat` for symbols that JSON cannot represent, and `OSError`.
    """
    is_read = np.ones(len(table.states), bool)
    is_read[0] = table.start_is_read
    outputs = np.where(is_read & goal.counts[table.states], goal.wanted[table.states], -1)
    value = {
        "format": FORMAT,
        "version": VERSION,
        "dtype": covers.arithmetic,
        "sha256": switched(model).sha256 if model.is_switched else model_digest(model),
        "scans": [scan for scan in covers.scans if scan in STEPPING],
        "environment": list(covers.environment),
        "empty_word": goal.empty_word,
        "machine": {name: part for name, part in json_file.to_value(machine).items() if name != "labels"},
        "ignore": [symbols.to_json(output) for output in goal.ignored],
    }
    arrays = {
        "states": np.ascontiguousarray(table.rows),
        "machine_states": table.states.astype(np.int64),
        "successors": table.successors.astype(np.int64),
        "outputs": outputs.astype(np.int64),
    }
    write_atomically(path, save(arrays, {"certificate": json.dumps(value)}))


def is_right_in_every_order(model: LRNN, goal: Specification, table: PairsTable) -> bool:
    """Decide whether steps from all states are exact and the compared outputs right, in any order of summation.

    The tables must be the same in every evaluation of the gates. The result is False if any of this cannot be shown.
    """
    try:
        slack = slack_of(model)
        if np.any(slack.A) or np.any(slack.v):
            return False
        tables = checked(switched(model))
    except UnsupportedFormat:
        return False
    weights, kind = tables.weights, tables.format()
    # T28 needs exact steps from all reachable states, the start among them, and margins above the rounding of the
    # read-out at each state whose output is compared.
    x = ModelSystem(model).state_of(table.rows)[0].x.cpu().double().numpy()  # (N, H, b)
    if not steps_exactly(weights["A"], weights["v"], x, kind):
        return False
    x, states = x[table.read], table.states[table.read]
    words = ShortWords(states, np.zeros(len(states), np.int64), Ball.exact(x))
    with np.errstate(all="ignore"):
        return least_margin(words, ScaledReadout(weights, kind), goal.target) > 0


BUDGET = 1_000_000  # pairs of states


class ProvableSystem(TransitionSystem[np.ndarray, np.ndarray], Protocol):
    """A transition system whose states are rows of bytes, uint8 (N, D), and whose outputs are numbered."""

    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def initial_output(self) -> int: ...


def prove_equivalent(
    model: LRNN | Recurrence,
    machine: MachineSource,
    budget: int = BUDGET,
    empty_word: bool = True,
    ignore: Ignore = (),
    seconds: float | Deadline | None = None,
    certificate: str | Path | None = None,
) -> Proved | Refuted | Undecided:
    """Decide whether `model` gives the machine's output after every word, by enumerating their joint states.

    Args:
        model: a module in the dtype of the proof (float64, float32, bfloat16, float16), or exact integer tables.
        machine: the machine, over the same letters in any order, or its source.
        budget: the most joint states to explore.
        empty_word: whether the output on the empty word counts too; trained models have rarely learned it.
        ignore: which outputs of the machine do not count: none; "lacked", those that the model does not have; or a
            collection of them. The verdict's scope says what was ignored.
        seconds: the limit of processor time; by default no limit.
        certificate: a file (.safetensors) for the proof, if it succeeds: all pairs of states, their successors and
            outputs. `python -m fsa2lrnn.checker` replays it for tables whose steps do not round.

    Returns:
        `Proved` for the runs that it names (`Proved.covers`), `Refuted` with a shortest counterexample, or `Undecided`.
        If rounding could change the result, the proof covers words read letter by letter, one at a time; unless steps
        do not round and all margins exceed the rounding of the read-out: then it covers every shape of call, by scans
        that compute x_k from x_{k−1}.

    Raises:
        InvalidMachine: if model and machine have different alphabets.
        UnsupportedFormat: if no output counts, if `ignore` is invalid, for a model whose modules, hooks or arithmetic
            are not those modelled (`verification.modelled`), or for a certificate of exact tables or of symbols that
            JSON cannot represent.
        OSError: if the certificate cannot be written.

    >>> from fsa2lrnn import compile_machine
    >>> parity = MooreMachine([[0, 1], [1, 0]], [False, True])
    >>> verdict = prove_equivalent(compile_machine(parity), parity)
    >>> type(verdict).__name__, verdict.transitions, verdict.scans
    ('Proved', 4, ('sequential', 'pscan', 'chunked', 'fused'))
    """
    machine, deadline = as_machine(machine), Deadline.of(seconds)
    check_type(budget, Integral, "budget", "the most joint states, a whole number")
    if isinstance(model, Recurrence):
        if certificate is not None:
            raise UnsupportedFormat("certificates are of modules: compile the tables, and prove the model equivalent")
        system = _RecurrenceSystem(model)
        goal = specification_of(system, machine, ignore, empty_word)
        result = explore_pairs(system, goal, budget, deadline)
        return _proved(model, goal, of_integers(model), result) if isinstance(result, PairsTable) else result
    check_modelled(model)
    goal, watched = specification_of(model, machine, ignore, empty_word), _WatchedModel(model, deadline=deadline)
    result = explore_pairs(watched, goal, budget, deadline)
    if isinstance(result, Undecided) or (watched.is_exact and isinstance(result, Refuted)):
        return result
    if isinstance(result, PairsTable) and watched.is_exact:
        covers = of_exact(model)
    elif isinstance(result, PairsTable) and is_right_in_every_order(model, goal, result):
        covers = of_exact_steps(model)
    else:
        dtype = str(model.dtype).removeprefix("torch.")
        # Batches may round differently from single words, so the walk is repeated word by word.
        result = explore_pairs(ModelSystem(model, at_once=1, deadline=deadline), goal, budget, deadline)
        if not isinstance(result, PairsTable):
            return result
        covers = of_letters(dtype)
    if certificate is not None:
        write_certificate(Path(certificate), model, minimise(machine), goal, covers, result)
    return _proved(model, goal, covers, result)


def explore_pairs(
    system: ProvableSystem, goal: Specification, budget: int, deadline: Deadline
) -> PairsTable | Refuted | Undecided:
    """Explore all pairs of states of a system and a specification; the table is complete if every output is right."""
    walk = JointWalk(system, goal)
    if goal.empty_word:
        outputs = np.array([system.initial_output()])
        if goal.is_wrong(outputs, walk.tags).any():
            return _refuted(np.empty(0, np.int64), outputs, goal)
    # Pairs are numbered in the order of discovery: `first` is the number of the first pair of the current level.
    rows, states, start_is_read = [walk.states], [walk.tags], goal.empty_word
    parents, letters, reached, first = [], [], [], 0
    while len(walk):
        try:
            deadline.check("exploring joint states")
            ahead, to = walk.look()
        except OutOfTime:
            return Undecided(walk.length, goal.scope, seconds=deadline.seconds)
        # Words are explored by length, so the first wrong output gives a shortest counterexample.
        wrong = np.flatnonzero(goal.is_wrong(ahead.read, to))
        if len(wrong):
            word = walk.word(ahead, int(wrong[0]))
            return _refuted(word, _outputs_along(system, word), goal)
        parents.append(first + ahead.parents)
        letters.append(ahead.letters)
        first += len(walk)
        reached.append(walk.keep_new(ahead, to))
        start_is_read |= bool((reached[-1] == 0).any())
        rows.append(walk.states)
        states.append(walk.tags)
        if walk.seen > budget:
            return Undecided(walk.length, goal.scope, budget)
    # No pair is new: the reachable joint state set is complete.
    successors = np.full((walk.seen, len(goal.alphabet)), -1)
    successors[np.concatenate(parents), np.concatenate(letters)] = np.concatenate(reached)
    return PairsTable(np.concatenate(rows), np.concatenate(states), successors, start_is_read, walk.letters)


def _proved(model: LRNN | Recurrence, goal: Specification, covers: Coverage, table: PairsTable) -> Proved:
    return Proved(len(table.states), table.letters, covers, goal.scope, model_digest(model))


class _WatchedModel(ModelSystem):
    """A model as a transition system that records whether rounding could change any of its steps or outputs."""

    def __init__(self, model: LRNN, deadline: Deadline) -> None:
        super().__init__(model, deadline=deadline)
        self._watch = RoundingWatch(model)

    def fan(self, states: np.ndarray, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with self._watch.looking():
            return super().fan(states, live)

    def initial_output(self) -> int:
        with self._watch.looking():
            return super().initial_output()

    @property
    def is_exact(self) -> bool:
        return self._watch.is_exact


class _RecurrenceSystem:
    def __init__(self, recurrence: Recurrence) -> None:
        self._recurrence = recurrence
        self.alphabet, self.outputs = recurrence.alphabet, recurrence.outputs
        self._start = recurrence.tables.initial()[None]

    def initial_output(self) -> int:
        return int(self._recurrence.readout(self._start)[0])

    def start(self) -> np.ndarray:
        return self._start.view(np.uint8)

    def fan(self, states: np.ndarray, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        after = self._recurrence.tables.step(np.ascontiguousarray(states).view(self._start.dtype))[live]
        return self._recurrence.readout(after), np.ascontiguousarray(after).view(np.uint8)

    def pick(self, states: np.ndarray, places: np.ndarray) -> np.ndarray:
        return states[places]

    def rows(self, states: np.ndarray) -> np.ndarray:
        return states


def _outputs_along(system: ProvableSystem, word: np.ndarray) -> np.ndarray:
    states, outputs = system.start(), np.empty(len(word), np.int64)
    for k, a in enumerate(word.tolist()):
        letter = np.arange(len(system.alphabet))[None] == a
        outputs[k : k + 1], states = system.fan(states, letter)
    return outputs


def _refuted(word: np.ndarray, outputs: np.ndarray, goal: Specification) -> Refuted:
    return Refuted(goal.failing_word(word, outputs), len(word) - 1, goal.scope)
