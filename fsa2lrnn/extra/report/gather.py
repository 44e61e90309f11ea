"""Convert models and machines to the plain facts of a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.report.align import Alignment
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine, written
from fsa2lrnn.extra.report.facts import FAR, NEAR, HeadAutomaton, LayerInternals
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import SwitchedAffine, switched
from fsa2lrnn.verification.specification import Specification, specification_of

_NEAR_WORDS, _NEAR_LENGTH = 12, 24
_FAR_WORDS, _FAR_LENGTH, _FAR_SHOWN = 12, 500, 8
_HEAD_STATES = 12  # the most states of a head that is drawn as an automaton
_RIDGE = 1e-3  # the part of the variance within states that is added to each direction, so that none has zero variance


def machine_facts(machine: MooreMachine) -> DrawnMachine:
    """Return the minimal machine as data for drawings; states without labels are named by their numbers."""
    minimal = machine.minimise()
    return DrawnMachine.of(minimal.delta.tolist(), minimal.outputs, minimal.start, minimal.alphabet, minimal.labels)


def inside(model: LRNN, machine: MooreMachine, found: Alignment, like: LayerInternals | None = None) -> LayerInternals:
    """Return the internals of a model of one layer over letters; `found` is its alignment with the machine.

    With `like`, the plane is the one in which the machine's states lie most similarly to those in `like`. Raises
    `UnsupportedFormat` for another model.
    """
    tables = switched(model).to(torch.float64)
    eigenvalues = [list(letter) for letter in zip(*(head.eigenvalues for head in found.heads), strict=True)]
    blocks = np.round(tables.A.numpy(), 4).tolist()
    rounded = np.round(np.array(eigenvalues), 8).tolist()
    points = plane(tables, specification_of(model, machine), like.points if like else None)
    automata = [HeadAutomaton(h, head.machine) for h, head in heads_of(model, _HEAD_STATES).items()]
    return LayerInternals(rounded, blocks, points, found.carrying, automata)


def plane(tables: SwitchedAffine, goal: Specification, like: list[list[float]] | None = None) -> list[list[float]]:
    """Return states of the network along random words in a plane, [x, y, state, NEAR or FAR].

    The plane is that of `fisher`, computed on the first 24 letters of words. FAR points are the states after the last
    letters of words of 500 letters.
    """
    rng = np.random.default_rng(0)
    n_letters = len(tables.alphabet)
    near_x, near_q = _walk(tables, goal, rng.integers(0, n_letters, (_NEAR_WORDS, _NEAR_LENGTH)))
    far_x, far_q = _walk(tables, goal, rng.integers(0, n_letters, (_FAR_WORDS, _FAR_LENGTH)))
    x, q = near_x.reshape(near_q.size, -1), near_q.ravel()
    mean, directions = fisher(x, q, like)
    points = []
    shown = ((x, q, NEAR), (far_x[:, -_FAR_SHOWN:].reshape(-1, x.shape[1]), far_q[:, -_FAR_SHOWN:].ravel(), FAR))
    for states, numbers, when in shown:
        for (a, b), number in zip((states - mean) @ directions, numbers, strict=True):
            points.append([round(float(a), 3), round(float(b), 3), int(number), when])
    return points


def _walk(tables: SwitchedAffine, goal: Specification, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return tables.run(torch.from_numpy(tokens)).flatten(-2).numpy(), goal.path(tokens)


def fisher(x: np.ndarray, q: np.ndarray, like: list[list[float]] | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the origin (d,) and two directions (d, 2) of the plane that separates classes most: x (N, d), q (N,).

    It is Fisher's discriminant plane (1936), or with `like` that in which the centres of classes are closest to those
    of the points `like`. The largest coordinate of a centre is scaled to 1.
    """
    seen = np.unique(q)
    centres = np.stack([x[q == state].mean(0) for state in seen])
    rest = x - centres[np.searchsorted(seen, q)]
    within = rest.T @ rest / len(x)
    scale = max(float(np.trace(within)), float(x.var(0).sum()) * _RIDGE, 1e-12)
    whiten = np.linalg.inv(np.linalg.cholesky(within + _RIDGE * scale * np.eye(x.shape[1])))
    mean = centres.mean(0)
    apart = (centres - mean) @ whiten.T
    if like is None:
        turned = np.linalg.svd(apart, full_matrices=False)[2][:2].T
    else:
        goals = np.stack([_centre(like, int(state)) for state in seen])
        turned = np.linalg.pinv(apart, rcond=_RIDGE) @ (goals - goals.mean(0))
    directions = whiten.T @ turned
    directions = np.pad(directions, ((0, 0), (0, 2 - directions.shape[1])))
    size = np.abs((centres - mean) @ directions).max()
    return mean, directions / (size or 1.0)


def _centre(points: list[list[float]], state: int) -> np.ndarray:
    near = [point[:2] for point in points if point[2] == state and point[3] == NEAR]
    return np.mean(near, axis=0) if near else np.zeros(2)


def accuracy_of(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the accuracies of one model per length, from a result of `fsa2lrnn.extra.report.compare.compare`."""
    return json.loads(json.dumps(document["models"][name]["lengths"]))


class ReachableHead(NamedTuple):
    """The reachable part of a head that is an automaton: its states' numbers in the block, and their machine.

    The outputs of the machine are the numbers of the states.
    """

    states: list[int]
    machine: DrawnMachine


def heads_of(model: LRNN, most: int) -> dict[int, ReachableHead]:
    """Return the heads that are automata with at most `most` states, by number; none for a model without tables.

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
        states = reachable(delta, first)
        if len(states) <= most:
            number = {q: i for i, q in enumerate(states)}
            names = [str(q) for q in states]
            rows = [[number[row[q]] for q in states] for row in delta]
            found[h] = ReachableHead(states, DrawnMachine(names, written(model.alphabet), names, rows, number[first]))
    return found


def reachable(delta: Sequence[Sequence[int]], start: int) -> list[int]:
    """Return the states that are reachable from the start, in ascending order; `delta` is [letter][state].

    >>> reachable([[1, 0, 2]], 0)
    [0, 1]
    """
    graph = nx.DiGraph((q, then) for row in delta for q, then in enumerate(row))
    return sorted({start} | nx.descendants(graph, start))


def _is_automaton(A: Tensor, v: Tensor, start: Tensor) -> bool:
    """Return whether x₀ (b,) and all columns of A (|Σ|, b, b) are one-hot, and v is zero."""
    rows = torch.cat([A.transpose(-1, -2).flatten(0, 1), start[None]])
    return bool(((rows == 0) | (rows == 1)).all() and (rows.sum(-1) == 1).all() and not v.any())
