"""Write plans into models of gated delta layers of transformers: OLMo-Hybrid, Qwen3-Next, Qwen3.5 (dense and
mixtures of experts) and Kimi-Linear.

One step executes: q, k, v = SiLU(conv4(Wx)); q, k divided by √(Σ² + 1e-6); β = c·σ(W_b x) with c = 2 in OLMo-Hybrid
and 1 elsewhere; log α = −exp(A_log)·softplus(W_a x + b); S ← αS, S ← S + βk(v − Sᵀk)ᵀ; out =
W_o(RMSNorm(Sᵀq/√d_k)·g), where g is SiLU(W_g x). In Kimi Delta Attention α has an entry for each entry of k, W_a
passes through as many numbers as a head has entries, and g is σ(W_g x). Transition: (I − βkkᵀ)diag(α) with α in [0,
1], ‖k‖ ≤ 1; eigenvalues in [0, 1], or [−1, 1] for c = 2, ends included. A word starts from S = 0; convolved: q, k, v,
over 4 letters; α, β and g read the current letter. Saturated, hence exact, gates: σ at ±512 and 0; softplus(−512) = 0
and exp(−512) = 0; SiLU(x) = x from 17 on.

Gates saturate: β = σ(±512) or 2σ(0), log α = −softplus(∓512) (docs/constructions.md states where this is exact).

Marks and symbols are 2⁻¹⁸ of a letter, so that their squares vanish compared with a letter's in float32, and RMSNorm
multiplies by the same power of two in every layer and in every state. If the marks of earlier layers are −1, 0 or 1,
symbols are therefore powers of two, and a head of any layer has exactly the matrices of its `Orbit`, times
√(d_k·d_v).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.export.constructions import construct
from fsa2lrnn.export.huggingface import HuggingFace
from fsa2lrnn.export.packages import Target
from fsa2lrnn.export.plan import Orbit, StageHead, StagePlan
from fsa2lrnn.export.stream import (
    FIRES,
    KEY,
    LETTER,
    SATURATED,
    blank_model,
    gates,
    layout,
    n_units,
    stage_parts,
    write,
    write_experts,
)

SHOWN = LETTER * 2.0**-18  # the size of a mark or a symbol in the stream
_LEAST_SILU = 0.25  # SiLU is above −0.278


@dataclass(frozen=True, eq=False)
class Mixer:
    """The weights of the heads of one layer, float64, before they are arranged for a model with a stream of width H.

    Shapes: q and k (n_keys, d_k, H), v and gate (n_heads, d_v, H), alpha and beta (n_heads, H), out (H, n_heads, d_v),
    and taps (n_heads, d_v, w), the convolution of v, whose last tap multiplies the current letter. `n_heads / n_keys`
    heads in a row share their keys and queries.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    gate: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    out: np.ndarray
    taps: np.ndarray

    @property
    def convolution(self) -> np.ndarray:
        """The taps (n_keys·2 d_k + n_heads·d_v, w) of q, k and v; q and k read the current letter only."""
        d_k, kernel = self.q.shape[1], self.taps.shape[-1]
        now = np.broadcast_to(np.arange(kernel) == kernel - 1, (2 * len(self.q) * d_k, kernel))
        return np.concatenate([now, self.taps.reshape(-1, kernel)])

    def write(self, parameters: Mapping[str, torch.Tensor]) -> None:
        """Write the weights of the fields named in `parameters` into these two-dimensional tensors."""
        for name, parameter in parameters.items():
            values: np.ndarray = getattr(self, name)
            write(parameter, values.reshape((len(values), -1) if name == "out" else (-1, values.shape[-1])))


def sizes(plan: StagePlan) -> tuple[int, int]:
    """Return d_k and d_v of the layers of a plan: powers of 4, so that their square roots are exact."""
    return power_of_four(max(plan.d_k, plan.shape.head)), power_of_four(max(plan.d_v, plan.shape.head))


def power_of_four(size: int) -> int:
    """Return the least power of 4 that is at least `size`.

    >>> [power_of_four(size) for size in (1, 2, 4, 5, 16)]
    [1, 4, 4, 16, 16]
    """
    return 4 ** ((size - 1).bit_length() + 1 >> 1)


