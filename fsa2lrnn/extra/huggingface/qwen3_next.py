"""Qwen3-Next's Gated DeltaNet, `transformers.models.qwen3_next`: β in [0, 1], so that no letter reflects.

What one step executes: q, k, v = SiLU(conv4(Wx)); q, k divided by √(Σ² + 1e-6); β = σ(W_b x); log α =
−exp(A_log)·softplus(W_a x + b); S ← αS, S ← S + βk(v − Sᵀk)ᵀ; out = W_o(RMSNorm(Sᵀq/√d_k)·SiLU(W_z x)). Transition: α(I
− βkkᵀ) with α, β in [0, 1], ‖k‖ ≤ 1: positive semidefinite, eigenvalues in [0, 1], ends included. A word starts from S
= 0; convolved: q, k, v, over 4 letters; α, β and the gate read the current letter. Saturated, hence exact, gates: σ at
±512 and 0; softplus(−512) = 0 and exp(−512) = 0; SiLU(x) = x from 17 on. Classes: Qwen3NextGatedDeltaNet,
Qwen3NextForCausalLM.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.declared import ExternalLayer
from fsa2lrnn.extra.huggingface.gated_delta import (
    SHOWN,
    Mixer,
    head_settings,
    mixer,
    model_settings,
    write_units,
)
from fsa2lrnn.extra.huggingface.huggingface import HuggingFace
from fsa2lrnn.extra.huggingface.observed.transformers_models import GatedDeltaObserver
from fsa2lrnn.extra.huggingface.packages import modeling, transformers
from fsa2lrnn.extra.huggingface.plan import StagePlan
from fsa2lrnn.extra.huggingface.stream import blank, layout, write, write_around

LAYER = ExternalLayer("qwen3-next", tried="transformers 5.23.0")
CODE = HuggingFace("Qwen3NextForCausalLM")
OBSERVER = GatedDeltaObserver("qwen3_next", "Qwen3Next", "Qwen3NextGatedDeltaNet")
_LARGEST_BETA = 1


def plan(machine: MooreMachine) -> StagePlan:
    """Return a plan of registers, in parallel or behind windows; raise as `construct` does."""
    return construct(machine, has_reflections=False)


@transformers()
def build(plan: StagePlan, dtype: Any) -> Any:
    """Return `Qwen3NextForCausalLM` with the plan in its first layers; the last attends to zeros, with zero experts."""
    code, where, n_stages = modeling("qwen3_next"), layout(plan), len(plan.stages)
    config = code.Qwen3NextConfig(
        **model_settings(plan),
        **head_settings(plan),
        mlp_only_layers=list(range(n_stages)),
        head_dim=8,
        num_experts=2,
        num_experts_per_tok=1,
        moe_intermediate_size=8,
        shared_expert_intermediate_size=8,
    )
    model = code.Qwen3NextForCausalLM(config).to(dtype).eval()
    blank(model)  # norms of the stream are stored minus 1, so that zeros are correct for them
    write_around(model.model.embed_tokens, model.lm_head, plan, SHOWN)
    for number in range(n_stages):
        block = model.model.layers[number]
        layer, kernel = block.linear_attn, config.linear_conv_kernel_dim
        weights = mixer(plan, number, _LARGEST_BETA, kernel)
        layer.norm.weight.data.fill_(1)
        write(layer.in_proj_qkvz.weight, _side_by_side(weights.q, weights.k, weights.v, weights.gate))
        write(layer.in_proj_ba.weight, _side_by_side(weights.beta[:, None], weights.alpha[:, None]))
        write(layer.out_proj.weight, weights.out.reshape(where.width, -1))
        write(layer.conv1d.weight.data[:, 0], _taps(weights, kernel))
        write_units(block.mlp, plan, number)
    return model


def _side_by_side(*parts: np.ndarray) -> np.ndarray:
    """Return rows of several projections, (n_heads, d, H) each, head by head as the external layer splits them."""
    joined = np.concatenate(parts, axis=1)
    return joined.reshape(-1, joined.shape[-1])


def _taps(weights: Mixer, kernel: int) -> np.ndarray:
    now = np.zeros((2 * weights.q.shape[0] * weights.q.shape[1], kernel))
    now[:, -1] = 1
    return np.concatenate([now, weights.taps.reshape(-1, kernel)])
