"""Write plans into RWKV-7 of the package `rwkv`, whose heads can erase and rewrite a key completely.

LayerNorm and GroupNorm subtract the mean, so every value is written twice, the second time with the opposite sign: the
entries of a stream sum to 0 except for rounding. The FFN's relu(kx)² implements units, of which one fires.

What one step executes: each branch reads x + μ(x₋₁ − x); w = exp(−0.606531·σ(w₀ + lora)); a = σ(a₀ + lora); κ =
k·k_k/‖k·k_k‖; S ← S·diag(w) − (Sκ)(κ∘a)ᵀ + v(k(1 + (a − 1)k_a))ᵀ; out = W_o(GroupNorm(S r)·g). Transition: diag(w) −
κ(a∘κ)ᵀ with w in [0.5452, 1], a in [0, 1], ‖κ‖ ≤ 1: similar to a symmetric matrix, eigenvalues in [−0.4548, 1]. A word
starts from S = 0; convolved: every branch, over two letters (token shift). Saturated, hence exact, gates: σ(−512) = 0
makes w = 1 and keeps; a = σ(±512) erases a one-hot key whole or leaves it. Classes: RWKV_x070_TMix, RWKV_x070.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.declared import ExternalLayer
from fsa2lrnn.extra.huggingface.plan import StagePlan
from fsa2lrnn.extra.huggingface.rwkv_package import RwkvPackage
from fsa2lrnn.extra.huggingface.stream import FIRES, LETTER, SATURATED, gates, layout, length, stage_parts

LAYER = ExternalLayer("rwkv-7", tried="rwkv 0.8.32")
CODE = RwkvPackage()
_HELD = 2.0**14  # an entry of S, so large that GroupNorm's 64e-5 is less than half an ulp of the mean square
_BRANCHES = "rwkvag"
plan = partial(construct, has_reflections=False, longest_lag=1)


@dataclass(frozen=True)
class _Sizes:
    H: int
    N: int
    turned: int


def build(plan: StagePlan, dtype: Any) -> dict[str, torch.Tensor]:
    """Return the weights of `RWKV_x070` by name, one layer per stage. Raises `NotExpressible` for unsuitable heads."""
    where, size = layout(plan), _sizes(plan)
    H, n_tokens = size.H, where.n_letters + len(plan.outputs)
    z: dict[str, np.ndarray] = {f"ln_out.{part}": np.full(H, float(part == "weight")) for part in ("weight", "bias")}
    z["emb.weight"], z["head.weight"] = np.zeros((n_tokens, H)), np.zeros((n_tokens, H))
    letters = np.arange(where.n_letters)
    z["emb.weight"][letters, letters] = LETTER
    z["emb.weight"][letters, size.turned] = -LETTER
    z["blocks.0.ln0.weight"] = np.full(H, LETTER / np.sqrt(H / 2))  # letters are that long again after it
    z["blocks.0.ln0.bias"] = np.zeros(H)
    for j in range(len(plan.outputs)):
        z["head.weight"][where.n_letters + j, where.symbols[-1] + j] = 1
    for number in range(len(plan.stages)):
        block = {**_time_mix(plan, number, size), **_channel_mix(plan, number, size)}
        z |= {f"blocks.{number}.{name}": values for name, values in block.items()}
    return {name: torch.from_numpy(values).to(dtype) for name, values in z.items()}


def _sizes(plan: StagePlan) -> _Sizes:
    where, N = layout(plan), 8
    while plan.d_v + 1 > N:
        N *= 4
    H = 2 * where.width
    while max(plan.n_heads, 2) * N > H:  # the package squeezes tensors, so that one head would remove an axis
        H *= 4
    items = 1 + sum(len(stage.orbits) + 1 for stage in plan.stages)
    return _Sizes(H, N, H - items)


def _time_mix(plan: StagePlan, number: int, size: _Sizes) -> dict[str, np.ndarray]:
    where, stage, H, N = layout(plan), plan.stages[number], size.H, size.N
    heads, letters = H // N, slice(0, where.n_letters)
    r = length(plan, number) * np.sqrt(H / (2 * where.width))
    lags = {int(lag) for orbit in stage.orbits if orbit.head.lags is not None for lag in orbit.head.lags}
    if lags and lags != {1}:
        raise NotExpressible(f"rwkv-7 looks one letter back, and not {sorted(lags)}: give another plan")
    if lags and any(orbit.head.lags is None for orbit in stage.orbits):
        raise NotExpressible("a layer of rwkv-7 shifts all its heads or none: give another plan")
    key, value, out = np.zeros((heads, N, H)), np.zeros((heads, N, H)), np.zeros((H, heads, N))
    first_a, spread = np.zeros((H, heads)), np.repeat(np.eye(heads), N, axis=1)
    symbols, first = stage_parts(plan, number)
    for i, orbit in enumerate(stage.orbits):
        head, width = orbit.head, orbit.head.values.shape[1]
        at = symbols[: len(head.alphas)]
        keeps, writes = head.keeps(), head.writes()
        key[i, 0, letters] = 1 / r
        written = np.where(writes[:, None], head.values, 0) / head.values.max() * _HELD / r
        value[i, :width, at] = written
        value[i, -1, at] = -written.sum(axis=1)  # GroupNorm subtracts the mean, which this entry makes 0
        first_a[at, i] = np.where(keeps, -SATURATED, SATURATED)
        entries = np.arange(width)
        out[where.marks[first + i] + entries, i, entries] = out[size.turned + 1 + first + i, i, -1] = LETTER / np.sqrt(
            N / 2
        )
    zeros = np.zeros((1, 1, H))
    return {
        **{f"ln1.{part}": np.full(H, float(part == "weight")) for part in ("weight", "bias")},
        **{f"att.x_{branch}": np.full((1, 1, H), float(bool(lags) and branch == "v")) for branch in _BRANCHES},
        "att.w0": zeros - SATURATED, "att.w1": np.zeros((H, 2)), "att.w2": np.zeros((2, H)),
        "att.a0": zeros, "att.a1": first_a, "att.a2": spread,
        "att.v0": zeros - SATURATED, "att.v1": np.zeros((H, 2)), "att.v2": np.zeros((2, H)),
        "att.g1": np.zeros((H, 2)), "att.g2": np.ones((2, H)),
        "att.k_k": zeros + 1, "att.k_a": zeros + 1, "att.r_k": np.zeros((heads, N)),
        "att.key.weight": key.reshape(H, H), "att.receptance.weight": key.reshape(H, H),
        "att.value.weight": value.reshape(H, H), "att.output.weight": out.reshape(H, H),
        "att.ln_x.weight": np.ones(H), "att.ln_x.bias": np.zeros(H),
    }  # fmt: skip


def _channel_mix(plan: StagePlan, number: int, size: _Sizes) -> dict[str, np.ndarray]:
    where, stage, H = layout(plan), plan.stages[number], size.H
    n = max(len(stage.units), 2)
    key, value = np.zeros((n, H)), np.zeros((H, n))
    key[: len(stage.units), : where.width] = gates(plan, number) / np.sqrt(H / (2 * where.width))
    turned = size.turned + 1 + sum(len(s.orbits) for s in plan.stages) + number
    for i, unit in enumerate(stage.units):
        value[where.symbols[number] + unit.target, i] = LETTER / (FIRES / 2) ** 2
        value[turned, i] = -LETTER / (FIRES / 2) ** 2
    return {
        **{f"ln2.{part}": np.full(H, float(part == "weight")) for part in ("weight", "bias")},
        "ffn.x_k": np.zeros((1, 1, H)), "ffn.key.weight": key, "ffn.value.weight": value,
    }  # fmt: skip
