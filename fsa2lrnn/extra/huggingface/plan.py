"""Plans of weights for external layers, independent of the external code: heads, and the units that read them.

A head is a matrix S, 0 at first, that a symbol a changes by the gated delta rule,

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

MAX_STATES = 1_500  # of a head, and of all heads together: S6 has 720
UNIT = 64.0  # what values are multiples of the half of
_SAME = 1e-9
# To how many decimals directions and their distances are rounded. Sums of products differ by CPU in their last bits,
# and what is 0 but for these must not become a weight: so a machine has the same weights on every CPU.
DECIMALS = 12


class MachinePlan:
    """The base class of plans, with the machine and its outputs."""

    machine: MooreMachine

    @property
    def outputs(self) -> tuple[Hashable, ...]:
        """The machine's outputs, each once, in the order of its states."""
        return tuple(dict.fromkeys(self.machine.outputs))


class OneLayerPlan(MachinePlan):
    """The base class of plans of one layer."""

    @property
    def n_layers(self) -> int:
        """The number of layers, 1."""
        return 1


@dataclass(frozen=True, eq=False)
class StageHead:
    """One head over the symbols of its stage.

    Args:
        keys: (n, d_k), unit vectors or zero.
        values: (n, d_v), non-negative integers.
        alphas, betas: (n,).
        query: (d_k,), the direction in which S is read.
        towards: (d_v,), has a positive product with each nonzero mark.
        lags: (d_v,), how many letters ago the letter was whose value a column takes; None for the current letter.
    """

    keys: np.ndarray
    values: np.ndarray
    alphas: np.ndarray
    betas: np.ndarray
    query: np.ndarray
    towards: np.ndarray
    lags: np.ndarray | None = None

    def step(self, S: np.ndarray, a: int) -> np.ndarray:
        """Return S after symbol a, exactly: (d_k, d_v) -> (d_k, d_v)."""
        S = self.alphas[a] * S
        k = self.keys[a]
        return S + self.betas[a] * np.outer(k, self.values[a] - S.T @ k)

    def writes(self) -> np.ndarray:
        """Return which symbols replace the whole state of a head with one unit key, bool (n,)."""
        return self._is_unit() & (self.betas == 1)

    def keeps(self) -> np.ndarray:
        """Return the identity symbols, bool (n,); raise `NotExpressible` if one neither keeps, writes nor forgets."""
        identity = (self.alphas == 1) & (self.betas == 0)
        if not self._is_unit().any() or not (identity | self.writes() | (self.alphas == 0)).all():
            raise NotExpressible("this layer's heads keep all that they hold or forget it: give a plan of registers")
        return identity

    def _is_unit(self) -> np.ndarray:
        is_one = self.keys.shape[1] == 1
        return np.full(len(self.keys), is_one) & ((self.keys == 1).all(axis=1) | (self.betas == 0))

    def mark(self, S: np.ndarray) -> np.ndarray:
        """Return the direction of the output of S, (d_v,); zero if Sᵀq is zero."""
        y = S.T @ (self.query / np.linalg.norm(self.query))
        norm = float(np.linalg.norm(y))
        return np.round(y / norm, DECIMALS) + 0.0 if norm > _SAME * UNIT else np.zeros_like(y)


@dataclass(frozen=True, eq=False)
class Orbit:
    """The reachable states of a head: matrices, the table of steps (n, m), and the distinct marks.

    Marks are (m, d_v), those of the matrices in order, unless several matrices show the same one.
    """

    head: StageHead
    states: tuple[np.ndarray, ...]
    table: np.ndarray
    marks: np.ndarray

    @property
    def gap(self) -> float:
        """The least separation of two marks d, d': 1 − d·d', and towards·d if one of them is zero."""
        products = self.marks @ self.marks.T
        apart = 1 - products[~np.eye(len(products), dtype=bool)]
        zero = ~self.marks.any(axis=1)
        ahead = (self.marks @ self.head.towards)[~zero] if zero.any() else np.ones(1)
        return round(float(min(apart.min(initial=1.0), ahead.min(initial=1.0))), DECIMALS)


def orbit(head: StageHead, limit: int = MAX_STATES) -> Orbit:
    """Return the states that a head reaches from S = 0; raise `BudgetExceeded` beyond `limit` matrices."""
    start = np.zeros((head.keys.shape[1], head.values.shape[1]))
    numbers, states, rows = {start.tobytes(): 0}, [start], list[list[int]]()
    for S in states:
        row = list[int]()
        for a in range(len(head.keys)):
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


@dataclass(frozen=True)
class Unit:
    """A unit that fires if the letter is `letter` (None: any) and orbit i has mark `marks[i]` (None: any).

    Orbits are numbered over the stages up to this one; `target` is the symbol that the unit writes.
    """

    letter: int | None
    marks: tuple[int | None, ...]
    target: int


@dataclass(frozen=True, eq=False)
class Stage:
    """One layer: heads, followed by units that write `n_symbols` kinds of symbols."""

    orbits: tuple[Orbit, ...]
    units: tuple[Unit, ...]
    n_symbols: int


@dataclass(frozen=True, eq=False)
class StagePlan(MachinePlan):
    """A machine as stages; the symbols of the last stage are positions in `outputs`.

    Args:
        machine: the minimal machine.
        how: the construction, in a line.
    """

    machine: MooreMachine
    stages: tuple[Stage, ...]
    how: str

    @property
    def n_layers(self) -> int:
        """The number of stages; each needs `ExternalLayer.layers_a_stage` layers."""
        return len(self.stages)

    @property
    def n_heads(self) -> int:
        """The number of heads per layer."""
        return max(len(stage.orbits) for stage in self.stages)

    @property
    def d_k(self) -> int:
        """The size of a key."""
        return max(orbit.head.keys.shape[1] for stage in self.stages for orbit in stage.orbits)

    @property
    def d_v(self) -> int:
        """The size of a value."""
        return max(orbit.head.values.shape[1] for stage in self.stages for orbit in stage.orbits)


def side_by_side(machine: MooreMachine, orbits: Sequence[Orbit], how: str) -> StagePlan:
    """Return one stage: heads that read the letters, and units for the machine's outputs.

    Raises:
        NotExpressible: if the marks of the heads do not determine the output.
        BudgetExceeded: beyond `MAX_STATES` combinations.
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
    """Return the machine's output in each state of the heads, by key, and the number of joint states with the machine.

    Raises:
        NotExpressible: if a state would need two different outputs.
        BudgetExceeded: beyond `MAX_STATES` joint states.
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