def head_settings(plan: StagePlan) -> dict[str, Any]:
    """Return the configuration entries for the number and the widths of the heads of a gated delta layer."""
    d_k, d_v = sizes(plan)
    return {
        "linear_num_key_heads": plan.n_heads // plan.shape.group,
        "linear_num_value_heads": plan.n_heads,
        "linear_key_head_dim": d_k,
        "linear_value_head_dim": d_v,
    }


def build_layers(
    kind: str,
    prefix: str,
    plan: StagePlan,
    dtype: torch.dtype,
    largest_beta: int,
    write_heads: Callable[[Any, Mixer], None],
    norm: float = 1.0,
    mixer_name: str = "linear_attn",
    **settings: Any,
) -> Any:
    """Return a whole model with the plan in its first layers and a last layer of attention, whose weights are zero.

    Args:
        kind, prefix, settings: the arguments of `blank_model`; sizes and layer types are added to the settings.
        plan: the stages; each takes one layer.
        dtype: the dtype of the weights.
        largest_beta: the factor of the logistic function in β, 1 or 2.
        write_heads: a function that writes weights into the mixer of a layer.
        norm: the value that norms of the stream store for a factor of 1.
        mixer_name: the attribute of a layer that is its mixer.
    """
    types = layer_types(plan)
    sizes_of_all = {
        "intermediate_size": max(len(stage.units) for stage in plan.stages), "num_hidden_layers": len(types),
        "layer_types": types, "num_attention_heads": 1, "num_key_value_heads": 1, "max_position_embeddings": 2**20,
    }  # fmt: skip
    model = blank_model(kind, prefix, plan, dtype, SHOWN, **{**sizes_of_all, **settings})
    # Each stage is one layer: heads in its mixer, units in its MLP. All other weights stay 0.
    model.model.norm.weight.data.fill_(norm)
    linear = (block for block, kind in zip(model.model.layers, types, strict=True) if kind == "linear_attention")
    for number, block in enumerate(linear):
        layer = getattr(block, mixer_name)
        block.input_layernorm.weight.data.fill_(norm)
        block.post_attention_layernorm.weight.data.fill_(norm)
        write_heads(layer, mixer(plan, number, largest_beta, layer.conv1d.weight.shape[-1]))
        if hasattr(block.mlp, "experts"):
            # Half of a symbol comes from the experts, and half from the shared one.
            gate, up, down = units(plan, number)
            write_mlp(block.mlp.shared_expert, gate, up, down / 2)
            if hasattr(block.mlp, "shared_expert_gate"):
                write(block.mlp.shared_expert_gate.weight, SATURATED * up[:1])
            write_experts(block.mlp.gate.weight, block.mlp.experts, gate, up, down / 2)
        else:
            write_mlp(block.mlp, *units(plan, number))
    return model


def layer_types(plan: StagePlan) -> list[str]:
    """Return the names of a model's layers: linear ones for the stages, attention between and after them."""
    n, every = len(plan.stages), plan.shape.attention or len(plan.stages)
    attends = [i % every == 0 or i == n for i in range(1, n + 1)]
    return [name for after in attends for name in ["linear_attention", *["full_attention"] * after]]


