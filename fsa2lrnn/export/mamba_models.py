"""Write plans into Mamba and Mamba-2 of transformers, whose channels or heads each keep or forget a state.

Layers have no MLP. So a stage of a plan is two layers: one for the heads, and one for the units, whose state stays 0
and which passes x through D.

Mamba-2. What one step executes: x, B, C = SiLU(conv4(Wu)); Δ = softplus(W_Δ u + b); h ← exp(−Δ·exp(A_log))·h +
Δ·x·Bᵀ; out = W_o RMSNorm((hC + Dx)·SiLU(W_z u)). Transition: a number a head, exp(−Δ·exp(A_log)) in [0, 1], ends
included; writing needs Δ > 0. A word starts from h = 0; convolved: x, B, C, over 4 letters; Δ and the gate read the
current letter. Saturated, hence exact, gates: softplus(−512) = 0 keeps and writes nothing, exp(−softplus(512)) = 0
forgets; SiLU(x) = x from 17 on. Classes: Mamba2Mixer, Mamba2ForCausalLM.

Mamba. There are two differences from Mamba-2. Δ depends on convolved channels, so some channels hold the current
symbols for it to read. And no norm follows the state: the size of a head's output is that of its input, a product of
five numbers of the stream. So each head writes one more coordinate if its other outputs are zero, which makes the
stream's norm the same for all states, and a unit is the difference of two ramps, which is constant outside an
interval and so does not propagate errors.

What one step executes: x = SiLU(conv4(W_x u)); Δ = softplus(W_Δ W_r x + b), B = W_B x, C = W_C x; h ←
exp(−Δ∘exp(A_log))∘h + Δ∘x Bᵀ; out = W_o((hC + D∘x)∘SiLU(W_z u)). Transition: diagonal, exp(−Δ∘exp(A_log)) in [0, 1],
ends included; a channel that writes has Δ > 0. A word starts from h = 0; convolved: x, over 4 letters, and Δ, B, C,
which are read from it; the gate reads the current letter. Saturated, hence exact, gates: softplus(−512) = 0 keeps and
writes nothing, exp(−softplus(512)) = 0 forgets; SiLU(x) = x from 17 on. Classes: MambaMixer, MambaForCausalLM.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.export.constructions import construct
from fsa2lrnn.export.huggingface import HuggingFace
from fsa2lrnn.export.packages import Target
from fsa2lrnn.export.plan import UNIT, Orbit, StagePlan
from fsa2lrnn.export.stream import (
    FIRES,
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

_HELD = SATURATED * UNIT  # the value of h after a write: Δ·B·x with B = 1
_TRIED = "transformers 5.23.0"
_plan = partial(construct, has_reflections=False)


def build_mamba(plan: StagePlan, dtype: torch.dtype) -> Any:
    """Return `MambaForCausalLM` with two layers per stage.

    Raises `NotExpressible` for a plan whose heads do more than keep or replace a state with at most one entry of 64.
    """
    plan = _completed(plan)
    channels = max(max(2 * len(stage.units), _n_channels(plan, i)) for i, stage in enumerate(plan.stages))
    return mamba_model(
        "mamba", "Mamba", plan, dtype, _write_mamba_heads, _write_mamba_units,
        expand=-(-channels // layout(plan).width), time_step_rank=plan.n_heads,
    )  # fmt: skip


def _completed(plan: StagePlan) -> StagePlan:
    """Return the plan with one more coordinate in each mark, which is 1 exactly if the others are 0.

    So every mark is one-hot, and its norm does not depend on the state.
    """
    stages = []
    for stage in plan.stages:
        orbits = []
        for orbit in stage.orbits:
            head, marks = orbit.head, orbit.marks
            head.keeps()
            if not np.isin(head.values, (0, UNIT)).all() or not np.isin(marks, (0, 1)).all() or marks.sum(1).max() > 1:
                raise NotExpressible("this layer's heads hold one value of 64 at a time: give a plan of registers")
            rest = 1 - marks.sum(axis=1, keepdims=True)
            orbits.append(Orbit(head, orbit.states, orbit.table, np.concatenate([marks, rest], axis=1)))
        stages.append(replace(stage, orbits=tuple(orbits)))
    return replace(plan, stages=tuple(stages))


def _n_channels(plan: StagePlan, number: int) -> int:
    values = sum(orbit.head.values.shape[1] for orbit in plan.stages[number].orbits)
    return values + len(stage_parts(plan, number)[0]) + 1


def _write_mamba_heads(mixer: Any, plan: StagePlan, number: int) -> None:
    """Write the heads of stage `number` into a mixer of Mamba: one channel per entry of a head's value.

    The gate Δ of a symbol saturates: exp(ΔA) is 1 for a symbol that keeps the state and 0 for one that replaces it. The
    last channel is always 1; it supplies B and C.
    """
    where, stage, (at, first) = layout(plan), plan.stages[number], stage_parts(plan, number)
    n, H, rank = _n_channels(plan, number), where.width, plan.n_heads
    r, letters, always = length(plan, number), slice(0, where.n_letters), n - 1
    gate, x, taps = np.zeros((n, H)), np.zeros((n, H)), np.zeros((n, mixer.conv_kernel_size))
    steps, spread, biases, out = np.zeros((rank + 2, n)), np.zeros((n, rank)), np.full(n, -SATURATED), np.zeros((H, n))
    gate[:, letters] = x[always, letters] = KEY / r
    taps[:, -1] = 1
    of_symbols = np.arange(always - len(at), always)
    x[of_symbols, at] = KEY / r
    steps[rank:, always] = 1 / KEY  # B and C
    mixer.dt_proj.bias.data.fill_(-SATURATED)
    channel = 0
    for i, orbit in enumerate(stage.orbits):
        head, size = orbit.head, orbit.head.values.shape[1]
        own = np.arange(channel, channel + size)
        read = slice(0, len(head.alphas))
        x[np.ix_(own, at[read])] = np.where(head.writes()[:, None], head.values, 0).T / r
        steps[i, of_symbols[read]] = np.where(head.keeps(), -SATURATED, SATURATED) / KEY
        spread[own, i], biases[own] = 1, 0
        for column, lag in enumerate(head.lags if head.lags is not None else ()):
            taps[channel + column] = np.eye(len(taps[0]))[-1 - lag]
        out[where.marks[first + i] + np.arange(size), own] = LETTER / (_HELD * KEY)
        out[where.marks[first + i] + size, own] = -LETTER / (_HELD * KEY)
        out[where.marks[first + i] + size, always] = LETTER / (KEY * KEY)
        channel += size
    write(mixer.in_proj.weight[: mixer.intermediate_size], x)
    write(mixer.in_proj.weight[mixer.intermediate_size :], gate)
    write(mixer.conv1d.weight.data[:, 0], taps)
    write(mixer.x_proj.weight, steps)
    write(mixer.dt_proj.weight, spread)
    write(mixer.dt_proj.bias, biases)
    write(mixer.D, np.eye(n)[always])
    write(mixer.out_proj.weight, out)


def _write_mamba_units(mixer: Any, plan: StagePlan, number: int) -> None:
    """Write the units of stage `number` into a mixer of Mamba: two channels per unit, without a state.

    The difference of two SiLU ramps is a constant above its threshold and 0 below, so a unit writes exactly its symbol.
    """
    where, stage = layout(plan), plan.stages[number]
    n, H = len(stage.units), where.width
    r, letters = length(plan, number, with_marks=True), slice(0, where.n_letters)
    ramps, x, out = np.zeros((2 * n, H)), np.zeros((2 * n, H)), np.zeros((H, 2 * n))
    ramps[:n] = ramps[n:] = 2 * gates(plan, number)
    # The second ramp starts FIRES/2 later: above both starts their difference is FIRES/2, whatever the sum, and below
    # both it is 0.
    ramps[n:, letters] -= FIRES / 2 / r
    x[:, letters] = KEY / r
    for i, unit in enumerate(stage.units):
        at = where.symbols[number] + unit.target
        out[at, i], out[at, n + i] = LETTER / (FIRES / 2 * KEY), -LETTER / (FIRES / 2 * KEY)
    mixer.dt_proj.bias.data.fill_(-SATURATED)
    mixer.D.data.fill_(1)
    write(mixer.in_proj.weight[: mixer.intermediate_size], x)
    write(mixer.in_proj.weight[mixer.intermediate_size :], ramps)
    write(mixer.out_proj.weight, out)


def build_mamba2(plan: StagePlan, dtype: torch.dtype) -> Any:
    """Return `Mamba2ForCausalLM` with two layers per stage.

    Raises `NotExpressible` for a plan whose heads do more than keep, replace or forget their state.
    """
    width = layout(plan).width
    most = max(len(stage.units) for stage in plan.stages)
    d = 1 << (plan.d_v - 1).bit_length()
    heads = max(plan.n_heads, -(-most // d))
    heads = -(-heads * d // width) * max(width // d, 1) if d < width else heads
    model = mamba_model(
        "mamba2", "Mamba2", plan, dtype, _write_mamba2_heads, _write_mamba2_units, expand=heads * d // width,
        num_heads=heads, head_dim=d, n_groups=heads, chunk_size=64,  # each head is normalised by itself
    )  # fmt: skip
    for block in model.backbone.layers:
        block.mixer.norm.weight.data.fill_(1)
    return model


def _write_mamba2_heads(mixer: Any, plan: StagePlan, number: int) -> None:
    """Write the heads of stage `number` into a mixer of Mamba-2, one head each.

    dt saturates as in `_write_mamba_heads`: a symbol keeps the whole state of a head or replaces it.
    """
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


def _write_mamba2_units(mixer: Any, plan: StagePlan, number: int) -> None:
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


MAMBA = Target(
    "mamba", _TRIED,
    HuggingFace("MambaForCausalLM", "backbone", "mixer", cache_name="cache_params", continues_by_pieces=False),
    _plan, build_mamba, layers_a_stage=2,
)  # fmt: skip
MAMBA_2 = Target(
    "mamba-2", _TRIED, HuggingFace("Mamba2ForCausalLM", "backbone", "mixer", cache_name="cache_params"), _plan,
    build_mamba2, layers_a_stage=2,
)  # fmt: skip
