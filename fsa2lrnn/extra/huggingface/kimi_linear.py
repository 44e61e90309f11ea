"""Kimi Delta Attention, `transformers.models.kimi_linear`: a Gated DeltaNet with a decay for each entry of the key.

All decays of a layer are computed from as many numbers as a head has entries, so the width of a head is the number of
heads.

What one step executes: q, k, v = SiLU(conv4(Wx)); q, k divided by √(Σ² + 1e-6); β = σ(W_b x); log α = −exp(A_log)·log(1
+ exp(W_f W_e x + b)), one an entry of k; S ← diag(α)S, S ← S + βk(v − Sᵀk)ᵀ; out = W_o(RMSNorm(Sᵀq/√d)·σ(W_g x)).
Transition: (I − βkkᵀ)diag(α) with α, β in [0, 1], ‖k‖ ≤ 1: a product of positive semidefinite matrices, eigenvalues in
[0, 1], ends included. A word starts from S = 0; convolved: q, k, v, over 4 letters; α, β and the gate read the current
letter. Saturated, hence exact, gates: σ at ±512 and 0; log(1 + exp(−512)) = 0 and exp(−512) = 0; SiLU(x) = x from 17
on. Classes: KimiLinearDeltaAttention, KimiLinearForCausalLM.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.declared import ExternalLayer
from fsa2lrnn.extra.huggingface.gated_delta import SHOWN, mixer, model_settings, power_of_four, sizes, write_units
from fsa2lrnn.extra.huggingface.huggingface import HuggingFace
from fsa2lrnn.extra.huggingface.packages import modeling, transformers
from fsa2lrnn.extra.huggingface.plan import StagePlan
from fsa2lrnn.extra.huggingface.stream import blank, layout, write, write_around

LAYER = ExternalLayer("kimi-linear", tried="transformers 5.23.0")
CODE = HuggingFace("KimiLinearForCausalLM", mixer="self_attn")
_LARGEST_BETA = 1


def plan(machine: MooreMachine) -> StagePlan:
    """Return a plan of registers, in parallel or behind windows; raise as `construct` does."""
    return construct(machine, has_reflections=False)


@transformers()
def build(plan: StagePlan, dtype: Any) -> Any:
    """Return `KimiLinearForCausalLM` with the plan in its first layers; the last one attends to zeros."""
    code, n_stages = modeling("kimi_linear"), len(plan.stages)
    d = max(*sizes(plan), power_of_four(plan.n_heads))
    config = code.KimiLinearConfig(
        **model_settings(plan),
        mlp_layer_types=["dense"] * (n_stages + 1),
        kv_lora_rank=8,
        qk_rope_head_dim=8,
        qk_nope_head_dim=8,
        v_head_dim=8,
        linear_num_heads=plan.n_heads,
        linear_head_dim=d,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = code.KimiLinearForCausalLM(config).to(dtype).eval()
    blank(model)
    write_around(model.model.embed_tokens, model.lm_head, plan, SHOWN)
    model.model.norm.weight.data.fill_(1)
    for number in range(n_stages):
        block = model.model.layers[number]
        block.input_layernorm.weight.data.fill_(1)
        block.post_attention_layernorm.weight.data.fill_(1)
        _write_heads(block.self_attn, plan, number, d)
        write_units(block.mlp, plan, number)
    return model


def _write_heads(layer: Any, plan: StagePlan, number: int, d: int) -> None:
    weights, H = mixer(plan, number, _LARGEST_BETA, layer.conv_kernel_size), layout(plan).width
    taps = np.zeros((3, plan.n_heads, d, layer.conv_kernel_size))
    taps[..., -1] = 1
    taps[2, :, : weights.taps.shape[1]] = weights.taps
    out = np.zeros((H, plan.n_heads, d))
    out[:, :, : weights.out.shape[2]] = (weights.out > 0) * 2 * SHOWN / math.sqrt(d)
    layer.o_norm.weight.data.fill_(1)
    for projection, rows in ((layer.q_proj, weights.q), (layer.k_proj, weights.k), (layer.v_proj, weights.v)):
        wide = np.zeros((plan.n_heads, d, H))
        wide[:, : rows.shape[1]] = rows
        write(projection.weight, wide.reshape(-1, H))
    write(layer.b_proj.weight, weights.beta)
    write(layer.forget_gate.f_a_proj.weight, weights.alpha)
    write(layer.forget_gate.f_b_proj.weight, np.repeat(np.eye(plan.n_heads), d, axis=0))
    write(layer.conv1d.weight.data[:, 0], taps.reshape(-1, layer.conv_kernel_size))
    write(layer.o_proj.weight, out.reshape(H, -1))
