"""From models and machines to the plain facts that a report shows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.report.align import Alignment
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.facts import FAR, NEAR, HeadAutomaton, LayerInternals
from fsa2lrnn.extra.report.heads import heads_of
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.lrnn.switched import SwitchedAffine, switched
from fsa2lrnn.verification.specification import Specification, specification_of

_NEAR_WORDS, _NEAR_LENGTH = 12, 24
_FAR_WORDS, _FAR_LENGTH, _FAR_SHOWN = 12, 500, 8
_HEAD_STATES = 12  # of automata of heads that are drawn
_RIDGE = 1e-3  # of the variance within states: no direction counts as without any


def machine_facts(machine: MooreMachine) -> DrawnMachine:
    """The minimal machine as text, its states labelled by their outputs where they have no labels."""
    minimal = machine.minimise()
    return DrawnMachine.of(minimal.delta.tolist(), minimal.outputs, minimal.start, minimal.alphabet, minimal.labels)


def inside(model: LRNN, machine: MooreMachine, found: Alignment, like: LayerInternals | None = None) -> LayerInternals:
    """A model of one layer over letters from within; `found` is how it stands to the machine.

    With `like`, the plane is that in which the machine's states lie as they do there, as nearly as it can be had.

    Raises `UnsupportedFormat` for another model.
    """
    tables = switched(model).to(torch.float64)
    eigenvalues = [list(letter) for letter in zip(*(head.eigenvalues for head in found.heads), strict=True)]
    blocks = np.round(tables.A.numpy(), 4).tolist()
    rounded = np.round(np.array(eigenvalues), 8).tolist()
    points = plane(tables, specification_of(model, machine), like.points if like else None)
    automata = [HeadAutomaton(h, head.machine) for h, head in heads_of(model, _HEAD_STATES).items()]
    return LayerInternals(rounded, blocks, points, found.carrying, automata)


def plane(tables: SwitchedAffine, goal: Specification, like: list[list[float]] | None = None) -> list[list[float]]:
    """States of the network along random words in a plane, [x, y, state, NEAR or FAR].

    The plane is Fisher's (1936): its two directions part the machine's states most, measured by the spread within them
    over the first letters. With `like`, points of another network, it is the plane in which the centres of the
    machine's states come nearest to theirs. FAR are the last of 500 letters.
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
    """The mean (d,), and two directions (d, 2) scaled so that the centres' largest coordinate is 1."""
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
    """The lines of one model of a document of `fsa2lrnn.extra.report.compare`, as they come back from JSON."""
    return json.loads(json.dumps(document["models"][name]["lengths"]))
