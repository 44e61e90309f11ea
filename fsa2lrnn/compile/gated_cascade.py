"""Compile a cascade into a stack of gated layers that computes it exactly (docs/theory.md §6).

Each component becomes blocks of its layer:

- two states: one scalar channel x = a x + v, a ∈ {1, −1, 0}, with a = f(1) − f(0) and v = f(0) for the map f;
- resets and the identity on m states: m − 1 scalar channels, the one-hot code without state 0; the identity is a = 1,
  v = 0, the constant y is a = 0, v = e_y;
- all other components: one one-hot block, A e_i = e_f(i), v = 0.

A table gives the map for each letter and combination of states read; `gate_synthesis.synthesise` turns it into gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.language import output_classes
from fsa2lrnn.cascade.cascade import Cascade, Component
from fsa2lrnn.compile.gate_synthesis import Coordinate, synthesise
from fsa2lrnn.compile.integer_tables import ReluGate
from fsa2lrnn.compile.recurrence import DenseReadout, Recurrence
from fsa2lrnn.compile.stack import GatedLayer, GatedStack


def stack_recurrence(cascade: Cascade) -> Recurrence:
    """Return the exact recurrence of the cascade's machine, with one layer per layer of the cascade.

    The gates read the states of lower layers at k−1, through a token shift, or at k if `cascade.reads_now`. Raises
    `NotExact` if a gate needs sums beyond 256, which bfloat16 rounds.

    >>> from fsa2lrnn.automata import MooreMachine
    >>> count = MooreMachine([[1, 2, 3, 0]], range(4), alphabet="a")
    >>> low = Component(2, 0, (), 0, np.array([[0]]), np.array([[1, 0]]))
    >>> carry = Component(2, 0, (0,), 1, np.array([[0, 0], [0, 1]]), np.array([[0, 1], [1, 0]]))
    >>> stack_recurrence(Cascade(count, (low, carry))).transduce("aaaaa")
    [1, 2, 3, 0, 1]
    """
    plan, machine = _Plan(cascade), cascade.machine
    outputs, number = tuple(dict.fromkeys(machine.outputs)), output_classes(machine.outputs)
    layers = tuple(_layer(plan, number) for number in range(cascade.n_layers))
    stack = GatedStack(plan.cell, layers, plan.token_shift)
    readout = _readout(
        plan, np.eye(len(outputs), dtype=np.int64)[number[cascade.image]]
    )  # logits one-hot in the output
    return Recurrence(machine.alphabet, outputs, stack, readout)


def cells_of_cascade(cascade: Cascade) -> np.ndarray:
    """Return the cell of each letter, int (|Σ|,): letters with equal maps in every component share one."""
    acts: list[list[bytes]] = [[] for _ in cascade.machine.alphabet]
    for component in cascade.components:
        order = np.lexsort(component.keys.T)
        letters = component.keys[order, 0]
        rows = np.concatenate([component.keys[order, 1:], component.maps[order]], axis=1).astype(np.int64)
        for a, act in enumerate(acts):
            act.append(rows[letters == a].tobytes())
    number: dict[tuple[bytes, ...], int] = {}
    return np.array([number.setdefault(tuple(act), len(number)) for act in acts])


@dataclass(frozen=True)
class _Blocks:
    """The position and the content of a component's blocks.

    Args:
        first: the index of its first block in its layer.
        b: the size to which the blocks of its layer are padded.
        offset: the position of its layer in the concatenated state.
    """

    component: Component
    first: int
    b: int
    offset: int

    @property
    def coordinate(self) -> Coordinate:
        """The encoding of the component's state as a gate's input."""
        return Coordinate(self.component.n_states, self.component.is_diagonal)

    @property
    def own(self) -> np.ndarray:
        """The positions of the component's features in its layer's state."""
        if self.component.is_diagonal:
            return (self.first + np.arange(self.component.n_states - 1)) * self.b
        return self.first * self.b + np.arange(self.component.n_states)

    @property
    def columns(self) -> np.ndarray:
        """The positions of the component's features in the concatenated state."""
        return self.offset + self.own

    def tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the entries of A and v that can be non-zero, for each of the component's R maps: (R, ·) and (R, ·)."""
        maps, m = self.component.maps.astype(np.int64), self.component.n_states
        if not self.component.is_diagonal:
            A = maps[:, None, :] == np.arange(m)[:, None]  # A[i, j] = 1 where f(j) = i
            return A.reshape(len(maps), m * m).astype(np.int64), np.zeros((len(maps), m), np.int64)
        if m == 2:
            # T14 (b): two states are the channel x ↦ (f(1) − f(0)) x + f(0).
            return maps[:, 1:] - maps[:, :1], maps[:, :1]
        # T14 (a): a reset of m states is m − 1 channels, all kept by the identity; a constant z writes [y = z] into
        # channel y.
        identity = (maps == np.arange(m)).all(1, keepdims=True)
        constant = ~identity & (maps[:, :1] == np.arange(1, m))
        width = max(1, m - 1)
        # A component of one state still takes one channel, which stays 0.
        padded = np.pad(constant.astype(np.int64), ((0, 0), (0, width - constant.shape[1])))
        return np.repeat(identity, width, axis=1).astype(np.int64), padded

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of the entries of `tables` in the flattened A and the flattened v."""
        if self.component.is_diagonal:
            # A scalar channel is entry (0, 0) of its padded block, and entry 0 of its part of v.
            heads = self.first + np.arange(max(1, self.component.n_states - 1))
            return heads * self.b**2, heads * self.b
        i = np.arange(self.component.n_states)
        return (self.first * self.b**2 + i[:, None] * self.b + i).reshape(-1), self.own


class _Plan:
    def __init__(self, cascade: Cascade) -> None:
        self.cascade = cascade
        self.cell = cells_of_cascade(cascade)
        self.n_cells = int(self.cell.max()) + 1
        self.token_shift = cascade.has_reads and not cascade.reads_now
        sizes = cascade.block_sizes
        widths = [len(layer) * max(layer, default=0) for layer in sizes]
        # below[l] is the number of features of the layers below l, in a layer's input after the letters.
        self.below = [sum(widths[:number]) for number in range(len(sizes) + 1)]
        self.blocks: list[_Blocks] = []
        used = [0] * len(sizes)
        for component in cascade.components:
            layer = component.layer
            self.blocks.append(_Blocks(component, used[layer], max(sizes[layer]), self.below[layer]))
            used[layer] += len(component.block_sizes)

    def keys(self, component: Component) -> tuple[np.ndarray, np.ndarray]:
        """Return the component's distinct keys, with cells in place of letters, and the number of the map of each."""
        keys = component.keys.astype(np.int64)
        keys[:, 0] = self.cell[keys[:, 0]]
        return np.unique(keys, axis=0, return_index=True)

    def gate_input(self, component: Component) -> tuple[list[Coordinate], np.ndarray]:
        """Return the coordinates that the component's gates read, and their columns in the layer's input."""
        below = self.below[component.layer]
        # With token shift the input is [letter, layers below, letter before, layers below before]; gates read the
        # states of the second half, which precede the letter.
        start = 2 * self.n_cells + below if self.token_shift else self.n_cells
        read = [self.blocks[j] for j in component.reads]
        columns = np.concatenate([np.arange(self.n_cells), *(start + blocks.columns for blocks in read)])
        return [Coordinate(self.n_cells), *(blocks.coordinate for blocks in read)], columns

    def width_in(self, layer: int) -> int:
        return (self.n_cells + self.below[layer]) * (2 if self.token_shift else 1)


