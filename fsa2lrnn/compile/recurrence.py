"""Recurrences: tables with the alphabets of letters and outputs, and a read-out from states to output indices."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.compile.integer_tables import DenseTables, IndexTables, freeze
from fsa2lrnn.compile.relu_gate import ReluGate
from fsa2lrnn.compile.stack import GatedLayer, GatedStack
from fsa2lrnn.display import Brief, blocks_text, card
from fsa2lrnn.errors import InvalidMachine
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
