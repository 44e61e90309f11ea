"""Direct products visible in a machine's labels: several small parallel blocks in place of a large one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine


@dataclass(frozen=True)
class Factor:
    """One factor of a direct product: its transition table, and the coordinate of each state of the product."""

    next_state: np.ndarray  # (|Σ|, size)
    coordinate: np.ndarray  # (n,)

    @property
    def size(self) -> int:
        """The number of states of the factor."""
        return self.next_state.shape[1]


def visible_factors(machine: MooreMachine) -> list[Factor]:
    """Return the factors of a machine whose labels are tuples of independent coordinates; else the machine alone.

    A coordinate is independent if its next value depends on its own value and the letter only. Coordinates that are
    constant or determined by the others are dropped; the rest must distinguish all states and be cheaper than one block
    by Σ b³, the cost of a parallel scan. All conditions are checked on the transition table, so labels are not trusted.
    """
    whole = [Factor(machine.delta, np.arange(machine.n_states))]
    coordinates = _label_coordinates(machine)
    if coordinates is None:
        return whole
    factors: list[Factor] = []
    for coordinate in coordinates:
        size = int(coordinate.max()) + 1
        next_state = np.full((len(machine.delta), size), -1)
        for a, row in enumerate(machine.delta):
            next_state[a, coordinate] = coordinate[row]
            if (next_state[a, coordinate] != coordinate[row]).any():
                return whole
        factors.append(Factor(next_state, coordinate))
    factors.sort(key=lambda factor: -factor.size)
    for factor in list(factors):  # the largest redundant factor is dropped first
        rest = [f for f in factors if f is not factor]
        if rest and _are_distinct(rest, machine.n_states):
            factors = rest
    cheaper = sum(f.size**3 for f in factors) < machine.n_states**3
    return factors if cheaper and _are_distinct(factors, machine.n_states) else whole


def _label_coordinates(machine: MooreMachine) -> list[np.ndarray] | None:
    labels = machine.labels
    if labels is None or not all(isinstance(label, tuple) and len(label) == len(labels[0]) for label in labels):  # type: ignore[arg-type]
        return None
    coordinates: list[np.ndarray] = []
    for values in zip(*labels, strict=True):  # type: ignore[arg-type]
        number: dict[object, int] = {}
        coordinates.append(np.array([number.setdefault(value, len(number)) for value in values]))
    return coordinates if len(coordinates) > 1 else None


def _are_distinct(factors: list[Factor], n_states: int) -> bool:
    return len(np.unique(np.stack([f.coordinate for f in factors], axis=1), axis=0)) == n_states
