"""A recurrence with its alphabets, and the read-outs from its states to the numbers of outputs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.display.brief import Brief
from fsa2lrnn.display.cards import blocks_text, card
from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.gates import ReluGate
from fsa2lrnn.recurrence.stack import GatedLayer, GatedStack
from fsa2lrnn.recurrence.tables import DenseTables, IndexTables, freeze
from fsa2lrnn.symbols import Word, encode


@dataclass(frozen=True, eq=False)
class DenseReadout(ReluGate):
    """y = W₂ relu(W₁ x + b₁) + b₂ with small integers: W1 (d, W), b1 (d,), W2 (|Γ|, d), b2 (|Γ|,).

    W is the width of a state: H·b of one layer, or the sum over the layers of a stack. Raises `InvalidMachine` as
    `ReluGate` does.
    """

    def __call__(self, u: np.ndarray) -> np.ndarray:
        """Return the index of the output with the largest y, the first of equals: (…, W) -> (…)."""
        return super().__call__(u).argmax(-1)


@dataclass(frozen=True, eq=False)
class StateReadout:
    """The output index of each state index: `output[q]`, shape (n,). Raises `InvalidMachine` for negative numbers."""

    output: np.ndarray

    def __post_init__(self) -> None:
        if self.output.min(initial=0) < 0:
            raise InvalidMachine(f"output holds {self.output.min()}: outputs are numbered from 0")
        freeze(self.output)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return output indices: (…, 1) -> (…)."""
        return self.output[x[..., 0]]


@dataclass(frozen=True, eq=False)
class Recurrence(Brief):
    """A linear recurrence over the integers that runs a Moore machine, with the alphabets of both sides.

    Args:
        alphabet: Σ, the letters of the tables' cells.
        outputs: Γ, the distinct output symbols, in the order of the read-out's indices.
        tables: the tables of one layer, or a stack of layers; states are values of `tables.initial()`, `tables.step()`.
        readout: the map from states to output indices.

    Raises:
        InvalidMachine: if the shapes of alphabet, tables and read-out do not agree.
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
        """Return ω(q₁) … ω(q_T), in integer arithmetic: the slow reference for the network that `lower` returns."""
        x = self.tables.initial()[None]
        outputs: list[Hashable] = []
        for a in encode(word, self.alphabet):
            x = self.tables.step(x)[:, a]
            outputs.append(self.outputs[int(self.readout(x)[0])])
        return outputs
