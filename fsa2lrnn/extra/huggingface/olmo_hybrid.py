"""OLMo-Hybrid's Gated DeltaNet, `transformers.models.olmo_hybrid`: β in [0, 2], so that a letter can reflect.

What one step executes: q, k, v = SiLU(conv4(Wx)); q, k divided by √(Σ² + 1e-6); β = 2σ(W_b x); log α =
−exp(A_log)·softplus(W_a x + b); S ← αS, S ← S + βk(v − Sᵀk)ᵀ; out = W_o(RMSNorm(Sᵀq/√d_k)·SiLU(W_g x)). Transition: α(I
− βkkᵀ) with α in [0, 1], β in [0, 2], ‖k‖ ≤ 1: symmetric, eigenvalues in [−1, 1], all reached. A word starts from S =
0; convolved: q, k, v, over 4 letters; α, β and the gate read the current letter. Saturated, hence exact, gates: σ at
±512 and 0; softplus(−512) = 0 and exp(−512) = 0; SiLU(x) = x from 17 on. Classes: OlmoHybridGatedDeltaNet,
OlmoHybridForCausalLM.
"""

from __future__ import annotations

from typing import Any

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.declared import ExternalLayer
from fsa2lrnn.extra.huggingface.gated_delta import SHOWN, head_settings, mixer, model_settings, sizes, write_units
from fsa2lrnn.extra.huggingface.huggingface import HuggingFace
from fsa2lrnn.extra.huggingface.observed.transformers_models import GatedDeltaObserver
from fsa2lrnn.extra.huggingface.packages import modeling, transformers
from fsa2lrnn.extra.huggingface.plan import StagePlan
from fsa2lrnn.extra.huggingface.stream import blank, layout, write, write_around

LAYER = ExternalLayer("olmo-hybrid", tried="transformers 5.23.0")
CODE = HuggingFace("OlmoHybridForCausalLM")
OBSERVER = GatedDeltaObserver("olmo_hybrid", "OlmoHybrid", "OlmoHybridGatedDeltaNet")
_LARGEST_BETA = 2


def plan(machine: MooreMachine) -> StagePlan:
    """Return a plan of reflections, registers, both in parallel, or registers behind windows; raise as `construct`."""
    return construct(machine, has_reflections=True)


@transformers()
def build(plan: StagePlan, dtype: Any) -> Any:
    """Return `OlmoHybridForCausalLM` with the plan in its first layers; the last one attends to zeros."""
    code, where, n_stages = modeling("olmo_hybrid"), layout(plan), len(plan.stages)
    size = plan.n_heads * sizes(plan)[0]
    config = code.OlmoHybridConfig(
        **model_settings(plan),
        **head_settings(plan),
        head_dim=2,
        rope_parameters=None,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = code.OlmoHybridForCausalLM(config).to(dtype).eval()
    blank(model)
    write_around(model.model.embed_tokens, model.lm_head, plan, SHOWN)
    model.model.norm.weight.data.fill_(1)
    for number in range(n_stages):
        block = model.model.layers[number]
        layer, kernel = block.linear_attn, config.linear_conv_kernel_dim
        weights = mixer(plan, number, _LARGEST_BETA, kernel)
        block.input_layernorm.weight.data.fill_(1)
        block.post_attention_layernorm.weight.data.fill_(1)
        layer.o_norm.weight.data.fill_(1)
        for projection, rows in (
            (layer.q_proj, weights.q),
            (layer.k_proj, weights.k),
            (layer.v_proj, weights.v),
            (layer.g_proj, weights.gate),
            (layer.a_proj, weights.alpha),
            (layer.b_proj, weights.beta),
        ):
            write(projection.weight, rows.reshape(-1, where.width))
        write(layer.o_proj.weight, weights.out.reshape(where.width, -1))
        layer.conv1d.weight.data[: 2 * size, 0, -1] = 1
        write(layer.conv1d.weight.data[2 * size :, 0], weights.taps.reshape(-1, kernel))
        write_units(block.mlp, plan, number)
    return model
