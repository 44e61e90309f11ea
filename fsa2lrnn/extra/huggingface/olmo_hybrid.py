"""Write plans into OLMo-Hybrid's Gated DeltaNet, `transformers.models.olmo_hybrid`: β in [0, 2] allows reflections.

What one step executes: q, k, v = SiLU(conv4(Wx)); q, k divided by √(Σ² + 1e-6); β = 2σ(W_b x); log α =
−exp(A_log)·softplus(W_a x + b); S ← αS, S ← S + βk(v − Sᵀk)ᵀ; out = W_o(RMSNorm(Sᵀq/√d_k)·SiLU(W_g x)). Transition: α(I
− βkkᵀ) with α in [0, 1], β in [0, 2], ‖k‖ ≤ 1: symmetric, eigenvalues in [−1, 1], all reached. A word starts from S =
0; convolved: q, k, v, over 4 letters; α, β and the gate read the current letter. Saturated, hence exact, gates: σ at
±512 and 0; softplus(−512) = 0 and exp(−512) = 0; SiLU(x) = x from 17 on. Classes: OlmoHybridGatedDeltaNet,
OlmoHybridForCausalLM.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.declared import ExternalLayer
from fsa2lrnn.extra.huggingface.gated_delta import Mixer, build_layers, head_settings
from fsa2lrnn.extra.huggingface.huggingface import HuggingFace
from fsa2lrnn.extra.huggingface.plan import StagePlan
from fsa2lrnn.extra.huggingface.stream import write

LAYER = ExternalLayer("olmo-hybrid", tried="transformers 5.23.0")
CODE = HuggingFace("OlmoHybridForCausalLM")
plan = partial(construct, has_reflections=True)


def build(plan: StagePlan, dtype: Any) -> Any:
    """Return `OlmoHybridForCausalLM` with the plan in its first layers."""
    settings = dict.fromkeys(("rope_parameters", "pad_token_id", "bos_token_id", "eos_token_id"))
    return build_layers(
        "olmo_hybrid", "OlmoHybrid", plan, dtype, 2, _write_heads, **head_settings(plan), head_dim=2, **settings
    )


def _write_heads(layer: Any, weights: Mixer) -> None:
    names = {"q": "q", "k": "k", "v": "v", "gate": "g", "alpha": "a", "beta": "b", "out": "o"}
    weights.write({name: layer.get_parameter(f"{short}_proj.weight") for name, short in names.items()})
    write(layer.conv1d.weight.data[:, 0], weights.convolution)
    layer.o_norm.weight.data.fill_(1)
