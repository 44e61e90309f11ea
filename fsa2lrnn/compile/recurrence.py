"""Recurrences over the integers: tables, alphabets and read-out; and the one-hot recurrence of a machine (T1)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.automata.language import minimise, output_classes, share_cells
from fsa2lrnn.automata.machine import MachineSource, MooreMachine, as_machine
from fsa2lrnn.compile.integer_tables import DenseTables, IndexTables, ReluGate, freeze
from fsa2lrnn.compile.stack import GatedLayer, GatedStack
from fsa2lrnn.display import Brief, blocks_text, card
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, NotExpressible, UnsupportedFormat
from fsa2lrnn.symbols import Word, encode


@dataclass(frozen=True, eq=False)
class DenseReadout(ReluGate):
    """A read-out y = W₂ relu(W₁ x + b₁) + b₂ with integers: W1 (d, W), b1 (d,), W2 (|Γ|, d), b2 (|Γ|,).

    W is the width of a state: H·b for one layer, summed over the layers of a stack. Raises `InvalidMachine` as
    `ReluGate` does.
    """

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """Return the index of the largest y, the first of equals: int (…, W) -> int64 (…)."""
        return super().__call__(u).argmax(-1)


@dataclass(frozen=True, eq=False)
class StateReadout:
    """A read-out of index tables: `output[q]` is the output index of state q, int (n,).

    Raises `InvalidMachine` for negative indices.
    """

    output: np.ndarray

    def __post_init__(self) -> None:
        if self.output.min(initial=0) < 0:
            raise InvalidMachine(f"output holds {self.output.min()}: outputs are numbered from 0")
        freeze(self.output)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the output indices of states: int (…, 1) -> (…)."""
        return self.output[x[..., 0]]


@dataclass(frozen=True, eq=False)
class Recurrence(Brief):
    """A linear recurrence over the integers that runs a Moore machine, with the alphabets of both sides.

    Args:
        alphabet: Σ; letter i has the cell `tables.cell[i]`.
        outputs: Γ, the distinct output symbols, in the order of the read-out's indices.
        tables: the tables of one layer, or a stack of layers.
        readout: the map from states to output indices.

    Raises `InvalidMachine` if the shapes of alphabet, tables and read-out do not agree.
    """

    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    tables: DenseTables | IndexTables | GatedStack
    readout: DenseReadout | StateReadout

    def __post_init__(self) -> None:
        if len(self.tables.cell) != len(self.alphabet):
            raise InvalidMachine(f"the tables know {len(self.tables.cell)} letters, the alphabet {len(self.alphabet)}")
        if isinstance(self.tables, IndexTables) != isinstance(self.readout, StateReadout):
            raise InvalidMachine("tables and read-out are of different layouts: both dense or both index tables")
        if isinstance(self.readout, DenseReadout):
            width, n_outputs = self.readout.W1.shape[1], len(self.readout.W2)
            states = self.tables.initial().size
        else:
            width, n_outputs = len(self.readout.output), int(self.readout.output.max()) + 1
            states = self.tables.block_sizes[0]
        if width != states or not 1 <= n_outputs <= len(self.outputs):
            raise InvalidMachine(
                f"the read-out takes {width} and gives {n_outputs}, but states have {states} entries and there are "
                f"{len(self.outputs)} outputs"
            )

    @property
    def layers(self) -> tuple[DenseTables | IndexTables, ...] | tuple[GatedLayer, ...]:
        """The layers from input to output: the tables as a single layer, or those of the stack."""
        return self.tables.layers if isinstance(self.tables, GatedStack) else (self.tables,)

    def _repr_html_(self) -> str:
        rows = [
            ("letters", symbols.listed(self.alphabet)),
            ("outputs", symbols.listed(self.outputs)),
            *((f"layer {i}", blocks_text(layer.block_sizes)) for i, layer in enumerate(self.layers)),
        ]
        return card("Recurrence over the integers", rows)

    def transduce(self, word: Word) -> list[Hashable]:
        """Return the outputs after every letter of a word, in exact arithmetic; the slow reference for the network.

        Raises `InvalidWord` for an unknown letter.
        """
        x = self.tables.initial()[None]
        outputs: list[Hashable] = []
        for a in encode(word, self.alphabet):
            x = self.tables.step(x)[:, a]
            outputs.append(self.outputs[int(self.readout(x)[0])])
        return outputs


@dataclass(frozen=True)
class Factor:
    """A factor of a direct product: its transition table, and the coordinate of each state of the product."""

    next_state: np.ndarray  # (|Σ|, size)
    coordinate: np.ndarray  # (n,)

    @property
    def size(self) -> int:
        """The number of states of the factor."""
        return self.next_state.shape[1]


