"""What a model should put out along a word: a machine in the numbers of the model's letters and outputs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extraction import paths
from fsa2lrnn.symbols import align

DOES_NOT_COUNT = -1


class HasSymbols(Protocol):
    """A model, or its tables: letters and outputs by number."""

    @property
    def alphabet(self) -> tuple[Hashable, ...]: ...

    @property
    def outputs(self) -> tuple[Hashable, ...]: ...


@dataclass(frozen=True, eq=False)
class Target:
    """The minimal machine, in the model's numbers.

    Args:
        delta: int64 (|Σ|, n), letters in the model's order.
        wanted: int64 (n,), the number of each state's output, `DOES_NOT_COUNT` where the model has no such output.
        start: the initial state.
        ignored: the outputs of the machine that the model does not have.
    """

    delta: np.ndarray
    wanted: np.ndarray
    start: int
    ignored: tuple[Hashable, ...]

    @cached_property
    def hopeful(self) -> np.ndarray:
        """The states from which some word, if only the empty one, leads to an output that counts: bool (n,)."""
        hopeful = self.wanted != DOES_NOT_COUNT
        while not np.array_equal(more := hopeful | hopeful[self.delta].any(0), hopeful):
            hopeful = more
        return hopeful

    def states(self, tokens: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """The states after every letter of words, from states `before` (B,) or the start: int64 (B, T) -> (B, T)."""
        return paths(self.delta, np.full(len(tokens), self.start) if before is None else before, tokens)


def target(model: HasSymbols, machine: MooreMachine) -> Target:
    """`machine`, minimised, as what `model` is to compute.

    A position whose output the model has no logit for does not count: a model of ModArith that was trained on digits
    alone is not asked what an operator or a malformed expression gives.

    Raises:
        InvalidMachine: if model and machine have unlike alphabets.
        UnsupportedFormat: if they have no output in common.

    >>> from fsa2lrnn import compile_machine
    >>> parity = MooreMachine([[0, 1], [1, 0]], [False, True])
    >>> goal = target(compile_machine(parity), parity)
    >>> goal.wanted.tolist(), goal.states(np.array([[1, 0, 1]])).tolist()
    ([0, 1], [[1, 1, 0]])
    """
    minimal = minimise(machine)
    number = {output: j for j, output in enumerate(model.outputs)}
    wanted = np.array([number.get(output, DOES_NOT_COUNT) for output in minimal.outputs], np.int64)
    if (wanted == DOES_NOT_COUNT).all():
        raise UnsupportedFormat(
            f"the model puts out {model.outputs}, none of the machine's {tuple(dict.fromkeys(minimal.outputs))}"
        )
    ignored = tuple(dict.fromkeys(output for output in minimal.outputs if output not in number))
    return Target(minimal.delta[align(model.alphabet, minimal.alphabet)], wanted, minimal.start, ignored)


def joint(rows: np.ndarray, states: np.ndarray) -> np.ndarray:
    """States of a model, as bytes, each with a state of the machine: uint8 (N, D), (N,) -> (N, D + 8)."""
    tags = np.ascontiguousarray(states, np.int64).view(np.uint8).reshape(-1, 8)
    return np.concatenate([rows, tags], axis=1)
