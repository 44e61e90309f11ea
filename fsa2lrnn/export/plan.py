"""Plan the heads and units of external layers, independently of the external code.

A head is a matrix S, initially 0, that a symbol a changes by the gated delta rule,

    S ← α_a S,    S ← S + β_a k_a (v_a − Sᵀ k_a)ᵀ.

Its output is only the direction of Sᵀq, because the layers normalise it. Its keys are unit vectors with entries 0, ½
and 1, its values integer multiples of 32, α is 0 or 1 and β 0, 1 or 2; the layers reach all of these without rounding
(docs/constructions.md). So S has finitely many values, dyadic matrices, which are enumerated here.

A stage is one layer: parallel heads that read symbols, and units that each fire on one combination of a letter and of
marks, the directions of the heads' outputs. The units write the symbols of the next stage, or the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, NotExpressible

MAX_STATES = 1_500  # the most states of a head, and joint states of all heads: S6 has 720
UNIT = 64.0  # values are multiples of its half
_SAME = 1e-9  # in units of `UNIT`, the norm up to which an output counts as zero
# Directions and their distances are rounded to this number of decimals, so that a machine has the same weights on every
# CPU: the last bits of sums of products depend on the CPU, and must not turn a 0 into a weight.
DECIMALS = 12


class MachinePlan:
    """The base class of plans that implement a machine."""

    machine: MooreMachine

    @property
    def outputs(self) -> tuple[Hashable, ...]:
        """The distinct outputs of the machine, in the order of its states."""
        return tuple(dict.fromkeys(self.machine.outputs))


@dataclass(frozen=True, eq=False)
class StageHead:
    """The parameters of one head for the n symbols of its stage, float64.

    Args:
        keys: k_a, unit vectors or zero, shape (n, d_k).
        values: v_a, non-negative integers, shape (n, d_v).
        alphas, betas: α_a and β_a, shape (n,).
        query: q, the direction in which S is read, shape (d_k,).
        towards: a vector with a positive product with each nonzero mark, shape (d_v,).
        lags: for each entry of v, by how many letters it is delayed, shape (d_v,); None for no delay.
    """

    keys: np.ndarray
    values: np.ndarray
    alphas: np.ndarray
    betas: np.ndarray
    query: np.ndarray
    towards: np.ndarray
    lags: np.ndarray | None = None

    def step(self, S: np.ndarray, a: int) -> np.ndarray:
        """Return the matrix S after symbol number a, exactly: (d_k, d_v) -> (d_k, d_v)."""
        S = self.alphas[a] * S
        k = self.keys[a]
        return S + self.betas[a] * np.outer(k, self.values[a] - S.T @ k)

    def writes(self) -> np.ndarray:
        """Return which symbols replace the whole state, bool (n,): those with β = 1 and the key 1 of size d_k = 1."""
        return self._is_unit() & (self.betas == 1)

    def keeps(self) -> np.ndarray:
        """Return which symbols keep the state, bool (n,); raise `NotExpressible` if others only change a part of it."""
        identity = (self.alphas == 1) & (self.betas == 0)
        if not self._is_unit().any() or not (identity | self.writes() | (self.alphas == 0)).all():
            raise NotExpressible("this layer's heads keep all that they hold or forget it: give a plan of registers")
        return identity

    def _is_unit(self) -> np.ndarray:
        is_one = self.keys.shape[1] == 1
        return np.full(len(self.keys), is_one) & ((self.keys == 1).all(axis=1) | (self.betas == 0))

    def mark(self, S: np.ndarray) -> np.ndarray:
        """Return the mark of a state: the direction of Sᵀq, shape (d_v,), or 0 if Sᵀq is 0."""
        y = S.T @ (self.query / np.linalg.norm(self.query))
        norm = float(np.linalg.norm(y))
        return np.round(y / norm, DECIMALS) + 0.0 if norm > _SAME * UNIT else np.zeros_like(y)


@dataclass(frozen=True, eq=False)
class Orbit:
    """The m reachable states of a head over n symbols, and their marks.

    Args:
        head: the head.
        states: the matrices S, shape (d_k, d_v) each.
        table: the number of the next state for each symbol and state, int64 (n, m).
        marks: the marks of the states, shape (m, d_v), or only the distinct ones.
    """

    head: StageHead
    states: tuple[np.ndarray, ...]
    table: np.ndarray
    marks: np.ndarray

    @property
    def gap(self) -> float:
        """The least separation of two marks d and d': 1 − d·d' in general, towards·d if d' is zero."""
        products = self.marks @ self.marks.T
        apart = 1 - products[~np.eye(len(products), dtype=bool)]
        zero = ~self.marks.any(axis=1)
        ahead = (self.marks @ self.head.towards)[~zero] if zero.any() else np.ones(1)
        return round(float(min(apart.min(initial=1.0), ahead.min(initial=1.0))), DECIMALS)


def orbit(head: StageHead, limit: int = MAX_STATES) -> Orbit:
    """Enumerate the states that a head reaches from S = 0; raise `BudgetExceeded` beyond `limit` states."""
    start = np.zeros((head.keys.shape[1], head.values.shape[1]))
    numbers, states, rows = {start.tobytes(): 0}, [start], list[list[int]]()
    for S in states:
        row = list[int]()
        for a in range(len(head.keys)):
            # Entries are dyadic and computed exactly, so equal states have equal bytes once −0 is gone.
            reached = head.step(S, a) + 0.0  # no −0
            q = numbers.setdefault(reached.tobytes(), len(states))
            if q == len(states):
                states.append(reached)
                if len(states) > limit:
                    raise BudgetExceeded(f"a head reaches more than {limit:,} states: give a smaller machine")
            row.append(q)
        rows.append(row)
    marks = np.stack([head.mark(S) for S in states])
    return Orbit(head, tuple(states), np.array(rows).T, marks)


