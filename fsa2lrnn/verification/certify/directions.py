"""Directions in which sets are bounded in addition to the coordinates: gradients of margins, and fans in planes."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.checker.margins import ScaledReadout
from fsa2lrnn.checker.nodes import CountedAutomaton, Nodes
from fsa2lrnn.checker.rounding import NORM_EPS
from fsa2lrnn.checker.sets import Tube
from fsa2lrnn.checker.tables import Tables

_SAMPLES = 4_000
_FAN = 8  # directions per half-turn: with twice as many, sets are hardly smaller


def gradients(tables: Tables, target: CountedAutomaton, nodes: Nodes, tube: Tube) -> np.ndarray:
    """Return the gradients of the margins in slow coordinates, float64 (parts, D, H, b), padded with zeros.

    They are those of (expected − wrong logit) · σ, without LayerNorm's σ, at the mean states of random words.
    """
    _, H, b = tube.slow.shape
    weights = tables.weights
    readout = ScaledReadout(weights, tables.format())
    B, beta, W2, b2 = readout.B.mid, readout.beta.mid, readout.W2, readout.b2
    x = _typical(weights, target, nodes, tube.start)  # (F, n)
    n = x.shape[1]
    centred = x - x.mean(-1, keepdims=True)
    sigma = np.sqrt((centred**2).mean(-1, keepdims=True) + NORM_EPS) if readout.has_norm else np.ones((len(x), 1))
    turn = centred / (n * sigma) if readout.has_norm else np.zeros_like(x)
    is_on = x @ B.T + beta * sigma > 0
    rows_of_part: list[list[np.ndarray]] = [[] for _ in tube.directions]
    for q in np.unique(nodes.state[target.answerable[nodes.state]]):
        at_state, y = nodes.state == q, target.expected[q]
        for j in np.flatnonzero(np.arange(len(b2)) != y):
            v = (W2[y] - W2[j]) * is_on[at_state]
            g = v @ B + (v @ beta + b2[y] - b2[j])[:, None] * turn[at_state]
            g = np.einsum("fhi,fhij->fhj", g.reshape(-1, H, b), tube.basis[at_state]) * tube.slow[at_state]
            rows_of_part[tube.part[q]].append(g.mean(0))
    result = np.zeros((len(rows_of_part), max(map(len, rows_of_part)), H, b))
    for part, rows in enumerate(rows_of_part):
        result[part, : len(rows)] = np.reshape(rows, (-1, H, b))
    return result.astype(np.float32).astype(np.float64)


def fans(tube: Tube) -> np.ndarray:
    """Return evenly spaced directions in the plane of each head's first two coordinates, float64 (parts, D, H, b).

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
