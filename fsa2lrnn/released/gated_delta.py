"""Weights of a whole model around gated delta layers: embedding, heads, units, head; everything else is zero.

Gates saturate: β = σ(±512) or 2σ(0), log α = −softplus(∓512) (docs/released.md has from where that is exact).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.released.plan import Plan
from fsa2lrnn.released.stream import FIRES, KEY, LETTER, SATURATED, gates, layout, length, write

_LEAST_SILU = 0.25  # SiLU is above −0.278


@dataclass(frozen=True, eq=False)
class Mixer:
    """One layer's weights, before a model's own order of them; rows are outputs, columns the stream, float64.

    q, k are (n_heads, d_k, H), v and gate (n_heads, d_v, H), alpha and beta (n_heads, H), out (H, n_heads, d_v), and
    taps (n_heads, d_v, w) the convolution of v, whose last tap is the current letter's.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    gate: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    out: np.ndarray
    taps: np.ndarray


def mixer(plan: Plan, number: int, largest_beta: int, kernel: int) -> Mixer:
    """The weights of stage `number`, in a layer whose β is `largest_beta`·σ and that convolves `kernel` letters."""
    where, stage = layout(plan), plan.stages[number]
    H, n, d_k, d_v = where.width, plan.n_heads, plan.d_k, plan.d_v
    letters = slice(0, where.n_letters)
    r = length(plan, number)
    first = sum(len(s.orbits) for s in plan.stages[:number])
    q, k, v, gate = np.zeros((n, d_k, H)), np.zeros((n, d_k, H)), np.zeros((n, d_v, H)), np.zeros((n, d_v, H))
    alpha, beta, out = np.zeros((n, H)), np.zeros((n, H)), np.zeros((H, n, d_v))
    taps = np.zeros((n, d_v, kernel))
    taps[:, :, -1] = 1
    for i, orbit in enumerate(stage.orbits):
        head = orbit.head
        at = np.arange(where.n_letters) if number == 0 else where.symbols[number - 1] + np.arange(len(head.alphas))
        keys = head.keys if number == 0 else head.keys[:1]
        size_k, size_v = head.keys.shape[1], head.values.shape[1]
        values = head.values if (head.values >= 0).all() else _before_silu(head.values)
        q[i, :size_k, letters] = _query(head.query)[:, None] / r
        k[i, :size_k, letters] = KEY * keys.T / r
        v[i, :size_v, at] = values / r
        gate[i, :, letters] = KEY / r
        alpha[i, at] = np.where(head.alphas > 0, -SATURATED, SATURATED)
        beta[i, at] = [_logit(value, largest_beta) for value in head.betas]
        for column, lag in enumerate(head.lags if head.lags is not None else ()):
            taps[i, column] = 0
            taps[i, column, kernel - 1 - lag] = 1
        scale = LETTER / (KEY * math.sqrt(d_v))
        for j in range(size_v):
            out[where.marks[first + i] + j, i, j] = scale
    return Mixer(q, k, v, gate, alpha, beta, out, taps)


def units(plan: Plan, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """gate and up, (n, H), and down, (H, n), of the MLP after stage `number`.

    SiLU(gate·x)·(up·x) is positive for the one unit that fires and exactly 0 for all others.
    """
    where, stage = layout(plan), plan.stages[number]
    gate = gates(plan, number)
    up, down = np.zeros_like(gate), np.zeros_like(gate.T)
    up[:, : where.n_letters] = 1 / length(plan, number, with_marks=True)
    for i, unit in enumerate(stage.units):
        down[where.symbols[number] + unit.target, i] = 2 * LETTER / FIRES
    return gate, up, down


def write_units(mlp: Any, plan: Plan, number: int) -> None:
    """A stage's units into an MLP that computes down(SiLU(gate x)·up x)."""
    gate, up, down = units(plan, number)
    write(mlp.gate_proj.weight, gate)
    write(mlp.up_proj.weight, up)
    write(mlp.down_proj.weight, down)


def _logit(beta: float, largest: int) -> float:
    if beta > largest:
        raise NotExpressible(f"β = {beta:g} is asked for, and this layer reaches {largest}")
    if beta == 0:
        return -SATURATED
    return SATURATED if beta == largest else 0.0


def _query(query: np.ndarray) -> np.ndarray:
    """Numbers whose SiLU points along the query: large ones where it has no negative entries, else small ones."""
    if (query >= 0).all():
        return KEY * query / query.max()
    return _before_silu(_LEAST_SILU * query / np.abs(query).max())


def _before_silu(wanted: np.ndarray) -> np.ndarray:
    """Numbers whose SiLU is what is wanted, from −¼ to ¼; 0 for 0."""
    low, high = np.full(wanted.shape, -1.278), np.full(wanted.shape, 1.0)
    for _ in range(80):  # SiLU rises from −1.278 on
        middle = (low + high) / 2
        below = middle / (1 + np.exp(-middle)) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(wanted == 0, 0.0, low)
