"""The heads of a network of several layers as automata: what each does of its own, and what it reads of those below.

All is read off the states that the words of a goal lead to, as the network's own step computes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from fsa2lrnn.automata.counting import Ignore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine, written
from fsa2lrnn.extra.report.facts import LayerHead
from fsa2lrnn.extraction.closed import ModelSystem
from fsa2lrnn.extraction.walk import Interner
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.verification.goal import specification_of
from fsa2lrnn.verification.walk import JointWalk

_PAIRS = 20_000  # states of network and machine together, after which the walk ends
_UNSURE = "?"  # after a letter that leads elsewhere too, by what is below


class _Steps(NamedTuple):
    before: np.ndarray  # int64 (M, H)
    after: np.ndarray
    last: np.ndarray  # int64 (M,)
    letters: np.ndarray


def heads_by_layer(model: LRNN, machine: MooreMachine, ignore: Ignore = (), most: int = 24) -> list[LayerHead]:
    """The heads of all layers from below, those of more than `most` states without a drawing; none of a single layer,
    or where a state is not one-hot.

    `machine`: whose words that count are gone through, until no new state comes or there are very many.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> network = compile_machine(zoo.mod_arith(5), form="cascade", max_block=5)
    >>> [(head.layer, head.states, head.reads) for head in heads_by_layer(network, zoo.mod_arith(5))]
    [(0, 3, []), (0, 5, []), (1, 5, [1])]
    """
    sizes = [layer.block_sizes for layer in model.recurrences]
    if len(sizes) < 2 or (steps := _steps(model, machine, ignore)) is None:
        return []
    alphabet = written(model.alphabet)
    start = _heads(model, ModelSystem(model).start())
    assert start is not None  # the steps begin with it
    found, first = list[LayerHead](), 0
    for number, blocks in enumerate(sizes):
        for h, block in enumerate(blocks):
            i = first + h
            states = sorted({int(start[0, i]), *steps.before[:, i].tolist(), *steps.after[:, i].tolist()})
            drawn = _machine(steps, i, states, int(start[0, i]), alphabet) if 1 < len(states) <= most else None
            reads, has_last = _reads(steps, i, first)
            found.append(LayerHead(number, h, block, len(states), reads, has_last, drawn))
        first += len(blocks)
    return found


def _steps(model: LRNN, machine: MooreMachine, ignore: Ignore) -> _Steps | None:
    """All steps from the states that are reached; None where a state is not one-hot."""
    walk = JointWalk(ModelSystem(model), specification_of(model, machine, ignore))
    parts, letters_before = list[_Steps](), Interner()
    while len(walk) and walk.seen <= _PAIRS:
        rows = walk.states
        ahead, to = walk.look()
        before, after = _heads(model, rows), _heads(model, ahead.states)
        if before is None or after is None:
            return None
        last = _last(model, rows, letters_before)
        parts.append(_Steps(before[ahead.parents], after, last[ahead.parents], ahead.letters))
        walk.keep_new(ahead, to)
    return _Steps(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _heads(model: LRNN, rows: np.ndarray) -> np.ndarray | None:
    """Where the 1 of each head is, layers side by side: uint8 (N, D) -> int64 (N, H); None unless all are one-hot."""
    found = []
    for part in ModelSystem(model).state_of(rows):
        x = part.x  # (N, H, b)
        if x.dim() != 3 or not bool(((x == 0) | (x == 1)).all() and (x.sum(-1) == 1).all()):
            return None
        found.append(x.argmax(-1))
    return torch.cat(found, 1).cpu().numpy()


def _last(model: LRNN, rows: np.ndarray, known: Interner) -> np.ndarray:
    """A number for the letter before, none at first, as the lowest layer keeps it: (N,), zeros where it keeps none."""
    kept = ModelSystem(model).state_of(rows)[0].u
    if kept is None:
        return np.zeros(len(rows), np.int64)
    return known.number(np.ascontiguousarray(kept.flatten(1).cpu().numpy()).view(np.uint8))


def _reads(steps: _Steps, i: int, n_below: int) -> tuple[list[int], bool]:
    """Heads below, fewest as found one by one, that with the letter say what head `i` does, and whether the letter
    before is needed too."""
    own = [steps.before[:, i], steps.letters]
    needed: list[int | None] = [None, *reversed(range(n_below))]  # None is the letter before

    def columns(of: Sequence[int | None]) -> list[np.ndarray]:
        return [steps.last if j is None else steps.before[:, j] for j in of]

    for j in list(needed):
        fewer = [k for k in needed if k != j]
        if _determine([*own, *columns(fewer)], steps.after[:, i]):
            needed = fewer
    return sorted(j for j in needed if j is not None), None in needed


def _determine(given: list[np.ndarray], wanted: np.ndarray) -> bool:
    keys = np.unique(np.stack(given, 1), axis=0, return_inverse=True)[1].reshape(-1)
    return len(np.unique(np.stack([keys, wanted], 1), axis=0)) == int(keys.max()) + 1


def _machine(steps: _Steps, i: int, states: list[int], start: int, alphabet: list[str]) -> DrawnMachine:
    moves = np.unique(np.stack([steps.letters, steps.before[:, i], steps.after[:, i]], 1), axis=0).tolist()
    number = {q: k for k, q in enumerate(states)}
    rows: dict[tuple[int, int], list[int]] = {}
    ends: dict[tuple[int, int], list[int]] = {}
    for a, q, then in moves:
        ends.setdefault((a, q), []).append(number[then])
    for (a, q), targets in ends.items():
        for k, then in enumerate(targets):
            row = rows.setdefault((a, k if len(targets) > 1 else -1), [-1] * len(states))
            row[number[q]] = then
    ordered = sorted(rows)
    names = [str(q + 1) for q in states]
    letters = [alphabet[a] + (_UNSURE if k >= 0 else "") for a, k in ordered]
    return DrawnMachine(names, letters, names, [rows[key] for key in ordered], number[start])
