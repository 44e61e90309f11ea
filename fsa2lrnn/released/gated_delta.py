"""Weights of a whole model around gated delta layers: embedding, heads, units, head; everything else is zero.

The stream has a coordinate a letter, one for each entry of a mark, and one a symbol that units write. A letter is 1,024
in its coordinate and the width H is a power of 4, so that RMSNorm gives exactly √H: its 1e-6 is less than half an ulp.
Gates saturate: β = σ(±512) or 2σ(0), log α = −softplus(∓512) (docs/released.md has from where that is exact).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.released.plan import Orbit, Plan, Unit

LETTER = 1024.0  # a letter in the stream
KEY = 64.0  # an entry of 1 in a key before it is normalised
MAX_WIDTH = 4_096
_SATURATED = 512.0
_FIRES = 2_048.0  # a unit's gate, twice over
_LEAST_SILU = 0.25  # SiLU is above −0.278


@dataclass(frozen=True)
class Layout:
    """Where in the stream things are: the first coordinate of each orbit's mark and of each stage's symbols."""

    n_letters: int
    marks: tuple[int, ...]
    symbols: tuple[int, ...]
    width: int


def layout(plan: Plan) -> Layout:
    """The stream's coordinates. Raises `NotExpressible` beyond `MAX_WIDTH`."""
    n = used = len(plan.machine.alphabet)
    marks, symbols = list[int](), list[int]()
    for stage in plan.stages:
        for orbit in stage.orbits:
            marks.append(used)
            used += orbit.marks.shape[1]
        symbols.append(used)
        used += stage.n_symbols
    width = 64
    while width < used:
        width *= 4
    if width > MAX_WIDTH:
        raise NotExpressible(
            f"{n:,} letters, {sum(o.marks.shape[1] for s in plan.stages for o in s.orbits):,} coordinates of marks and "
            f"{sum(s.n_symbols for s in plan.stages):,} symbols need a hidden size of {used:,}, and {MAX_WIDTH:,} is "
            "the largest that is written: give a smaller alphabet or machine"
        )
    return Layout(n, tuple(marks), tuple(symbols), width)


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
    seen = _seen(plan, number)
    r = math.sqrt(H / (1 + seen))  # a letter after RMSNorm; exactly √H in the first layer
    first = sum(len(s.orbits) for s in plan.stages[:number])
    q, k, v, gate = np.zeros((n, d_k, H)), np.zeros((n, d_k, H)), np.zeros((n, d_v, H)), np.zeros((n, d_v, H))
    alpha, beta, out = np.zeros((n, H)), np.zeros((n, H)), np.zeros((H, n, d_v))
    taps = np.zeros((n, d_v, kernel))
    taps[:, :, -1] = 1
    for i, orbit in enumerate(stage.orbits):
        head = orbit.head
        at = np.arange(where.n_letters) if number == 0 else where.symbols[number - 1] + np.arange(len(head.alphas))
        keys, values = (head.keys, head.values) if number == 0 else (head.keys[:1], head.values[:1])
        size_k, size_v = head.keys.shape[1], head.values.shape[1]
        q[i, :size_k, letters] = _before_silu(head.query) / r
        k[i, :size_k, letters] = KEY * keys.T / r
        v[i, :size_v, letters] = values.T / r
        gate[i, :, letters] = KEY / r
        alpha[i, at] = np.where(head.alphas > 0, -_SATURATED, _SATURATED)
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
    orbits = [orbit for s in plan.stages[: number + 1] for orbit in s.orbits]
    r = math.sqrt(where.width / (1 + _seen(plan, number) + len(stage.orbits)))
    gate = np.zeros((len(stage.units), where.width))
    up, down = np.zeros_like(gate), np.zeros_like(gate.T)
    for i, unit in enumerate(stage.units):
        gate[i] = _FIRES / r * _match(unit, orbits, where)
        up[i, : where.n_letters] = 1 / r
        down[where.symbols[number] + unit.target, i] = 2 * LETTER / _FIRES
    return gate, up, down


def write(parameter: torch.Tensor, values: np.ndarray) -> None:
    """Put numbers into the first rows and columns of a parameter."""
    with torch.no_grad():
        parameter[tuple(slice(0, size) for size in values.shape)] = torch.from_numpy(values).to(parameter.dtype)


def blank(model: Any) -> None:
    """Every parameter 0: what is not written afterwards adds nothing to the stream."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()


def write_around(model: Any, plan: Plan) -> None:
    """Letters into the embedding, and the last stage's symbols read off by the head."""
    where = layout(plan)
    with torch.no_grad():
        for a in range(where.n_letters):
            model.model.embed_tokens.weight[a, a] = LETTER
        for j in range(len(plan.outputs)):
            model.lm_head.weight[where.n_letters + j, where.symbols[-1] + j] = 1


def write_units(mlp: Any, plan: Plan, number: int) -> None:
    """A stage's units into an MLP that computes down(SiLU(gate x)·up x)."""
    gate, up, down = units(plan, number)
    write(mlp.gate_proj.weight, gate)
    write(mlp.up_proj.weight, up)
    write(mlp.down_proj.weight, down)


def _match(unit: Unit, orbits: list[Orbit], where: Layout) -> np.ndarray:
    """½ plus terms that are 0 where the unit's letter and marks are met and at most −1 each where not, of a stream that
    is divided by `LETTER`."""
    row, constant = np.zeros(where.width), 0.5
    if unit.letter is not None:
        row[unit.letter] += 1
        constant -= 1
    for orbit, mark, at in zip(orbits, unit.marks, where.marks, strict=False):
        if mark is None:
            continue
        size = orbit.marks.shape[1]
        if orbit.marks[mark].any():
            row[at : at + size] += orbit.marks[mark] / orbit.gap
            constant -= 1 / orbit.gap
        else:
            row[at : at + size] -= orbit.head.towards / orbit.gap
    row[: where.n_letters] += constant
    return row


def _seen(plan: Plan, number: int) -> int:
    """How many marks and symbols, each as long as a letter, the stream may hold before stage `number`."""
    return sum(len(stage.orbits) + 1 for stage in plan.stages[:number])


def _logit(beta: float, largest: int) -> float:
    if beta > largest:
        raise NotExpressible(f"β = {beta:g} is asked for, and this layer reaches {largest}")
    if beta == 0:
        return -_SATURATED
    return _SATURATED if beta == largest else 0.0


def _before_silu(query: np.ndarray) -> np.ndarray:
    """Numbers whose SiLU points along the query: large ones where it has no negative entries, else small ones."""
    if (query >= 0).all():
        return (KEY * query / query.max())[:, None]
    wanted = _LEAST_SILU * query / np.abs(query).max()
    low, high = np.full(len(wanted), -1.278), np.full(len(wanted), 1.0)
    for _ in range(80):  # SiLU rises from −1.278 on
        middle = (low + high) / 2
        below = middle / (1 + np.exp(-middle)) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low[:, None]
