"""The same linear map as a one-hot block layer, kept as index tables: for blocks too large to write out.

A one-hot vector is represented by the index of its 1, a one-hot column by the row of its 1; a matrix product is then a
gather. There is nothing to train, so these modules hold buffers only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from fsa2lrnn import tables
from fsa2lrnn.lrnn.config import IndexLayerConfig
from fsa2lrnn.lrnn.scans import check_method


def sequential(next_state: Tensor, cells: Tensor, q: Tensor) -> Tensor:
    """q_k = next_state[cell_k, q_{k-1}], step by step: (C, n), (B, T), (B,) -> (B, T)."""
    states = []
    for cell in cells.unbind(1):
        q = next_state[cell, q]
        states.append(q)
    return torch.stack(states, dim=1) if states else torch.empty_like(cells)


def pscan(next_state: Tensor, cells: Tensor, q: Tensor) -> Tensor:
    """The same by composing maps in ⌈log₂T⌉ rounds (Hillis & Steele 1986): T·n·⌈log₂T⌉ look-ups."""
    maps, reach = next_state[cells], 1  # (B, T, n): map k composes the letters k−reach+1 … k
    while reach < cells.shape[1]:
        later = torch.gather(maps[:, reach:], 2, maps[:, :-reach])
        maps = torch.cat([maps[:, :reach], later], dim=1)
        reach *= 2
    return maps.gather(2, q[:, None, None].expand(-1, cells.shape[1], 1)).squeeze(2)


def walk(next_state: Tensor, cells: Tensor, q: Tensor) -> Tensor:
    """The same by a compiled loop on the CPU, a word at a time."""
    table = next_state.numpy()
    rows = [torch.from_numpy(tables.walk(table, int(s), word.numpy())) for s, word in zip(q, cells, strict=True)]
    return torch.stack(rows) if rows else torch.empty_like(cells)


METHODS = {"sequential": sequential, "pscan": pscan, "walk": walk}


class IndexLayer(nn.Module):
    """x_k = A(u_k) x_{k-1} with one-hot columns as an index table; states are indices (B,), inputs cells (B, T)."""

    next_state: Tensor
    start: Tensor

    def __init__(self, config: IndexLayerConfig) -> None:
        super().__init__()
        self.block_sizes = (config.n_states,)
        self.register_buffer("next_state", torch.zeros(config.n_maps, config.n_states, dtype=torch.int64))
        self.register_buffer("start", torch.zeros((), dtype=torch.int64))

    @property
    def n_heads(self) -> int:
        """1."""
        return 1

    def initial_state(self, batch: int) -> Tensor:
        """The index of x₀'s 1 for each word of a batch: (B,)."""
        return self.start.expand(batch)

    def forward(self, cells: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """State indices q_1 … q_T and the last: (B, T), (B,) -> (B, T), (B,)."""
        check_method(method, METHODS)
        if method == "auto":
            method = "walk" if cells.device.type == "cpu" and cells.shape[1] > cells.shape[0] else "sequential"
        states = METHODS[method](self.next_state, cells, state)
        return states, states[:, -1] if states.shape[1] else state

    def emit(self, state: Tensor) -> Tensor:
        """What the layer gives out in a state: the index itself."""
        return state


class IndexEmbedding(nn.Module):
    """The cell of each letter: a one-hot embedding, by index."""

    cell: Tensor

    def __init__(self, n_letters: int) -> None:
        super().__init__()
        self.register_buffer("cell", torch.zeros(n_letters, dtype=torch.int64))

    def forward(self, tokens: Tensor) -> Tensor:
        """Cells: (B, T) -> (B, T)."""
        return self.cell[tokens]


class IndexReadout(nn.Module):
    """One-hot logits of the output of each state. `output` keeps the table, `unit` the dtype of the logits."""

    output: Tensor
    unit: Tensor

    def __init__(self, n_states: int, n_outputs: int) -> None:
        super().__init__()
        self.n_outputs = n_outputs
        self.register_buffer("output", torch.zeros(n_states, dtype=torch.int64))
        self.register_buffer("unit", torch.ones(()))

    def forward(self, states: Tensor) -> Tensor:
        """Logits: (…) -> (…, |Γ|)."""
        return one_hot(self.output[states], self.n_outputs).to(self.unit.dtype)