def letter_ago(n: int, lag: int) -> Orbit:
    """Return a head that holds which of n symbols was read `lag` letters ago: mark 1 + a for symbol a, 0 for none."""
    head = StageHead(np.ones((n, 1)), UNIT * np.eye(n), np.ones(n), np.ones(n), np.ones(1), np.ones(n), np.full(n, lag))
    states = (np.zeros((1, n)), *(UNIT * np.eye(n)[None, a] for a in range(n)))
    table = np.tile(np.arange(1, n + 1)[:, None], (1, n + 1))
    return Orbit(head, states, table, np.stack([head.mark(S) for S in states]))


@dataclass(frozen=True)
class Unit:
    """A unit that writes symbol `target` if the letter is `letter` and each orbit i has mark `marks[i]`.

    None means any letter or any mark. Orbits are numbered over the stages up to this one.
    """

    letter: int | None
    marks: tuple[int | None, ...]
    target: int


@dataclass(frozen=True, eq=False)
class Stage:
    """One layer of a plan: heads with their states, then units that write one of `n_symbols` symbols."""

    orbits: tuple[Orbit, ...]
    units: tuple[Unit, ...]
    n_symbols: int


@dataclass(frozen=True)
class Shape:
    """Sizes of released models, beyond what a plan needs.

    Args:
        head: the least size of keys and values.
        group: how many heads share their keys and queries, in models that know it.
        attention: after how many linear layers a layer of attention stands; 0 for one at the end alone.
        experts: the number of experts of each MLP, in models that have them; 0 for a plain MLP.
        output: the size of heads' outputs before their norm, relative to the one at which the norm's ε vanishes. A
            smaller one leaves marks inexact, and hides what rounds where a state returns to zero.
    """

    head: int = 1
    group: int = 1
    attention: int = 0
    experts: int = 0
    output: float = 1.0


SMALL = Shape()


@dataclass(frozen=True, eq=False)
class StagePlan(MachinePlan):
    """A plan that implements a machine by stages, each of which is one layer of heads and units.

    Args:
        machine: the minimal machine.
        stages: the stages; the symbols of the last one are positions in `outputs`.
        how: a description of the construction, in one line.
        shape: the least sizes of the model's layers.
    """

    machine: MooreMachine
    stages: tuple[Stage, ...]
    how: str
    shape: Shape = SMALL

    @property
    def n_layers(self) -> int:
        """The number of stages; each needs `Target.layers_a_stage` layers."""
        return len(self.stages)

    @property
    def n_heads(self) -> int:
        """The largest number of heads of a stage, filled up to whole groups."""
        most = max(len(stage.orbits) for stage in self.stages)
        return -(-most // self.shape.group) * self.shape.group

    @property
    def d_k(self) -> int:
        """The largest size of a key."""
        return max(orbit.head.keys.shape[1] for stage in self.stages for orbit in stage.orbits)

    @property
    def d_v(self) -> int:
        """The largest size of a value."""
        return max(orbit.head.values.shape[1] for stage in self.stages for orbit in stage.orbits)


def side_by_side(machine: MooreMachine, orbits: Sequence[Orbit], how: str) -> StagePlan:
    """Return a plan of one stage: parallel heads that read the letters, and units that write the machine's outputs.

    Raises:
        NotExpressible: if the states of the heads do not determine the output.
        BudgetExceeded: for more than `MAX_STATES` joint states of the heads and the machine.
    """
    outputs = {output: i for i, output in enumerate(dict.fromkeys(machine.outputs))}

    def step(states: tuple[int, ...], a: int) -> tuple[int, ...]:
        return tuple(int(orbit.table[a, state]) for orbit, state in zip(orbits, states, strict=True))

    output_of, _ = outputs_of_states(machine, (0,) * len(orbits), step)
    units = tuple(Unit(None, marks, outputs[output]) for marks, output in sorted(output_of.items()))
    return StagePlan(machine, (Stage(tuple(orbits), units, len(outputs)),), how)


def outputs_of_states(
    machine: MooreMachine,
    start: Any,
    step: Callable[[Any, int], Any],
    key: Callable[[Any], Any] = tuple,
) -> tuple[dict[Any, Hashable], int]:
    """Return the machine's output for each state that heads reach, and the number of joint states with the machine.

    `step` returns the next state, `key` the hashable name of a state under which its output is returned. Raises
    `NotExpressible` if a state would need two outputs, `BudgetExceeded` for more than `MAX_STATES` joint states.
    """
    visited, stack, output_of = {(key(start), machine.start)}, [(start, machine.start)], dict[Any, Hashable]()
    while stack:
        states, q = stack.pop()
        for a in range(len(machine.alphabet)):
            after, reached = step(states, a), int(machine.delta[a, q])
            name, output = key(after), machine.outputs[reached]
            if output_of.setdefault(name, output) != output:
                raise NotExpressible("one state of the heads would need two outputs")
            if (name, reached) not in visited:
                visited.add((name, reached))
                stack.append((after, reached))
                if len(visited) > MAX_STATES:
                    raise BudgetExceeded(f"the heads reach more than {MAX_STATES:,} states: give a smaller machine")
    return output_of, len(visited)
