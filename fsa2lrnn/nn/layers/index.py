"""One-hot block layers stored as index tables, for blocks that are too large as matrices.

A one-hot vector is represented by the index of its 1, a one-hot column by the row of its 1; a matrix product is then a
gather. There is nothing to train, so these modules hold buffers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from fsa2lrnn import walks
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers.base import Layer, LayerConfig, Shape, check_positive
from fsa2lrnn.nn.scans import check_method


def sequential(next_state: Tensor, cells: Tensor, q: Tensor) -> Tensor:
    """Return q_k = next_state[cell_k, q_{k-1}], step by step, all int64: (C, n), (B, T), (B,) -> (B, T)."""
    states = []
    for cell in cells.unbind(1):
        q = next_state[cell, q]
        states.append(q)
    return torch.stack(states, dim=1) if states else torch.empty_like(cells)


def pscan(next_state: Tensor, cells: Tensor, q: Tensor) -> Tensor:
    """Return the states of `sequential` by composing maps in ⌈log₂T⌉ rounds of T·n look-ups (Hillis & Steele 1986)."""
    maps, reach = next_state[cells], 1  # (B, T, n): map k composes the letters k−reach+1 … k
    while reach < cells.shape[1]:
        # The later map after the earlier one: entry q of the result is later[earlier[q]].
        later = torch.gather(maps[:, reach:], 2, maps[:, :-reach])
        maps = torch.cat([maps[:, :reach], later], dim=1)
        reach *= 2
    return maps.gather(2, q[:, None, None].expand(-1, cells.shape[1], 1)).squeeze(2)


def walk(next_state: Tensor, cells: Tensor, q: Tensor) -> Tensor:
    """Return the states of `sequential`, by a compiled loop on the CPU that interleaves eight words."""
    states = torch.empty(cells.shape, dtype=torch.int64)
    walks.walk_words(next_state.numpy(), q.contiguous().numpy(), cells.contiguous().numpy(), states.numpy())
    return states


METHODS = {"sequential": sequential, "pscan": pscan, "walk": walk}


def choose_method(cells: Tensor) -> str:
    """Return the method of "auto" for the device of the cells.

    On the CPU it is "walk", on other devices "sequential", which needs no more memory than its result.

    >>> choose_method(torch.empty(8, 10))
    'walk'
    """
    return "walk" if cells.device.type == "cpu" else "sequential"


@dataclass(frozen=True)
class IndexLayerConfig(LayerConfig):
    """The configuration of one one-hot block of `n_states`, stored as a table of `n_maps` maps, without parameters."""

    n_states: int
    n_maps: int

    reads_letters: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive(self, "n_states", "n_maps")

    @property
    def width(self) -> int:
        return 1

    @classmethod
    def of_shape(cls, shape: Shape, options: Mapping[str, Any]) -> Self:
        """Raise `UnsupportedFormat`, because an index layer has no parameters to train."""
        raise UnsupportedFormat("an index layer holds no parameters, so it cannot be trained: take blocks")


class Numbers(nn.Module):
    """A module whose buffers hold indices, which compiled loops use without checking.

    `below` is the exclusive upper bound of each buffer's entries. Loading refuses state dicts that exceed it.
    """

    below: Mapping[str, int]

    def out_of_range(self, tensors: Mapping[str, Tensor], prefix: str = "") -> Iterator[str]:
        """Yield a message for each of these tensors that has an entry out of range, with the first such entry."""
        for name in [prefix + name for name in self.below if prefix + name in tensors]:
            entries, limit = tensors[name], self.below[name.removeprefix(prefix)]
            if not entries.is_meta and len(odd := entries[(entries < 0) | (entries >= limit)]):
                yield f"{name} holds {int(odd[0])}, but its entries run 0..{limit - 1}"

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Tensor],
        prefix: str,
        local_metadata: object,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the tables unless an entry is not the index of a state: torch raises what is in `error_msgs`."""
        if faults := [*self.out_of_range(state_dict, prefix)]:
            error_msgs += faults
            return
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class IndexLayer(Numbers, Layer):
    """The recurrence x_k = A(u_k) x_{k-1} on one-hot states as a table: states are int64 (B,), inputs (B, T)."""

    Config = IndexLayerConfig
    holds_maps: ClassVar[bool] = True
    methods: ClassVar[tuple[str, ...]] = tuple(METHODS)
    next_state: Tensor
    start: Tensor

    def __init__(self, width_in: int, config: IndexLayerConfig) -> None:
        super().__init__()
        self.register_buffer("next_state", torch.zeros(config.n_maps, config.n_states, dtype=torch.int64))
        self.register_buffer("start", torch.zeros((), dtype=torch.int64))
        self.below = {"next_state": config.n_states, "start": config.n_states}

    @classmethod
    def embedding(cls, config: IndexLayerConfig, n_letters: int, dim: int) -> IndexEmbedding:
        return IndexEmbedding(n_letters, config.n_maps)

    @classmethod
    def readout(cls, config: IndexLayerConfig, width: int, hidden: int, n_outputs: int) -> IndexReadout:
        return IndexReadout(config.n_states, n_outputs)

    @property
    def block_sizes(self) -> tuple[int, ...]:
        return (self.next_state.shape[1],)

    def starts_exact(self) -> bool:
        return True

    def is_exact(self, u: Tensor, limit: float) -> bool:
        return True

    def set_map(self, cell: int, head: int, rows: Tensor) -> None:
        self.next_state[cell] = rows

    def initial_state(self, batch: int) -> Tensor:
        return self.start.expand(batch)

    def forward(self, cells: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
        """Return the state indices q_1 … q_T and the last: (B, T), (B,) -> (B, T), (B,)."""
        check_method(method, METHODS)
        if method == "auto":
            method = choose_method(cells)
        states = METHODS[method](self.next_state, cells, state)
        return states, states[:, -1] if states.shape[1] else state

    def emit(self, state: Tensor) -> Tensor:
        return state


class IndexEmbedding(Numbers):
    """An embedding of letters by the index of their cell, instead of a one-hot vector."""

    cell: Tensor

    def __init__(self, n_letters: int, n_cells: int) -> None:
        super().__init__()
        self.register_buffer("cell", torch.zeros(n_letters, dtype=torch.int64))
        self.below = {"cell": n_cells}

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the cells of tokens: (B, T) -> (B, T)."""
        return self.cell[tokens]


class IndexReadout(Numbers):
    """A read-out with one-hot logits: `output` is the output of each state, `unit` sets the dtype of the logits."""

    output: Tensor
    unit: Tensor

    def __init__(self, n_states: int, n_outputs: int) -> None:
        super().__init__()
        self.n_outputs = n_outputs
        self.register_buffer("output", torch.zeros(n_states, dtype=torch.int64))
        self.register_buffer("unit", torch.ones(()))
        self.below = {"output": n_outputs}

    def forward(self, states: Tensor) -> Tensor:
        """Return one-hot logits: (…) -> (…, |Γ|)."""
        logits = self.unit.new_zeros(*states.shape, self.n_outputs)
        return logits.scatter_(-1, self.numbers(states).unsqueeze(-1), 1)

    def numbers(self, states: Tensor) -> Tensor:
        """Return the index of the output with the largest logit: int64 (…) -> (…)."""
        return self.output[states]