def visible_factors(machine: MooreMachine) -> list[Factor]:
    """Return the factors of a machine whose labels show that it is a direct product; else the machine as one factor.

    Labels must be tuples, and the next value of each coordinate must depend on its own value and the letter only.
    Coordinates that are constant or determined by the others are dropped; the rest must distinguish all states and be
    cheaper than one block by Σ b³, the cost of a parallel scan. All conditions are checked on the transition table.
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
            # Later states overwrite earlier ones of the same value. If some overwritten entry differed, the next
            # value does not depend on the coordinate and the letter alone.
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
    coordinates = [output_classes(values) for values in zip(*labels, strict=True)]  # type: ignore[arg-type]
    return coordinates if len(coordinates) > 1 else None


def _are_distinct(factors: list[Factor], n_states: int) -> bool:
    return len(np.unique(np.stack([f.coordinate for f in factors], axis=1), axis=0)) == n_states


LARGEST_DENSE_BLOCK = 64  # beyond, "auto" takes index tables: a dense step costs n² and a parallel scan n³


def onehot_recurrence(machine: MooreMachine, max_block: int | None, layout: str, dense_memory: int) -> Recurrence:
    """Return the one-hot form of a minimal machine; arguments and errors are those of `compile.compile_recurrence`."""
    factors = visible_factors(machine)
    sizes = [factor.size for factor in factors]
    if max_block is not None and max(sizes) > max_block:
        raise NotExpressible(
            f"the one-hot form needs blocks of sizes {sizes}, more than max_block={max_block}: "
            f"allow max_block={max(sizes)}, or take form='cascade'"
        )
    cell, representatives = share_cells(machine.delta)
    needed = dense_bytes(sizes, len(representatives), machine)
    if layout == "index" or (layout == "auto" and (max(sizes) > LARGEST_DENSE_BLOCK or needed > dense_memory)):
        # Each one-hot column is stored as the row of its 1: n numbers per cell, not n².
        tables = IndexTables(machine.delta[representatives], machine.start, cell)
        outputs, readout = tuple(dict.fromkeys(machine.outputs)), StateReadout(output_classes(machine.outputs))
        return Recurrence(machine.alphabet, outputs, tables, readout)
    if needed > dense_memory:
        size = f"{len(representatives)} maps × {len(sizes)} blocks × {max(sizes):,}² entries × 4 bytes"
        raise BudgetExceeded(
            f"dense weights would take {needed / 2**30:,.1f} GiB, more than the {dense_memory / 2**30:,.1f} GiB "
            f"allowed ({size}, gates and read-out besides): use layout='index', the same linear map as a table, or "
            "raise dense_memory"
        )
    return dense_recurrence(machine, factors, cell, representatives)


def dense_recurrence(
    machine: MooreMachine, factors: list[Factor], cell: np.ndarray, representatives: np.ndarray
) -> Recurrence:
    """Return the construction of T1 as dense tables: A[c] has columns e_{δ(q,a)}, v = 0, x₀ = e_{q₀}, in each factor.

    The read-out has one hidden unit per state, relu(Σ_h x_h[coordinate] − (H − 1)): a conjunction of one-hot features
    that is 1 in exactly this state. Every value is an integer of at most H.
    """
    sizes = tuple(factor.size for factor in factors)
    n_cells, n_heads, b = len(representatives), len(factors), max(sizes)
    A = np.zeros((n_cells, n_heads, b, b), np.int8)
    x0 = np.zeros((n_heads, b), np.int8)
    W1 = np.zeros((machine.n_states, n_heads, b), np.int8)
    for h, factor in enumerate(factors):
        for c, a in enumerate(representatives):
            # T1: column q is the unit vector of q's next state. Rows and columns from the factor's size on stay zero.
            A[c, h, factor.next_state[a], np.arange(factor.size)] = 1
        x0[h, factor.coordinate[machine.start]] = 1
        W1[np.arange(machine.n_states), h, factor.coordinate] = 1
    outputs, number = tuple(dict.fromkeys(machine.outputs)), output_classes(machine.outputs)
    W2 = np.zeros((len(outputs), machine.n_states), np.int8)
    # Exactly one hidden unit is 1, so the logit of its state's output is 1 and all others are 0.
    W2[number, np.arange(machine.n_states)] = 1
    readout = DenseReadout(
        W1.reshape(machine.n_states, n_heads * b),
        np.full(machine.n_states, 1 - n_heads, np.int8),
        W2,
        np.zeros(len(outputs), np.int8),
    )
    v = np.zeros((n_cells, n_heads, b), np.int8)
    return Recurrence(machine.alphabet, outputs, DenseTables(A, v, x0, cell, sizes), readout)


def dense_bytes(sizes: list[int], n_cells: int, machine: MooreMachine) -> int:
    """Return the size in bytes of the dense network in float32: transition maps, gates, embedding and read-out."""
    b, n_heads, n_letters, n = max(sizes), len(sizes), len(machine.alphabet), machine.n_states
    # Matrices and offsets of all cells, and the identity matrices with which the two gates read one-hot cells.
    maps, gates = n_cells * n_heads * b * (b + 1), 2 * n_cells**2
    embedding, readout = n_letters * n_cells, n * (n_heads * b + len(set(machine.outputs)))
    return 4 * (maps + gates + embedding + readout)


Form = Literal["onehot", "cascade", "auto"]


Layout = Literal["auto", "dense", "index"]


DENSE_MEMORY = 4 * 2**30  # bytes that dense weights may take before they are refused


def compile_recurrence(
    machine: MachineSource,
    form: Form = "onehot",
    max_block: int | None = None,
    token_shift: bool = True,
    layout: Layout = "auto",
    dense_memory: int = DENSE_MEMORY,
) -> Recurrence:
    """Return the exact recurrence that computes `machine` on words of every length (T1 and §6 of docs/theory.md).

    Args:
        machine: any complete Moore machine, or its source; its minimal machine is compiled.
        form: "onehot", one layer with one block that has the states of the minimal machine, or one block per factor if
            its labels show that it is a direct product; "cascade", layers of small blocks (`fsa2lrnn.decompose`);
            "auto", the cheaper of the two (`choice.choose`, which also gives the reason).
        max_block: the largest block allowed. If None, the one-hot form uses as large blocks as it needs, and a cascade
            splits its components down to 8 states, which a fibre code may increase.
        token_shift: whether a layer may also read the previous states of lower layers; without it a cascade's blocks
            encode the needed information on these in a fibre code (`cascade.refine.fibre_code`).
        layout: of the one-hot form, "dense" matrices, "index" tables of the same linear map, or "auto": dense up to 64
            states per block. A cascade is dense.
        dense_memory: the bytes that the dense weights (float32) of the one-hot form may take.

    Raises:
        NotExpressible: if blocks of at most `max_block` do not suffice.
        NotExact: if a cascade's gates need integers that bfloat16 does not hold.
        BudgetExceeded: if "dense" weights are requested and do not fit.
        UnsupportedFormat: for an unknown form or layout, or an index layout of a cascade.

    >>> r = compile_recurrence(MooreMachine([[0, 1], [1, 0]], [False, True]))
    >>> r.tables.A[1, 0].tolist(), r.transduce([1, 1, 1])
    ([[0, 1], [1, 0]], [True, False, True])
    """
    return compile_with_reason(machine, form, max_block, token_shift, layout, dense_memory)[0]


def compile_with_reason(
    machine: MachineSource,
    form: Form = "auto",
    max_block: int | None = None,
    token_shift: bool = True,
    layout: Layout = "auto",
    dense_memory: int = DENSE_MEMORY,
) -> tuple[Recurrence, str | None]:
    """Return the result of `compile_recurrence`, and the reason for the chosen form (None unless `form` is "auto").

    Arguments and errors are those of `compile_recurrence`.

    >>> from fsa2lrnn.automata import zoo
    >>> compile_with_reason(zoo.sum_mod(5))[1]
    'one layer: its blocks, of sizes 5, are no larger than 8'
    """
    # The search for cascades takes a quarter of a second to import, which a verifier need not do.
    from fsa2lrnn.compile.choice import best_cascade, choose
    from fsa2lrnn.compile.gated_cascade import stack_recurrence

    machine = as_machine(machine)
    for name, value, choices in [("form", form, get_args(Form)), ("layout", layout, get_args(Layout))]:
        if value not in choices:
            raise UnsupportedFormat(f"{name} {value!r} is not known: choose one of {', '.join(choices)}")
    if form == "cascade" and layout == "index":
        raise UnsupportedFormat("layout 'index' holds one large block: a cascade has small ones, leave layout='auto'")
    if form == "cascade":
        return stack_recurrence(best_cascade(machine, max_block, token_shift).cascade), None
    why = None
    if form == "auto" and layout == "index":
        why = "one layer: layout index holds one large block"
    elif form == "auto":
        choice = choose(machine, max_block, token_shift)
        why = choice.why
        if choice.decomposition is not None:
            return stack_recurrence(choice.decomposition.cascade), why
    return onehot_recurrence(minimise(machine), max_block, layout, dense_memory), why
