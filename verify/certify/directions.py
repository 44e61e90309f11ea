"""Directions to bound beside the coordinates: those in which a wrong output would come soonest."""

from __future__ import annotations

import numpy as np

from fsa2lrnn.lrnn.switched import EPS
from verify.certificate import Tube
from verify.check.nodes import Nodes
from verify.targets import DOES_NOT_COUNT, Target

_SAMPLES = 4_000


def gradients(weights: dict[str, np.ndarray], goal: Target, nodes: Nodes, tube: Tube) -> np.ndarray:
    """For each part, what margins at its states grow along, in slow coordinates: (parts, D, H, b), zeros to fill up.

    Args:
        weights: of the model, in float64 (`verify.check.rounding.numbers`).
    """
    _, H, b = tube.slow.shape
    readout = _without_norm(weights)
    x = _typical(weights, goal, nodes, tube.start)  # (F, n)
    n = x.shape[1]
    centred = x - x.mean(-1, keepdims=True)
    sigma = np.sqrt((centred**2).mean(-1, keepdims=True) + EPS) if "norm_weight" in weights else np.ones((len(x), 1))
    turn = centred / (n * sigma) if "norm_weight" in weights else np.zeros_like(x)
    is_on = x @ readout["B"].T + readout["beta"] * sigma > 0
    found: list[list[np.ndarray]] = [[] for _ in tube.directions]
    for q in np.unique(nodes.state[goal.wanted[nodes.state] != DOES_NOT_COUNT]):
        some, y = nodes.state == q, goal.wanted[q]
        for j in np.flatnonzero(np.arange(len(readout["b2"])) != y):
            v = (readout["W2"][y] - readout["W2"][j]) * is_on[some]
            g = v @ readout["B"] + (v @ readout["beta"] + readout["b2"][y] - readout["b2"][j])[:, None] * turn[some]
            g = np.einsum("fhi,fhij->fhj", g.reshape(-1, H, b), tube.basis[some]) * tube.slow[some]
            found[tube.part[q]].append(g.mean(0))
    result = np.zeros((len(found), max(map(len, found)), H, b))
    for part, rows in enumerate(found):
        result[part, : len(rows)] = np.reshape(rows, (-1, H, b))
    return result.astype(np.float32).astype(np.float64)


def _without_norm(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """W2, b2, B and beta of logits W2 relu(B x + β σ) + b2 σ, LayerNorm taken out."""
    rows, beta = weights["W1"], weights["b1"]
    if "norm_weight" in weights:
        beta = beta + rows @ weights["norm_bias"]
        rows = rows * weights["norm_weight"]
        rows = rows - rows.mean(-1, keepdims=True)
    return {"B": rows, "beta": beta, "W2": weights["W2"], "b2": weights["b2"]}


def _typical(weights: dict[str, np.ndarray], goal: Target, nodes: Nodes, length: int) -> np.ndarray:
    """The mean state of random words in each node, (F, n); zero where none led."""
    A, v = weights["A"], weights["v"]
    rng, base = np.random.default_rng(0), nodes.n_letters**nodes.memory // nodes.older
    state, letters = np.full(_SAMPLES, goal.start), np.zeros(_SAMPLES, np.int64)
    x = np.broadcast_to(weights["x0"], (_SAMPLES, *weights["x0"].shape))
    for _ in range(length):
        a = rng.integers(nodes.n_letters, size=_SAMPLES)
        x = (A[a] @ x[..., None])[..., 0] + v[a]
        state, letters = goal.delta[a, state], (letters * nodes.n_letters + a) % base
    code = state * base + letters
    f = np.asarray(np.searchsorted(nodes.codes[:-1], code), np.int64)
    here = nodes.codes[f] == code
    total = np.zeros((len(nodes.codes), x[0].size))
    np.add.at(total, f[here], x[here].reshape(-1, x[0].size))
    return total / np.maximum(np.bincount(f[here], minlength=len(total)), 1)[:, None]
