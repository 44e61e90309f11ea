"""Write plans into Qwen3.5's Gated DeltaNet, `transformers.models.qwen3_5`: the recurrence of Qwen3-Next.

What one step executes: the step of `qwen3_next`, with one projection per input and dense units in place of experts.
Classes: Qwen3_5GatedDeltaNet, Qwen3_5ForCausalLM.
"""

from __future__ import annotations

from typing import Any

from fsa2lrnn.extra.huggingface import qwen3_next
from fsa2lrnn.extra.huggingface.declared import ExternalLayer
from fsa2lrnn.extra.huggingface.gated_delta import Mixer, build_layers, head_settings
from fsa2lrnn.extra.huggingface.huggingface import HuggingFace
from fsa2lrnn.extra.huggingface.plan import StagePlan
from fsa2lrnn.extra.huggingface.stream import write

LAYER = ExternalLayer("qwen3.5", tried="transformers 5.23.0")
CODE = HuggingFace("Qwen3_5ForCausalLM")
plan = qwen3_next.plan


def build(plan: StagePlan, dtype: Any) -> Any:
    """Return `Qwen3_5ForCausalLM` with the plan in its first layers."""
    # Norms of the stream are stored minus 1.
    return build_layers(
        "qwen3_5", "Qwen3_5", plan, dtype, 1, _write_heads, norm=0.0, config="TextConfig", **head_settings(plan)
    )


def _write_heads(layer: Any, weights: Mixer) -> None:
    sizes = [part[..., 0].size for part in (weights.q, weights.k, weights.v)]
    q, k, v = layer.in_proj_qkv.weight.data.split(sizes)
    gates = {"gate": layer.in_proj_z.weight, "beta": layer.in_proj_b.weight, "alpha": layer.in_proj_a.weight}
    weights.write({"q": q, "k": k, "v": v, **gates, "out": layer.out_proj.weight})
    write(layer.conv1d.weight.data[:, 0], weights.convolution)
    layer.norm.weight.data.fill_(1)
