"""Specifications: a machine in the numbers of a model's letters and outputs, and which of its outputs count.

Every verifier, repair and report uses this one object for the expected outputs.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fsa2lrnn.automata.counting import UNCOUNTED, Ignore, Positions, ignored_outputs
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.checker.claims import CountedAutomaton
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.symbols import align
from fsa2lrnn.verdicts import Counterexample, Scope
from fsa2lrnn.verification.extraction import NOT_A_NUMBER

_NAN = "NaN"  # the output that a counterexample shows for NaN logits


class HasSymbols(Protocol):
    """The protocol of models and tables, whose letters and outputs are numbered."""

    @property
    def alphabet(self) -> tuple[Hashable, ...]: ...

    @property
    def outputs(self) -> tuple[Hashable, ...]: ...


@dataclass(frozen=True, eq=False)
class Specification(Positions):
    """The minimal machine in the model's numbers; `counts` marks the states whose outputs count.

    Args:
        wanted: int64 (n,), the number of each state's output in `outputs`, whether it counts or not.
        alphabet: the model's letters.
        outputs: the model's outputs, then those of the machine that the model lacks.
        known: the number of outputs that the model has.
        empty_word: whether the output on the empty word counts.
    """

    wanted: np.ndarray
    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    known: int
    empty_word: bool

    @property
    def answerable(self) -> np.ndarray:
        """The states whose output counts and is one that the model has: bool (n,)."""
        return self.counts & (self.wanted < self.known)

    @property
    def target(self) -> CountedAutomaton:
        """The specification as the checker's data type."""
        return CountedAutomaton(self.delta, self.start, self.wanted, self.counts, self.known)

    @property
    def labels(self) -> np.ndarray:
        """The expected output of each state, `UNCOUNTED` where it does not count: int64 (n,)."""
        return np.where(self.counts, self.wanted, UNCOUNTED)

    @property
    def ignored(self) -> tuple[Hashable, ...]:
        """The outputs that do not count."""
        return tuple(dict.fromkeys(self.outputs[j] for j in self.wanted[~self.counts].tolist()))

    @property
    def scope(self) -> Scope:
        """The scope of a verdict on this specification."""
        return Scope(len(self.counts), int((~self.counts).sum()), self.ignored, self.empty_word)

    def is_wrong(self, outputs: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Return where output numbers, after words that lead to these states, count and are not the expected ones."""
        return self.counts[states] & (outputs != self.wanted[states])

    def failing_word(
        self, tokens: np.ndarray, outputs: np.ndarray, margin: float | None = None, scans: tuple[str, ...] = ()
    ) -> Counterexample:
        """Return the counterexample of a word (T,) and the model's output numbers along it, (T,) or (1,) if T = 0."""
        states = self.path(tokens[None])[0] if len(tokens) else np.array([self.start])
        nan = _NAN if _NAN not in self.outputs else f"{_NAN} (not a number)"
        counts = self.counts[states].tolist()
        return Counterexample(
            tuple(self.alphabet[a] for a in tokens.tolist()),
            tuple(self.outputs[j] for j in self.wanted[states].tolist()),
            tuple(nan if j == NOT_A_NUMBER else self.outputs[j] for j in outputs.tolist()),
            None if all(counts) else tuple(counts),
            margin,
            scans,
        )


def specification_of(
    model: HasSymbols, machine: MooreMachine, ignore: Ignore = (), empty_word: bool = False
) -> Specification:
    """Return the specification that `model` computes `machine`, minimised, wherever its outputs count.

    Args:
        ignore: the outputs of the machine that do not count (`fsa2lrnn.automata.counting`); by default all count, and
            one that the model lacks is wrong.
        empty_word: whether the output on the empty word counts.

    Raises:
        InvalidMachine: if model and machine have different alphabets.
        UnsupportedFormat: if no output counts, or `ignore` is invalid.

    >>> from fsa2lrnn import compile_machine
    >>> parity = MooreMachine([[0, 1], [1, 0]], [False, True])
    >>> goal = specification_of(compile_machine(parity), parity)
    >>> goal.wanted.tolist(), goal.path(np.array([[1, 0, 1]])).tolist(), str(goal.scope)
    ([0, 1], [[1, 1, 0]], 'every output counts but that of the empty word')
    """
    minimal = minimise(machine)
    ignored = dict.fromkeys(ignored_outputs(machine.outputs, model.outputs, ignore))
    lacked = ignored_outputs(minimal.outputs, model.outputs, "lacked")
    counts = np.array([output not in ignored for output in minimal.outputs])
    if not counts.any():
        raise UnsupportedFormat(
            f"the model puts out {model.outputs}, none of the machine's {tuple(dict.fromkeys(minimal.outputs))}: "
            "give both the same outputs, of the same types"
            if ignore == "lacked"
            else f"ignore: all outputs of the machine are ignored, {tuple(ignored)}, so there is nothing to verify"
        )
    outputs = (*model.outputs, *lacked)
    number = {output: j for j, output in enumerate(outputs)}
    wanted = np.array([number[output] for output in minimal.outputs], np.int64)
    delta = minimal.delta[align(model.alphabet, minimal.alphabet)]
    return Specification(delta, counts, minimal.start, wanted, model.alphabet, outputs, len(model.outputs), empty_word)
