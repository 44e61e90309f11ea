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
five powers of two, so that a head must hold one value at a time.

What one step executes: x = SiLU(conv4(W_x u)); Δ = softplus(W_Δ W_r x + b), B = W_B x, C = W_C x; h ←
exp(−Δ∘exp(A_log))∘h + Δ∘x Bᵀ; out = W_o((hC + D∘x)∘SiLU(W_z u)). Transition: diagonal, exp(−Δ∘exp(A_log)) in [0, 1],
ends included; a channel that writes has Δ > 0. A word starts from h = 0; convolved: x, over 4 letters, and Δ, B, C,
which are read from it; the gate reads the current letter. Saturated, hence exact, gates: softplus(−512) = 0 keeps and
writes nothing, exp(−softplus(512)) = 0 forgets; SiLU(x) = x from 17 on. Classes: MambaMixer, MambaForCausalLM.

Falcon-Mamba is Mamba with norms of W_r x, B and C, each divided by the root of the mean of its squares. All entries of
W_r x have one absolute value here, and B and C one entry each, so that the norms return −1 and 1 exactly.

Marks and symbols are 2⁻¹⁸ of a letter, as in gated delta layers (`gated_delta`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.export.constructions import construct
from fsa2lrnn.export.gated_delta import SHOWN, power_of_four, units
from fsa2lrnn.export.huggingface import HuggingFace
from fsa2lrnn.export.packages import Target
from fsa2lrnn.export.plan import UNIT, Orbit, StagePlan
from fsa2lrnn.export.stream import FIRES, KEY, LETTER, SATURATED, blank_model, layout, stage_parts, write

TRIED = "transformers 5.24.0"
plan_without_reflections = partial(construct, has_reflections=False)


def mamba_model(
    kind: str,
    prefix: str,
    plan: StagePlan,
    dtype: torch.dtype,
    write_heads: Callable[[Any, StagePlan, int], None],
    write_units: Callable[[Any, np.ndarray, np.ndarray, np.ndarray], None],
    parts: Callable[[Any], Iterable[tuple[Any, Any]]],
    **settings: Any,
) -> Any:
    """Return a whole model in which every stage of the plan is a mixer and a module for units; other weights are zero.

    Args:
        kind, prefix, plan, dtype, settings: the arguments of `blank_model`.
        write_heads: a function that writes the heads of the stage of a number into a mixer.
        write_units: a function that writes the weights of `gated_delta.units` into a module.
        parts: a function of the model's layers that returns the mixer and the other module of each stage.
    """
    no_tokens = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"))
    model = blank_model(kind, prefix, plan, dtype, SHOWN, **no_tokens, **settings)
    for part in model.modules():
        if "RMSNorm" in type(part).__name__:
            part.weight.data.fill_(1)
        if hasattr(part, "conv1d"):
            part.conv1d.weight.data[:, 0, -1] = 1
    for number, (mixer, module) in enumerate(parts(model.base_model.layers)):
        write_heads(mixer, plan, number)
        write_units(module, *units(plan, number))
    return model


def in_pairs(modules: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """Return the first and the second of every two modules."""
    return zip(modules[::2], modules[1::2], strict=True)


def _two_mixers(layers: Any) -> Iterable[tuple[Any, Any]]:
    return in_pairs([layer.mixer for layer in layers])


def mamba_sizes(plan: StagePlan) -> tuple[int, int]:
    """Return the least factor from the stream to the channels of Mamba, and the rank of Δ, a power of two."""
    channels = max(_n_channels(plan, number) for number in range(len(plan.stages)))
    least = 2 if plan.shape.head > 1 else 1  # released models have 2, and llama.cpp reads no other
    return max(least, -(-channels // layout(plan).width)), 1 << (plan.n_heads - 1).bit_length()


def _n_channels(plan: StagePlan, number: int) -> int:
    values = sum(_one_value(orbit).head.values.shape[1] for orbit in plan.stages[number].orbits)
    return max(values + len(stage_parts(plan, number)[0]) + 1, len(plan.stages[number].units))


def _one_value(orbit: Orbit) -> Orbit:
    """Return a head that keeps, replaces or forgets one value of 64; raise `NotExpressible` for another one."""
    orbit.head.keeps()
    marks = orbit.marks
    if not np.isin(orbit.head.values, (0, UNIT)).all() or not np.isin(marks, (0, 1)).all() or marks.sum(1).max() > 1:
        raise NotExpressible("this layer's heads hold one value of 64 at a time: give a plan of registers")
    return orbit


def _sizes_in_stream(plan: StagePlan, number: int) -> tuple[float, float]:
    """Return the size after RMSNorm of a letter, and of a symbol that stage `number` reads."""
    r = math.sqrt(layout(plan).width)
    return r, r * SHOWN / LETTER if number else r


def write_mamba_heads(mixer: Any, plan: StagePlan, number: int) -> None:
    """Write the heads of stage `number` into a mixer of Mamba: one channel per entry of a head's value.

    The gate Δ of a symbol saturates: exp(ΔA) is 1 for a symbol that keeps the state and 0 for one that replaces it. The
    last channel is always `KEY`; it supplies B and C.
    """
    where, stage, (at, first) = layout(plan), plan.stages[number], stage_parts(plan, number)
    n, H, rank = _n_channels(plan, number), where.width, mixer.time_step_rank
    (r, one), letters, always = _sizes_in_stream(plan, number), slice(0, where.n_letters), n - 1
    unit = 1.0 if hasattr(mixer, "dt_layernorm") else KEY  # what B, C and the entries of Δ's projection are
    gate, x, taps = np.zeros((n, H)), np.zeros((n, H)), np.zeros((n, mixer.conv_kernel_size))
    steps, spread, biases, out = np.ones((rank + 2, n)), np.zeros((n, rank)), np.full(n, -SATURATED), np.zeros((H, n))
    gate[:, letters] = x[always, letters] = KEY / r
    taps[:, -1] = 1
    of_symbols = np.arange(always - len(at), always)
    x[of_symbols, at] = KEY / one
    # Each row of Δ's projection reads the one symbol channel that is not 0; B and C read the last channel.
    steps[:, : always - len(at)] = steps[:rank, always] = steps[rank:, of_symbols] = 0
    channel = 0
    for i, orbit in enumerate(stage.orbits):
        head, size = orbit.head, orbit.head.values.shape[1]
        own = np.arange(channel, channel + size)
        read = slice(0, len(head.alphas))
        x[np.ix_(own, at[read])] = np.where(head.writes()[:, None], head.values, 0).T / one
        steps[i, of_symbols[read]] = np.where(head.keeps(), -1, 1)
        spread[own, i], biases[own] = SATURATED / unit, 0
        for column, lag in enumerate(head.lags if head.lags is not None else ()):
            taps[channel + column] = np.eye(len(taps[0]))[-1 - lag]
        out[where.marks[first + i] + np.arange(size), own] = SHOWN / (SATURATED * UNIT * unit**2 * KEY)
        channel += size
    write(mixer.in_proj.weight[: mixer.intermediate_size], x)
    write(mixer.in_proj.weight[mixer.intermediate_size :], gate)
    write(mixer.conv1d.weight.data[:, 0], taps)
    write(mixer.x_proj.weight, steps)
    write(mixer.dt_proj.weight, spread)
    mixer.dt_proj.bias.data.fill_(-SATURATED)
    write(mixer.dt_proj.bias, biases)
    write(mixer.out_proj.weight, out)


def write_mamba_units(mixer: Any, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> None:
    """Write units into a mixer of Mamba, one channel each, without a state: D·x times SiLU of the gate."""
    mixer.dt_proj.bias.data.fill_(-SATURATED)
    mixer.D.data.fill_(1)
    write(mixer.in_proj.weight[: mixer.intermediate_size], KEY * up)
    write(mixer.in_proj.weight[mixer.intermediate_size :], gate)
    write(mixer.out_proj.weight, down / KEY)


def build_mamba(plan: StagePlan, dtype: torch.dtype, kind: str = "mamba", prefix: str = "Mamba") -> Any:
    """Return `MambaForCausalLM` or its sibling with two layers per stage.

    Raises `NotExpressible` for a plan whose heads do more than keep or replace a state with at most one entry of 64.
    """
    expand, rank = mamba_sizes(plan)
    return mamba_model(
        kind, prefix, plan, dtype, write_mamba_heads, write_mamba_units, _two_mixers, state_size=1,
        num_hidden_layers=2 * len(plan.stages), expand=expand, time_step_rank=rank,
    )  # fmt: skip


def mamba2_sizes(plan: StagePlan) -> tuple[int, int, int]:
    """Return the number of heads of Mamba-2, their size, a power of 4, and their product divided by the stream's width.

    They have room for the heads of the plan, and for its units; the stream's width is filled by few large heads, or by
    heads of the size that the plan's shape asks for.
    """
    width, d = layout(plan).width, power_of_four(max(plan.d_v, plan.shape.head))
    heads = max(plan.n_heads, *(-(-len(stage.units) // d) for stage in plan.stages))
    while 4 * d * heads <= width and plan.shape.head == 1:
        d *= 4
    expand = max(-(-heads * d // width), 2 if plan.shape.head > 1 else 1)  # as in `mamba_sizes`
    heads = expand * max(width // d, 1)
    return heads, d, expand


def write_mamba2_heads(mixer: Any, plan: StagePlan, number: int) -> None:
    """Write the heads of stage `number` into a mixer of Mamba-2, one head each, normalised by itself.

    dt saturates as in `write_mamba_heads`: a symbol keeps the whole state of a head or replaces it.
    """
    where, stage, (symbols, first) = layout(plan), plan.stages[number], stage_parts(plan, number)
    (r, one), letters = _sizes_in_stream(plan, number), slice(0, where.n_letters)
    n, d, H = mixer.num_heads, mixer.head_dim, where.width
    gate, x, B, C, dt = np.zeros((n, d, H)), np.zeros((n, d, H)), np.zeros((n, H)), np.zeros((n, H)), np.zeros((n, H))
    out = np.zeros((H, n, d))
    for i, orbit in enumerate(stage.orbits):
        head, size = orbit.head, orbit.head.values.shape[1]
        at, keeps = symbols[: len(head.alphas)], head.keeps()
        x[i, :size, at] = np.where(head.writes()[:, None], head.values, 0) / one
        gate[i, :, letters] = B[i, letters] = C[i, letters] = KEY / r
        dt[i, at] = np.where(keeps, -SATURATED, SATURATED) / one
        for column, lag in enumerate(head.lags if head.lags is not None else ()):
            mixer.conv1d.weight.data[i * d + column] = 0
            mixer.conv1d.weight.data[i * d + column, 0, -1 - lag] = 1
        out[where.marks[first + i] + np.arange(size), i, np.arange(size)] = SHOWN / math.sqrt(d)
    write(mixer.in_proj.weight, np.concatenate([gate.reshape(-1, H), x.reshape(-1, H), B, C, dt]))
    write(mixer.out_proj.weight, out.reshape(H, -1))


def write_mamba2_units(mixer: Any, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> None:
    """Write units as gates of D·x, with the state 0; the norm of a head makes the unit that fires √d."""
    mixer.dt_bias.data.fill_(-SATURATED)
    mixer.D.data.fill_(1)
    write(mixer.in_proj.weight, gate)
    write(mixer.in_proj.weight[mixer.intermediate_size :], KEY * up)
    write(mixer.out_proj.weight, down * FIRES / 2 / math.sqrt(mixer.head_dim))


def _mamba2(plan: StagePlan, dtype: torch.dtype) -> Any:
    """Return `Mamba2ForCausalLM` with two layers per stage.

    Raises `NotExpressible` for a plan whose heads do more than keep, replace or forget their state.
    """
    heads, d, expand = mamba2_sizes(plan)
    return mamba_model(
        "mamba2", "Mamba2", plan, dtype, write_mamba2_heads, write_mamba2_units, _two_mixers, state_size=1,
        num_hidden_layers=2 * len(plan.stages), expand=expand, num_heads=heads, head_dim=d,
        n_groups=heads, chunk_size=64,  # each head is normalised by itself
    )  # fmt: skip


def _target(name: str, kind: str, build: Callable[[StagePlan, torch.dtype], Any], by_pieces: bool = False) -> Target:
    code = HuggingFace(f"{kind}ForCausalLM", continues_by_pieces=by_pieces)
    return Target(name, TRIED, code, plan_without_reflections, build, layers_a_stage=2)


TARGETS = (
    _target("mamba", "Mamba", build_mamba),
    _target("falcon-mamba", "FalconMamba", partial(build_mamba, kind="falcon_mamba", prefix="FalconMamba")),
    _target("mamba-2", "Mamba2", _mamba2, by_pieces=True),
)
