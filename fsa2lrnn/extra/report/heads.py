"""Heads that are automata over the letters: all columns one-hot, nothing added (T50 of docs/theory.md)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fsa2lrnn.extra.report.drawing.machine import DrawnMachine, written
from fsa2lrnn.extra.report.drawing.ranks import distances
from fsa2lrnn.lrnn.model import LRNN


class ReachableHead(NamedTuple):
    """As far as letters lead: the numbers of the states in the block, and the machine of these, whose outputs are the
    states themselves."""

    states: list[int]
    machine: DrawnMachine


def heads_of(model: LRNN, most: int) -> dict[int, ReachableHead]:
    """Heads by number, those with more than `most` states left out; none of a model without tables.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> heads_of(compile_machine(zoo.parity()), 12)[0].machine.delta
    [[0, 1], [1, 0]]
    """
    if not model.is_switched:
        return {}
    layer = model.recurrences[0]
    with torch.no_grad():
        A, v = layer.tables(model.first_inputs())
        start = layer.initial_state(1)[0]
    found = {}
    for h, b in enumerate(layer.block_sizes):
        if not _is_automaton(A[:, h, :b, :b], v[:, h], start[h, :b]):
            continue
        delta, first = A[:, h, :b, :b].argmax(-2).tolist(), int(start[h, :b].argmax())  # [letter][state]
        steps = distances(b, [(q, then) for row in delta for q, then in enumerate(row)], first)
        states = [q for q in range(b) if q == first or steps[q]]
        if len(states) <= most:
            number = {q: i for i, q in enumerate(states)}
            names = [str(q + 1) for q in states]
            rows = [[number[row[q]] for q in states] for row in delta]
            found[h] = ReachableHead(states, DrawnMachine(names, written(model.alphabet), names, rows, number[first]))
    return found


def _is_automaton(A: Tensor, v: Tensor, start: Tensor) -> bool:
    """Whether x₀ (b,) and all columns of A (|Σ|, b, b) are one-hot, and v is zero."""
    rows = torch.cat([A.transpose(-1, -2).flatten(0, 1), start[None]])
    return bool(((rows == 0) | (rows == 1)).all() and (rows.sum(-1) == 1).all() and not v.any())
