"""Is this model equal to this machine on every word of every length? (docs/theory.md §5)

The states that a compiled model reaches are finitely many vectors. `prove_equivalent` explores the joint graph of
(model state, machine state) from the start, letter by letter, comparing model states by the bits of the floats that
were computed, until no letter leads to a new pair. It answers with what it explored, with a shortest counterexample, or
with the budget that ran out: never "true" on a sample.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extraction import NOT_A_NUMBER, Interner, ModelSystem
from fsa2lrnn.judge.exactness import RoundingWatch
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.scans import METHODS
from fsa2lrnn.recurrence import Recurrence
from fsa2lrnn.symbols import align

BUDGET = 1_000_000  # pairs of states

_NO_OUTPUT = -2  # the number of a machine output that the model cannot give


class Verdict:
    """A verdict is looked at with isinstance or match: as a truth value it would be read wrongly sooner or later."""

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is no truth value: ask isinstance(verdict, Proved)")


@dataclass(frozen=True)
class Proved(Verdict):
    """Equal on every word of every length.

    Args:
        pairs: pairs (model state, machine state) reached; the graph is closed.
        transitions: pairs × letters, each of them computed and compared.
        machine_states: states of the minimal machine.
        arithmetic: the dtype computed in, "int" for a `Recurrence`.
        scans: the scans that the proof covers. The exploration is sequential; where nothing that it reached rounds, and
            every transition is one-hot or a lane's (`judge.exactness`), every schedule computes the same numbers.
    """

    pairs: int
    transitions: int
    machine_states: int
    arithmetic: str
    scans: tuple[str, ...]


@dataclass(frozen=True)
class Refuted(Verdict):
    """Different, with a shortest word that shows it.

    Args:
        word: the letters; no shorter word tells model and machine apart.
        model_trace, machine_trace: outputs after each letter, or that of the empty word for the empty word. The model's
            is "NaN" where its logits are not numbers.
    """

    word: tuple[Hashable, ...]
    model_trace: tuple[Hashable, ...]
    machine_trace: tuple[Hashable, ...]


@dataclass(frozen=True)
class Undecided(Verdict):
    """The budget ran out before the graph closed.

    Args:
        budget: pairs allowed.
        checked_length: model and machine agree on every word of at most this length.
    """

    budget: int
    checked_length: int


class _System(Protocol):
    """What is explored: rows of bytes for states, numbers for outputs."""

    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def initial(self) -> tuple[np.ndarray, int]: ...

    def step(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...


def prove_equivalent(
    model: LRNN | Recurrence, machine: MooreMachine, budget: int = BUDGET, empty_word: bool = True
) -> Proved | Refuted | Undecided:
    """Whether `model` gives the machine's output after every word, decided by exhaustion of their joint states.

    Args:
        model: a module in the dtype to be proved (float64, float32, bfloat16, float16), or exact integer tables.
        machine: over the same letters, in any order.
        budget: the number of joint states after which to give up.
        empty_word: whether the output on the empty word counts too; a trained model has seldom learned it.

    Returns:
        `Proved`, `Refuted` with a shortest word, or `Undecided`.

    Raises:
        InvalidMachine: if model and machine have unlike alphabets.

    >>> from fsa2lrnn import compile_machine
    >>> parity = MooreMachine([[0, 1], [1, 0]], [False, True])
    >>> verdict = prove_equivalent(compile_machine(parity), parity)
    >>> type(verdict).__name__, verdict.transitions, verdict.scans
    ('Proved', 4, ('sequential', 'pscan', 'chunked', 'fused'))
    """
    minimal = minimise(machine)
    system = _RecurrenceSystem(model) if isinstance(model, Recurrence) else _WatchedModel(model)
    delta = minimal.delta[align(system.alphabet, minimal.alphabet)]
    number = {output: j for j, output in enumerate(system.outputs)}
    wanted = np.array([number.get(output, _NO_OUTPUT) for output in minimal.outputs])
    search = _Search(system, delta, wanted, minimal.start)
    if empty_word and search.start_output != wanted[minimal.start]:
        return _refuted([], [search.start_output], system, minimal)
    while search.frontier.size:
        if (word := search.expand()) is not None:
            return _refuted(word, _outputs_along(system, word), system, minimal)
        if search.pairs > budget:
            return Undecided(budget, search.depth)
    arithmetic = "int" if isinstance(model, Recurrence) else str(model.dtype).removeprefix("torch.")
    return Proved(search.pairs, search.pairs * len(system.alphabet), minimal.n_states, arithmetic, system.scans)


class _Search:
    """Breadth-first search over pairs, a level at a time; each pair remembers the pair and letter it was reached by."""

    def __init__(self, system: _System, delta: np.ndarray, wanted: np.ndarray, start: int) -> None:
        self._system, self._delta, self._wanted = system, delta, wanted
        self._rows, self.start_output = system.initial()
        self._states = np.array([start])
        self._seen = Interner()
        self.frontier = self._number(self._rows, self._states)
        self._parents, self._letters = [np.array([-1])], [np.array([-1])]
        self.depth = 0

    @property
    def pairs(self) -> int:
        """Pairs seen so far."""
        return len(self._seen)

    def expand(self) -> list[int] | None:
        """One more letter from every pair of the frontier: the first wrong word, as letter numbers, or None."""
        n_letters = len(self._delta)
        rows, outputs = self._system.step(self._rows)  # (N, |Σ|, D), (N, |Σ|)
        states = self._delta[:, self._states].T  # (N, |Σ|)
        wrong = np.argwhere(outputs != self._wanted[states])
        if len(wrong):
            i, a = (int(k) for k in wrong[0])
            return [*self._word_to(int(self.frontier[i])), a]
        flat, flat_states = rows.reshape(-1, rows.shape[-1]), states.reshape(-1)
        before = self.pairs
        numbers = self._number(flat, flat_states)
        found, first = np.unique(numbers, return_index=True)
        new = first[found >= before]
        self._parents.append(self.frontier[new // n_letters])
        self._letters.append(new % n_letters)
        self.frontier, self._rows, self._states = numbers[new], flat[new], flat_states[new]
        self.depth += 1
        return None

    def _number(self, rows: np.ndarray, states: np.ndarray) -> np.ndarray:
        tags = np.ascontiguousarray(states, np.int64).view(np.uint8).reshape(-1, 8)
        return self._seen.number(np.concatenate([rows, tags], axis=1))

    def _word_to(self, pair: int) -> list[int]:
        parents, letters = np.concatenate(self._parents), np.concatenate(self._letters)
        word: list[int] = []
        while parents[pair] >= 0:
            word.append(int(letters[pair]))
            pair = int(parents[pair])
        return word[::-1]


class _WatchedModel(ModelSystem):
    """A model as a transition system that notes whether any of its steps rounds."""

    def __init__(self, model: LRNN) -> None:
        super().__init__(model)
        self._watch = RoundingWatch(model)
        self._methods = model.methods

    def step(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with self._watch.looking():
            return super().step(rows)

    @property
    def scans(self) -> tuple[str, ...]:
        """The scans that compute what the steps taken so far have computed."""
        return self._methods if self._watch.is_exact else ("sequential",)


class _RecurrenceSystem:
    """Exact tables as a transition system on the bytes of their integer states."""

    scans = tuple(METHODS)  # integers do not round

    def __init__(self, recurrence: Recurrence) -> None:
        self._recurrence = recurrence
        self.alphabet, self.outputs = recurrence.alphabet, recurrence.outputs
        self._start = recurrence.tables.initial()[None]

    def initial(self) -> tuple[np.ndarray, int]:
        return self._start.view(np.uint8), int(self._recurrence.readout(self._start)[0])

    def step(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        after = self._recurrence.tables.step(np.ascontiguousarray(rows).view(self._start.dtype))
        return np.ascontiguousarray(after).view(np.uint8), self._recurrence.readout(after)


def _outputs_along(system: _System, word: list[int]) -> list[int]:
    rows, _ = system.initial()
    outputs: list[int] = []
    for a in word:
        after, numbers = system.step(rows)
        rows = after[:, a]
        outputs.append(int(numbers[0, a]))
    return outputs


def _refuted(word: list[int], outputs: list[int], system: _System, machine: MooreMachine) -> Refuted:
    letters = tuple(system.alphabet[a] for a in word)
    expected = machine.transduce(letters) if word else [machine.outputs[machine.start]]
    given = ["NaN" if j == NOT_A_NUMBER else system.outputs[j] for j in outputs]
    return Refuted(letters, tuple(given), tuple(expected))
