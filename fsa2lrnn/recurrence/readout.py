"""Read-outs: from the states of a recurrence to the numbers of its outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fsa2lrnn.errors import InvalidMachine
from fsa2lrnn.gates import ReluGate
from fsa2lrnn.recurrence.tables import freeze


@dataclass(frozen=True, eq=False)
class DenseReadout:
    """y = W₂ relu(W₁ x + b₁) + b₂ with small integers: W1 (d, W), b1 (d,), W2 (|Γ|, d), b2 (|Γ|,).

    W is the width of a state: H·b of one layer, or the sum over the layers of a stack. Raises `InvalidMachine` as
    `Gate` does.
    """

    W1: np.ndarray
    b1: np.ndarray
    W2: np.ndarray
    b2: np.ndarray
    gate: ReluGate = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gate", ReluGate(self.W1, self.b1, self.W2, self.b2))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the index of the output with the largest y, the first of equals: (…, W) -> (…)."""
        return self.gate(x).argmax(-1)


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
