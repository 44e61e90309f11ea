"""Write plans into Kimi Delta Attention, `transformers.models.kimi_linear`, with a decay for each entry of the key.

All decays of a layer are computed from as many numbers as a head has entries, so a head is at least as wide as the
number of heads.

What one step executes: q, k, v = SiLU(conv4(Wx)); q, k divided by √(Σ² + 1e-6); β = σ(W_b x); log α = −exp(A_log)·log(1
+ exp(W_f W_e x + b)), one an entry of k; S ← diag(α)S, S ← S + βk(v − Sᵀk)ᵀ; out = W_o(RMSNorm(Sᵀq/√d)·σ(W_g x)).
Transition: (I − βkkᵀ)diag(α) with α, β in [0, 1], ‖k‖ ≤ 1: a product of positive semidefinite matrices, eigenvalues in
[0, 1], ends included. A word starts from S = 0; convolved: q, k, v, over 4 letters; α, β and the gate read the current
letter. Saturated, hence exact, gates: σ at ±512 and 0; log(1 + exp(−512)) = 0 and exp(−512) = 0; SiLU(x) = x from 17
on. Classes: KimiLinearDeltaAttention, KimiLinearForCausalLM.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.declared import ExternalLayer
from fsa2lrnn.extra.huggingface.gated_delta import SHOWN, Mixer, build_layers, power_of_four, sizes
from fsa2lrnn.extra.huggingface.huggingface import HuggingFace
from fsa2lrnn.extra.huggingface.plan import StagePlan
from fsa2lrnn.extra.huggingface.stream import write

LAYER = ExternalLayer("kimi-linear", tried="transformers 5.23.0")
CODE = HuggingFace("KimiLinearForCausalLM", mixer="self_attn")
plan = partial(construct, has_reflections=False)


def build(plan: StagePlan, dtype: Any) -> Any:
    """Return `KimiLinearForCausalLM` with the plan in its first layers."""
    return build_layers(
        "kimi_linear", "KimiLinear", plan, dtype, 1, _write_heads, mixer_name="self_attn",
        mlp_layer_types=["dense"] * (len(plan.stages) + 1),
        linear_num_heads=plan.n_heads, linear_head_dim=max(*sizes(plan), power_of_four(plan.n_heads)),
        **dict.fromkeys(("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"), 8),
        **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id")),
    )  # fmt: skip


def _write_heads(layer: Any, weights: Mixer) -> None:
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
    wide.write({"alpha": forget.f_a_proj.weight, "beta": layer.b_proj.weight, "out": layer.o_proj.weight})
    write(forget.f_b_proj.weight, np.repeat(np.eye(n), d, axis=0))
    write(layer.conv1d.weight.data[:, 0], wide.convolution)
    layer.o_norm.weight.data.fill_(1)