def mixer(plan: StagePlan, number: int, largest_beta: int, kernel: int) -> Mixer:
    """Return the weights of the heads of stage `number`, for a layer with β = `largest_beta`·σ and `kernel` taps.

    Raises `NotExpressible` if the plan needs a larger β, or other keys in one group.
    """
    where, stage, (symbols, first) = layout(plan), plan.stages[number], stage_parts(plan, number)
    H, n, (d_k, d_v) = where.width, plan.n_heads, sizes(plan)
    group = plan.shape.group
    letters, r = slice(0, where.n_letters), math.sqrt(where.width)
    one = r * SHOWN / LETTER if number else r  # a symbol of the stage before, or a letter, after RMSNorm
    # Makes the square of a head's output so large that the norm's 1e-5 vanishes.
    written = math.sqrt(d_k * d_v) * plan.shape.output
    q, k = np.zeros((n // group, d_k, H)), np.zeros((n // group, d_k, H))
    v, gate = np.zeros((n, d_v, H)), np.zeros((n, d_v, H))
    alpha, beta, out = np.zeros((n, H)), np.zeros((n, H)), np.zeros((H, n, d_v))
    taps = np.zeros((n, d_v, kernel))
    taps[:, :, -1] = 1
    for i, orbit in enumerate(stage.orbits):
        head = orbit.head
        at = symbols[: len(head.alphas)]
        size_v = head.values.shape[1]
        if i % group == 0:
            query, keys = _shared([other.head for other in stage.orbits[i : i + group]])
            q[i // group, : len(query), letters] = _query(query)[:, None] / r
            k[i // group, : len(query), at] = KEY * keys / one
        v[i, :size_v, at] = written * head.values / one
        gate[i, :, letters] = KEY / r
        # log α = −softplus(x): x = −512 gives 0, so α = 1, and x = 512 gives α = exp(−512), which is 0.
        alpha[i, at] = np.where(head.alphas > 0, -SATURATED, SATURATED) / one
        beta[i, at] = [_logit(value, largest_beta) / one for value in head.betas]
        for column, lag in enumerate(head.lags if head.lags is not None else ()):
            # A value with a lag reads its letter by a single tap, that many letters back.
            taps[i, column] = 0
            taps[i, column, kernel - 1 - lag] = 1
        for j in range(size_v):
            out[where.marks[first + i] + j, i, j] = SHOWN / (KEY * math.sqrt(d_v))
    return Mixer(q, k, v, gate, alpha, beta, out, taps)


def _shared(heads: Sequence[StageHead]) -> tuple[np.ndarray, np.ndarray]:
    """Return the query (d,) and the keys (n, d) of heads of one group, for each symbol the key of those that write."""
    first = heads[0]
    keys, used = first.keys.copy(), first.betas > 0
    for head in heads[1:]:
        writes = head.betas > 0
        if not np.array_equal(head.query, first.query) or (keys != head.keys)[used & writes].any():
            raise NotExpressible("heads of one group need one query, and one key for each symbol that both write")
        keys[writes], used = head.keys[writes], used | writes
    return first.query, keys


def units(plan: StagePlan, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weights gate and up (n, H) and down (H, n) of the MLP of stage `number`, one row per unit.

    SiLU(gate·x)·(up·x) is `FIRES` / 2 for the one unit that fires and exactly 0 for all others.
    """
    where, stage = layout(plan), plan.stages[number]
    r = math.sqrt(where.width)
    gate = gates(plan, number, r)
    # Symbols and marks are smaller than letters by this factor, and the gates are written for equal sizes.
    gate[:, where.n_letters :] *= LETTER / SHOWN
    up, down = np.zeros_like(gate), np.zeros_like(gate.T)
    # `up` reads 1 from whichever letter is there.
    up[:, : where.n_letters] = 1 / r
    for i, unit in enumerate(stage.units):
        down[where.symbols[number] + unit.target, i] = 2 * SHOWN / FIRES
    return gate, up, down


def write_mlp(mlp: Any, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> None:
    """Write the weights of `units` into an MLP with a gate."""
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
    # SiLU is the identity on large numbers, so a query without negative entries passes unchanged, scaled.
    if (query >= 0).all():
        return KEY * query / query.max()
    return _before_silu(_LEAST_SILU * query / np.abs(query).max())


def _before_silu(target: np.ndarray) -> np.ndarray:
    low, high = np.full(target.shape, -1.278), np.full(target.shape, 1.0)
    for _ in range(80):  # SiLU rises from −1.278 on
        middle = (low + high) / 2
        below = middle / (1 + np.exp(-middle)) < target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(target == 0, 0.0, low)


def _olmo_hybrid(plan: StagePlan, dtype: torch.dtype) -> Any:
    """Return `OlmoHybridForCausalLM` with the plan in its first layers."""
    settings = dict.fromkeys(("rope_parameters", "pad_token_id", "bos_token_id", "eos_token_id"))
    return build_layers(
        "olmo_hybrid", "OlmoHybrid", plan, dtype, 2, _write_olmo_hybrid, **head_settings(plan), head_dim=2, **settings
    )


def _write_olmo_hybrid(layer: Any, weights: Mixer) -> None:
    names = {"q": "q", "k": "k", "v": "v", "gate": "g", "alpha": "a", "beta": "b", "out": "o"}
    weights.write({name: layer.get_parameter(f"{short}_proj.weight") for name, short in names.items()})
    write(layer.conv1d.weight.data[:, 0], weights.convolution)
    layer.o_norm.weight.data.fill_(1)


def _qwen3_next(plan: StagePlan, dtype: torch.dtype) -> Any:
    """Return `Qwen3NextForCausalLM` with the plan in its first layers; without `shape.experts` experts are zero."""
    experts = plan.shape.experts
    settings: dict[str, Any] = (
        {"num_experts": experts, "num_experts_per_tok": 2, "moe_intermediate_size": n_units(plan)}
        if experts
        else {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 8}
    )
    return build_layers(
        "qwen3_next", "Qwen3Next", plan, dtype, 1, _write_qwen3_next,
        norm=0.0,  # norms of the stream are stored minus 1
        **head_settings(plan), head_dim=8, mlp_only_layers=[] if experts else list(range(len(plan.stages))),
        shared_expert_intermediate_size=settings["moe_intermediate_size"], **settings,
    )  # fmt: skip


def _write_qwen3_next(layer: Any, weights: Mixer) -> None:
    write(layer.in_proj_qkvz.weight, _side_by_side(weights.q, weights.k, weights.v, weights.gate))
    of_groups = (len(weights.q), -1, weights.beta.shape[-1])
    write(layer.in_proj_ba.weight, _side_by_side(weights.beta.reshape(of_groups), weights.alpha.reshape(of_groups)))
    weights.write({"out": layer.out_proj.weight})
    write(layer.conv1d.weight.data[:, 0], weights.convolution)
    layer.norm.weight.data.fill_(1)


def _side_by_side(*parts: np.ndarray) -> np.ndarray:
    """Return the rows of projections, (n_keys or n_heads, d, H) each, by groups of heads as the layer has them."""
    n = len(parts[0])
    joined = np.concatenate([part.reshape(n, -1, part.shape[-1]) for part in parts], axis=1)
    return joined.reshape(-1, joined.shape[-1])


def _qwen3_5(plan: StagePlan, dtype: torch.dtype) -> Any:
    """Return `Qwen3_5ForCausalLM` with the plan in its first layers."""
    # Norms of the stream are stored minus 1.
    return build_layers(
        "qwen3_5", "Qwen3_5", plan, dtype, 1, _write_qwen3_5, norm=0.0, config="TextConfig", **head_settings(plan)
    )


def _qwen3_5_moe(plan: StagePlan, dtype: torch.dtype) -> Any:
    """Return `Qwen3_5MoeForCausalLM` with the plan in its first layers."""
    return build_layers(
        "qwen3_5_moe", "Qwen3_5Moe", plan, dtype, 1, _write_qwen3_5, norm=0.0, config="TextConfig",
        **head_settings(plan), **_experts(plan),
    )  # fmt: skip


def _lara_mini(plan: StagePlan, dtype: torch.dtype) -> Any:
    """Return `LaraMiniForCausalLM` with the plan in its first layers; its shared expert has no gate."""
    return build_layers(
        "lara_mini", "LaraMini", plan, dtype, 1, _write_qwen3_5, **head_settings(plan), head_dim=8, eos_token_id=None,
        **_experts(plan),
    )  # fmt: skip


def _experts(plan: StagePlan) -> dict[str, Any]:
    size = n_units(plan)
    return {
        "num_experts": plan.shape.experts or 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": size, "shared_expert_intermediate_size": size,
    }  # fmt: skip


def _write_qwen3_5(layer: Any, weights: Mixer) -> None:
    sizes = [part[..., 0].size for part in (weights.q, weights.k, weights.v)]
    q, k, v = layer.in_proj_qkv.weight.data.split(sizes)
    gates = {"gate": layer.in_proj_z.weight, "beta": layer.in_proj_b.weight, "alpha": layer.in_proj_a.weight}
    weights.write({"q": q, "k": k, "v": v, **gates, "out": layer.out_proj.weight})
    write(layer.conv1d.weight.data[:, 0], weights.convolution)
    layer.norm.weight.data.fill_(1)


def _kimi_linear(plan: StagePlan, dtype: torch.dtype) -> Any:
    """Return `KimiLinearForCausalLM` with the plan in its first layers."""
    plan = replace(plan, shape=replace(plan.shape, group=1))  # no heads of this layer share keys
    return build_layers(
        "kimi_linear", "KimiLinear", plan, dtype, 1, _write_kimi_linear, mixer_name="self_attn",
        mlp_layer_types=["dense"] * len(layer_types(plan)),
        linear_num_heads=plan.n_heads, linear_head_dim=max(*sizes(plan), power_of_four(plan.n_heads)),
        **dict.fromkeys(("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"), 8),
        **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id")),
    )  # fmt: skip


def _bailing_hybrid(plan: StagePlan, dtype: torch.dtype) -> Any:
    """Return `BailingHybridForCausalLM` with the plan in its first layers, whose heads forget by β = 1.

    Its α is at least e⁻⁵. Raises `NotExpressible` for a head that forgets several keys at once.
    """
    stages = [replace(stage, orbits=tuple(map(_without_decay, stage.orbits))) for stage in plan.stages]
    plan = replace(plan, stages=tuple(stages), shape=replace(plan.shape, group=1))
    d = max(*sizes(plan), 2)
    names = ("kv_lora_rank", "qk_nope_head_dim", "v_head_dim", "moe_intermediate_size")
    return build_layers(
        "bailing_hybrid", "BailingHybrid", plan, dtype, 1, _write_kimi_linear, mixer_name="self_attn",
        num_attention_heads=plan.n_heads, num_key_value_heads=plan.n_heads,
        mlp_layer_types=["dense"] * len(layer_types(plan)), head_dim=d, qk_rope_head_dim=d, **dict.fromkeys(names, 8),
        **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id")),
    )  # fmt: skip


def _without_decay(orbit: Orbit) -> Orbit:
    """Return a head that writes 0 where the given one forgets, which is the same for states with one key."""
    head = orbit.head
    forgets = head.alphas == 0
    if forgets.any() and head.keys.shape[1] > 1:
        raise NotExpressible("a head forgets several keys at once, and no decay of this layer is 0")
    empties = (forgets & (head.betas == 0))[:, None]
    return replace(
        orbit,
        head=replace(
            head, alphas=np.ones_like(head.alphas), betas=np.where(forgets, 1.0, head.betas),
            keys=np.where(empties, 1.0, head.keys), values=np.where(empties, 0.0, head.values),
        ),
    )  # fmt: skip


def _write_kimi_linear(layer: Any, weights: Mixer) -> None:
    """Write the weights of heads into a layer, with keys and values padded by zeros to one width."""
    n, d = len(weights.q), layer.o_proj.weight.shape[1] // len(weights.q)

    def filled(values: np.ndarray, axis: int) -> np.ndarray:
        return np.pad(values, [(0, d - size if i == axis else 0) for i, size in enumerate(values.shape)])

    taps = np.zeros((n, d, weights.taps.shape[-1]))
    taps[..., -1] = 1
    taps[:, : weights.taps.shape[1]] = weights.taps
    out = filled((weights.out > 0) * 2 * SHOWN / math.sqrt(d), 2)
    q, k, v, gate = (filled(part, 1) for part in (weights.q, weights.k, weights.v, weights.gate))
    wide, forget = Mixer(q, k, v, gate, weights.alpha, weights.beta, out, taps), layer.forget_gate
    wide.write({"q": layer.q_proj.weight, "k": layer.k_proj.weight, "v": layer.v_proj.weight})
    wide.write({"beta": layer.b_proj.weight, "out": layer.o_proj.weight})
    if hasattr(forget, "f_proj"):
        write(forget.f_proj.weight, np.repeat(weights.alpha, d, axis=0))
    else:
        write(forget.f_a_proj.weight, weights.alpha)
        write(forget.f_b_proj.weight, np.repeat(np.eye(n), d, axis=0))
    write(layer.conv1d.weight.data[:, 0], wide.convolution)
    layer.o_norm.weight.data.fill_(1)


_TRIED = "transformers 5.24.0"
_PLANS = {reflects: partial(construct, has_reflections=reflects) for reflects in (False, True)}


def _target(name: str, kind: str, build: Callable[[StagePlan, torch.dtype], Any], reflects: bool = False) -> Target:
    return Target(name, _TRIED, HuggingFace(f"{kind}ForCausalLM"), _PLANS[reflects], build)


TARGETS = (
    _target("olmo-hybrid", "OlmoHybrid", _olmo_hybrid, reflects=True),
    _target("qwen3-next", "Qwen3Next", _qwen3_next),
    _target("qwen3.5", "Qwen3_5", _qwen3_5),
    _target("qwen3.5-moe", "Qwen3_5Moe", _qwen3_5_moe),
    _target("lara-mini", "LaraMini", _lara_mini),
    _target("kimi-linear", "KimiLinear", _kimi_linear),
    _target("bailing-hybrid", "BailingHybrid", _bailing_hybrid),
)
