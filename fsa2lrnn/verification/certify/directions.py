"""Directions to bound in addition to the coordinates: those in which a wrong output is closest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsa2lrnn.checker.margins import ScaledReadout
from fsa2lrnn.checker.nodes import CountedAutomaton, Nodes
from fsa2lrnn.checker.rounding import NORM_EPS
from fsa2lrnn.checker.sets import Tube
from fsa2lrnn.checker.tables import Tables

_SAMPLES = 4_000
_FAN = 8  # directions per half-turn: with twice as many, sets are hardly smaller


def gradients(tables: Tables, target: CountedAutomaton, nodes: Nodes, tube: Tube) -> np.ndarray:
    """Return the margins' gradients for each part, in slow coordinates: (parts, D, H, b), padded with zeros."""
    at = _typical_readout(tables, target, nodes, tube)
    (B, beta, W2, b2), x = (at.scaled.B.mid, at.scaled.beta.mid, at.scaled.W2, at.scaled.b2), at.x
    turn = (x - x.mean(-1, keepdims=True)) / (x.shape[1] * at.sigma) if at.scaled.has_norm else np.zeros_like(x)
    rows_of_part: list[list[np.ndarray]] = [[] for _ in tube.directions]
    for q in np.unique(nodes.state[target.answerable[nodes.state]]):
        at_state, y = nodes.state == q, target.expected[q]
        for j in np.flatnonzero(np.arange(len(b2)) != y):
            v = (W2[y] - W2[j]) * (at.hidden[at_state] > 0)
            g = v @ B + (v @ beta + b2[y] - b2[j])[:, None] * turn[at_state]
            rows_of_part[tube.part[q]].append(_in_slow(g[:, None], tube, at_state)[0])
    return _padded(rows_of_part, tube)


def bending_units(tables: Tables, target: CountedAutomaton, nodes: Nodes, tube: Tube, count: int) -> np.ndarray:
    """Return the `count` hidden units of each machine state that are closest to their bends, as `gradients` does."""
    at = _typical_readout(tables, target, nodes, tube)
    rows_of_part: list[list[np.ndarray]] = [[] for _ in tube.directions]
    for q in np.unique(nodes.state[target.answerable[nodes.state]]):
        at_state = nodes.state == q
        rows = _in_slow(at.scaled.B.mid + np.zeros((at_state.sum(), 1, 1)), tube, at_state)
        size = np.maximum(np.linalg.norm(rows.reshape(len(rows), -1), axis=1), 1e-12)
        nearest = np.argsort(np.abs(at.hidden[at_state].mean(0)) / size, kind="stable")[:count]
        rows_of_part[tube.part[q]] += list(rows[nearest])
    return _padded(rows_of_part, tube)


class _Readout(NamedTuple):
    """The read-out at the mean state of random words in each node."""

    scaled: ScaledReadout
    x: np.ndarray  # (F, n)
    sigma: np.ndarray  # (F, 1)
    hidden: np.ndarray  # (F, m), before the ReLU, times σ


def _typical_readout(tables: Tables, target: CountedAutomaton, nodes: Nodes, tube: Tube) -> _Readout:
    scaled = ScaledReadout(tables.weights, tables.format())
    x = _typical(tables.weights, target, nodes, tube.start)
    sigma = np.sqrt(x.var(-1, keepdims=True) + NORM_EPS) if scaled.has_norm else np.ones((len(x), 1))
    return _Readout(scaled, x, sigma, x @ scaled.B.mid.T + scaled.beta.mid * sigma)


def _in_slow(rows: np.ndarray, tube: Tube, some: np.ndarray) -> np.ndarray:
    """Return the mean over some f of rows (some, D, n) in the slow coordinates of each: (D, H, b)."""
    _, H, b = tube.slow.shape
    shaped = rows.reshape(*rows.shape[:2], H, b)
    return (np.einsum("fdhi,fhij->fdhj", shaped, tube.basis[some]) * tube.slow[some][:, None]).mean(0)


def _padded(rows_of_part: list[list[np.ndarray]], tube: Tube) -> np.ndarray:
    result = np.zeros((len(rows_of_part), max(map(len, rows_of_part)), *tube.slow.shape[1:]))
    for part, rows in enumerate(rows_of_part):
        result[part, : len(rows)] = np.reshape(rows, (-1, *result.shape[2:]))
    return result.astype(np.float32).astype(np.float64)


def fans(tube: Tube) -> np.ndarray:
    """Return evenly spaced directions in the plane of each head's first two coordinates: (parts, D, H, b).

    Both coordinates must be slow. A letter rotates and stretches such a plane, and intervals grow at every rotation.
    """
    parts, _, H, b = tube.directions.shape
    rows: list[np.ndarray] = []
    for h in np.flatnonzero((tube.slow.sum(-1) >= 2).any(0)):
        for angle in np.arange(_FAN) * np.pi / _FAN:
            row = np.zeros((parts, H, b))
            row[:, h, :2] = np.round([np.cos(angle), np.sin(angle)], 6)  # includes the coordinate axes
            rows.append(row)
    stacked = np.stack(rows, 1) if rows else np.zeros((parts, 0, H, b))
    return stacked.astype(np.float32).astype(np.float64)


def _typical(weights: dict[str, np.ndarray], target: CountedAutomaton, nodes: Nodes, length: int) -> np.ndarray:
    """Return the mean state (F, n) of random words in each node, zero for nodes that no word reaches."""
    A, v = weights["A"], weights["v"]
    rng, n_memories = np.random.default_rng(0), nodes.n_letters**nodes.memory
    state, letters = np.full(_SAMPLES, target.start), np.zeros(_SAMPLES, np.int64)
    x = np.broadcast_to(weights["x0"], (_SAMPLES, *weights["x0"].shape))
    for _ in range(length):
        a = rng.integers(nodes.n_letters, size=_SAMPLES)
        x = (A[a] @ x[..., None])[..., 0] + v[a]
        state, letters = target.delta[a, state], (letters * nodes.n_letters + a) % n_memories
    f, _ = nodes.numbers(state, letters)
    here = f >= 0
    total = np.zeros((len(nodes.state), x[0].size))
    np.add.at(total, f[here], x[here].reshape(-1, x[0].size))
    return total / np.maximum(np.bincount(f[here], minlength=len(total)), 1)[:, None]
