"""The exact intermediate form between a machine and a network: integer tables A[a], v[a], x₀ and a read-out.

    x_k = A[a_k] x_{k-1} + v[a_k],    y_k = W₂ relu(W₁ x_k + b₁) + b₂        (the paper's Eq. 1, T1 of docs/theory.md)

A `Recurrence` holds integers only. Letters that act alike share one *cell* of the tables. One layer over letters has
two layouts of the same linear map: `DenseTables` holds the matrices, `IndexTables` the row of the 1 of each one-hot
column. Both check on construction that their states stay one-hot, the hypothesis of T1. A `GatedStack` has one or more
layers, whose A and v also depend on the states of the layers below.
"""

from fsa2lrnn.recurrence.recurrence import DenseReadout, Recurrence, StateReadout
from fsa2lrnn.recurrence.stack import GatedLayer, GatedStack
from fsa2lrnn.recurrence.tables import DenseTables, IndexTables

__all__ = [
    "DenseReadout",
    "DenseTables",
    "GatedLayer",
    "GatedStack",
    "StateReadout",
    "IndexTables",
    "Recurrence",
]
