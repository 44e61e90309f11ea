"""Find the plane in which the states of a network are best told apart by the automaton's states."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.verification.specification import Specification

_WORDS, _LENGTH, _SHOWN = 16, 24, 160  # number and length of the words for a plane, and the points shown in it
_DIMENSIONS = 2_000  # the most entries of a state for which a plane is computed
_RIDGE = 1e-3  # the part of the variance within states that is added to each direction, so that none has zero variance


def plane(model: LRNN, goal: Specification, like: list[list[float]] | None) -> dict[str, Any] | None:
    """Return the plane that best separates the machine's states along random words, or None.

    It is a JSON object with the projection and points [x, y, state]. With `like`, points of another model, it is
    the plane in which the states lie most similarly (`_fisher`). The result is None for a model of index tables, for
    states of more than 2,000 entries or not finite, and if the plane separates less than half of the machine's states.
    """
    if model.config.reads_letters:
        return None
    tokens = _lively_words(goal)
    state, rows = model.initial_state(_WORDS), []
    with torch.no_grad():
        for letters in torch.from_numpy(tokens).split(1, dim=1):
            _, state = model.advance(letters, state)
            rows.append(torch.cat([layer.x.flatten(1) for layer in state], dim=1))
    x = torch.stack(rows, dim=1).double().flatten(0, 1).numpy()  # (B·T, d)
    if x.shape[1] > _DIMENSIONS or not np.isfinite(x).all():
        return None
    q = goal.path(tokens).ravel()
    mean, directions = _fisher(x, q, like)
    points = np.round((x - mean) @ directions, 3)
    seen = np.unique(q)
    centres = np.stack([points[q == state].mean(0) for state in seen])
    if 2 * len(np.unique(np.round(10 * centres), axis=0)) < len(seen):
        return None  # the plane separates too few states
    points = points[:_SHOWN]
    listed = [[float(a), float(b), int(state)] for (a, b), state in zip(points, q, strict=False)]
    return {"mean": mean.tolist(), "directions": directions.T.tolist(), "points": listed}


def _lively_words(goal: Specification) -> np.ndarray:
    """Return random words, int64 (16, 24), that avoid sinks if possible, except for one word in eight."""
    rng, words = np.random.default_rng(0), np.empty((_WORDS, _LENGTH), np.int64)
    inside = ~sinks(goal.delta)
    for i, word in enumerate(words):
        q = goal.start
        for k in range(_LENGTH):
            onward = np.flatnonzero(inside[goal.delta[:, q]])
            is_free = i % 8 == 0 or not len(onward)
            word[k] = rng.integers(len(goal.delta)) if is_free else rng.choice(onward)
            q = goal.delta[word[k], q]
    return words


def sinks(delta: np.ndarray) -> np.ndarray:
    """Return which states are sinks: table (|Σ|, n) -> bool (n,)."""
    return (delta == np.arange(delta.shape[1])).all(0)


def _fisher(x: np.ndarray, q: np.ndarray, like: list[list[float]] | None) -> tuple[np.ndarray, np.ndarray]:
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
    near = [point[:2] for point in points if point[2] == state]
    return np.mean(near, axis=0) if near else np.zeros(2)
