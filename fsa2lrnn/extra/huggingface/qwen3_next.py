"""Write plans into Qwen3-Next's Gated DeltaNet, `transformers.models.qwen3_next`: β in [0, 1], so no reflections.

What one step executes: q, k, v = SiLU(conv4(Wx)); q, k divided by √(Σ² + 1e-6); β = σ(W_b x); log α =
−exp(A_log)·softplus(W_a x + b); S ← αS, S ← S + βk(v − Sᵀk)ᵀ; out = W_o(RMSNorm(Sᵀq/√d_k)·SiLU(W_z x)). Transition: α(I
− βkkᵀ) with α, β in [0, 1], ‖k‖ ≤ 1: positive semidefinite, eigenvalues in [0, 1], ends included. A word starts from S
= 0; convolved: q, k, v, over 4 letters; α, β and the gate read the current letter. Saturated, hence exact, gates: σ at
±512 and 0; softplus(−512) = 0 and exp(−512) = 0; SiLU(x) = x from 17 on. Classes: Qwen3NextGatedDeltaNet,
Qwen3NextForCausalLM.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.declared import ExternalLayer
from fsa2lrnn.extra.huggingface.gated_delta import Mixer, build_layers, head_settings
from fsa2lrnn.extra.huggingface.huggingface import HuggingFace
from fsa2lrnn.extra.huggingface.plan import StagePlan
from fsa2lrnn.extra.huggingface.stream import write

LAYER = ExternalLayer("qwen3-next", tried="transformers 5.23.0")
CODE = HuggingFace("Qwen3NextForCausalLM")
plan = partial(construct, has_reflections=False)


def build(plan: StagePlan, dtype: Any) -> Any:
    """Return `Qwen3NextForCausalLM` with the plan in its first layers; the last one has zero experts."""
    return build_layers(
        "qwen3_next", "Qwen3Next", plan, dtype, 1, _write_heads, norm=0.0,  # norms of the stream are stored minus 1
        **head_settings(plan), mlp_only_layers=list(range(len(plan.stages))), head_dim=8, num_experts=2,
        num_experts_per_tok=1, moe_intermediate_size=8, shared_expert_intermediate_size=8,
    )  # fmt: skip


def _write_heads(layer: Any, weights: Mixer) -> None:
    write(layer.in_proj_qkvz.weight, _side_by_side(weights.q, weights.k, weights.v, weights.gate))
    write(layer.in_proj_ba.weight, _side_by_side(weights.beta[:, None], weights.alpha[:, None]))
    weights.write({"out": layer.out_proj.weight})
    write(layer.conv1d.weight.data[:, 0], weights.convolution)
    layer.norm.weight.data.fill_(1)


def _side_by_side(*parts: np.ndarray) -> np.ndarray:
    """Return the rows of several projections, (n_heads, d, H) each, ordered by head as the external layer has them."""
    joined = np.concatenate(parts, axis=1)
    return joined.reshape(-1, joined.shape[-1])