def _layer(plan: _Plan, number: int) -> GatedLayer:
    """Return the gated layer with the components of one level: a block each, padded to the largest.

    Rows of the gates' outputs are entries of A, (H, b, b), and of v, (H, b), flattened. A diagonal component represents
    its first state by the zero vector, so its x₀ has one entry less.
    """
    sizes = plan.cascade.block_sizes[number]
    n_heads, b = len(sizes), max(sizes, default=0)
    x0 = np.zeros(n_heads * b, np.int64)
    transitions: list[_PlacedGate] = []
    values: list[_PlacedGate] = []
    for blocks in plan.blocks:
        component = blocks.component
        if component.layer == number:
            keys, rows = plan.keys(component)
            coordinates, columns = plan.gate_input(component)
            for part, table, entries in zip((transitions, values), blocks.tables(), blocks.entries(), strict=True):
                part.append(_PlacedGate(synthesise(keys, table[rows], coordinates), columns, entries))
            # One-hot over all states, or over the states from 1 on for scalar channels.
            x0[blocks.own] = np.arange(component.is_diagonal, component.n_states) == component.start
    width = plan.width_in(number)
    transition, value = _together(transitions, width, n_heads * b * b), _together(values, width, n_heads * b)
    return GatedLayer(transition, value, x0.reshape(n_heads, b), sizes)


def _readout(plan: _Plan, logits: np.ndarray) -> DenseReadout:
    gate = synthesise(plan.cascade.states, logits, [blocks.coordinate for blocks in plan.blocks])
    columns = np.concatenate([blocks.columns for blocks in plan.blocks])
    placed = _together([_PlacedGate(gate, columns, np.arange(gate.width_out))], plan.below[-1], gate.width_out)
    return DenseReadout(placed.W1, placed.b1, placed.W2, placed.b2)


@dataclass(frozen=True)
class _PlacedGate:
    gate: ReluGate
    columns: np.ndarray
    entries: np.ndarray


def _together(parts: Sequence[_PlacedGate], width_in: int, width_out: int) -> ReluGate:
    """Return the gate that computes several gates side by side: inputs at their columns, outputs at their entries."""
    n_units = sum(part.gate.n_units for part in parts)
    W1, b1 = np.zeros((n_units, width_in), np.int64), np.zeros(n_units, np.int64)
    W2, b2 = np.zeros((width_out, n_units), np.int64), np.zeros(width_out, np.int64)
    done = 0
    for part in parts:
        units = np.arange(done, done := done + part.gate.n_units)
        W1[units[:, None], part.columns] = part.gate.W1
        b1[units] = part.gate.b1
        W2[part.entries[:, None], units] = part.gate.W2
        # The entries of different components are disjoint, so biases are set, not added.
        b2[part.entries] = part.gate.b2
    return ReluGate(W1, b1, W2, b2)
