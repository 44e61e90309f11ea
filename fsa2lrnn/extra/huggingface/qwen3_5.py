"""Qwen3.5's Gated DeltaNet, `transformers.models.qwen3_5`: the recurrence of Qwen3-Next.

What one step executes: the step of `qwen3_next`, with one projection per input and dense units in place of experts.
Classes: Qwen3_5GatedDeltaNet, Qwen3_5ForCausalLM.
"""

from __future__ import annotations

from typing import Any

from fsa2lrnn.extra.huggingface import qwen3_next
from fsa2lrnn.extra.huggingface.declared import ExternalLayer
from fsa2lrnn.extra.huggingface.gated_delta import SHOWN, head_settings, mixer, model_settings, sizes, write_units
from fsa2lrnn.extra.huggingface.huggingface import HuggingFace
from fsa2lrnn.extra.huggingface.observed.transformers_models import GatedDeltaObserver
from fsa2lrnn.extra.huggingface.packages import modeling, transformers
from fsa2lrnn.extra.huggingface.plan import StagePlan
from fsa2lrnn.extra.huggingface.stream import blank, layout, write, write_around

LAYER = ExternalLayer("qwen3.5", tried="transformers 5.23.0")
CODE = HuggingFace("Qwen3_5ForCausalLM")
OBSERVER = GatedDeltaObserver("qwen3_5", "Qwen3_5", "Qwen3_5GatedDeltaNet", "TextModel", "qwen3_5_text")
_LARGEST_BETA = 1
plan = qwen3_next.plan


@transformers()
def build(plan: StagePlan, dtype: Any) -> Any:
    """Return `Qwen3_5ForCausalLM` with the plan in its first layers; the last one attends to zeros."""
    code, where, n_stages = modeling("qwen3_5"), layout(plan), len(plan.stages)
    size = plan.n_heads * sizes(plan)[0]
    config = code.Qwen3_5TextConfig(
        **model_settings(plan),
        **head_settings(plan),
    )
    model = code.Qwen3_5ForCausalLM(config).to(dtype).eval()
    blank(model)  # norms of the stream are stored minus 1, so that zeros are correct for them
    write_around(model.model.embed_tokens, model.lm_head, plan, SHOWN)
    for number in range(n_stages):
        block = model.model.layers[number]
        layer, kernel = block.linear_attn, config.linear_conv_kernel_dim
        weights = mixer(plan, number, _LARGEST_BETA, kernel)
        layer.norm.weight.data.fill_(1)
        write(layer.in_proj_qkv.weight[:size], weights.q.reshape(size, -1))
        write(layer.in_proj_qkv.weight[size : 2 * size], weights.k.reshape(size, -1))
        write(layer.in_proj_qkv.weight[2 * size :], weights.v.reshape(-1, where.width))
        write(layer.in_proj_z.weight, weights.gate.reshape(-1, where.width))
        write(layer.in_proj_b.weight, weights.beta)
        write(layer.in_proj_a.weight, weights.alpha)
        write(layer.out_proj.weight, weights.out.reshape(where.width, -1))
        layer.conv1d.weight.data[: 2 * size, 0, -1] = 1
        write(layer.conv1d.weight.data[2 * size :, 0], weights.taps.reshape(-1, kernel))
        write_units(block.mlp, plan, number)
    return model
