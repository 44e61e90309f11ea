"""Write plans into Mamba-2, `transformers.models.mamba2`, whose heads each keep or forget their whole state.

Layers have no MLP. So a stage of a plan is two layers: one for the heads, and one for the units, whose state stays 0
and which passes x through D.

What one step executes: x, B, C = SiLU(conv4(Wu)); Δ = softplus(W_Δ u + b); h ← exp(−Δ·exp(A_log))·h + Δ·x·Bᵀ; out = W_o
RMSNorm((hC + Dx)·SiLU(W_z u)). Transition: a number a head, exp(−Δ·exp(A_log)) in [0, 1], ends included; writing needs
Δ > 0. A word starts from h = 0; convolved: x, B, C, over 4 letters; Δ and the gate read the current letter. Saturated,
hence exact, gates: softplus(−512) = 0 keeps and writes nothing, exp(−softplus(512)) = 0 forgets; SiLU(x) = x from 17
on. Classes: Mamba2Mixer, Mamba2ForCausalLM.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.declared import ExternalLayer
from fsa2lrnn.extra.huggingface.huggingface import HuggingFace
from fsa2lrnn.extra.huggingface.plan import StagePlan
from fsa2lrnn.extra.huggingface.stream import (
    KEY,
    LETTER,
    SATURATED,
    gates,
    layout,
    length,
    mamba_model,
    stage_parts,
    write,
)

LAYER = ExternalLayer("mamba-2", tried="transformers 5.23.0", layers_a_stage=2)
CODE = HuggingFace("Mamba2ForCausalLM", stack="backbone", mixer="mixer", cache_name="cache_params")
plan = partial(construct, has_reflections=False)


def build(plan: StagePlan, dtype: Any) -> Any:
    """Return `Mamba2ForCausalLM` with two layers per stage.

    Raises `NotExpressible` for a plan whose heads do more than keep, replace or forget their state.
    """
    width = layout(plan).width
    most = max(len(stage.units) for stage in plan.stages)
    d = 1 << (plan.d_v - 1).bit_length()
    heads = max(plan.n_heads, -(-most // d))
    heads = -(-heads * d // width) * max(width // d, 1) if d < width else heads
    model = mamba_model(
        "mamba2", "Mamba2", plan, dtype, _write_heads, _write_units, expand=heads * d // width, num_heads=heads,
        head_dim=d, n_groups=heads, chunk_size=64,  # each head is normalised by itself
    )  # fmt: skip
    for block in model.backbone.layers:
        block.mixer.norm.weight.data.fill_(1)
    return model


def _write_heads(mixer: Any, plan: StagePlan, number: int) -> None:
    where, stage = layout(plan), plan.stages[number]
    r, letters = length(plan, number), slice(0, where.n_letters)
    n, d, H = mixer.num_heads, mixer.head_dim, where.width
    gate, x, B, C, dt = np.zeros((n, d, H)), np.zeros((n, d, H)), np.zeros((n, H)), np.zeros((n, H)), np.zeros((n, H))
    out, (symbols, first) = np.zeros((H, n, d)), stage_parts(plan, number)
    for i, orbit in enumerate(stage.orbits):
        head, size = orbit.head, orbit.head.values.shape[1]
        at, keeps = symbols[: len(head.alphas)], head.keeps()
        x[i, :size, at] = np.where(head.writes()[:, None], head.values, 0) / r
        gate[i, :, letters] = B[i, letters] = C[i, letters] = KEY / r
        dt[i, at] = np.where(keeps, -SATURATED, SATURATED)
        for column, lag in enumerate(head.lags if head.lags is not None else ()):
            mixer.conv1d.weight.data[i * d + column] = 0
            mixer.conv1d.weight.data[i * d + column, 0, -1 - lag] = 1
        out[where.marks[first + i] + np.arange(size), i, np.arange(size)] = LETTER / np.sqrt(d)
    write(mixer.in_proj.weight, np.concatenate([gate.reshape(-1, H), x.reshape(-1, H), B, C, dt]))
    write(mixer.out_proj.weight, out.reshape(H, -1))


def _write_units(mixer: Any, plan: StagePlan, number: int) -> None:
    """Write the units of a stage as gates of D·x, with the state 0; the norm turns the firing unit into a symbol."""
    where, stage = layout(plan), plan.stages[number]
    n, d, H = mixer.num_heads, mixer.head_dim, where.width
    r, letters = length(plan, number, with_marks=True), slice(0, where.n_letters)
    gate, x, kept, out = np.zeros((n * d, H)), np.zeros((n * d, H)), np.zeros((3 * n, H)), np.zeros((H, n * d))
    gate[: len(stage.units)] = gates(plan, number)
    x[: len(stage.units), letters] = KEY / r
    kept[2 * n :, letters] = -SATURATED
    for i, unit in enumerate(stage.units):
        out[where.symbols[number] + unit.target, i] = LETTER / np.sqrt(d)
    mixer.D.data.fill_(1)
    write(mixer.in_proj.weight, np.concatenate([gate, x, kept]))
    write(mixer.out_proj.weight, out)
