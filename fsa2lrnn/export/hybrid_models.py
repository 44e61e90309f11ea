"""Write plans into hybrids of transformers whose recurrent layers are the mixers of Mamba or Mamba-2.

Their mixers execute what `mamba_models` states; only names of settings differ, and what stands beside the mixers:

- Bamba, Falcon-H1, Granite 4: an MLP in each layer carries the units, so that a stage is one layer. In Granite its
  halves are a shared MLP and experts. All multipliers of Falcon-H1 and Granite are 1.
- Nemotron-H: MLPs, with relu² and without a gate, and mixtures of experts are layers of their own, which alternate
  here; a stage is such a layer after a mixer. `time_step_min` is 1e-30: a call of several tokens raises Δ to it, a call
  of one does not, and exp(−1e-30) = 1.
- Zamba2: a stage is two mixers, as in Mamba-2, because the output of the shared block is the input of a mixer, never
  added to the stream. `time_step_min` is as in Nemotron-H.
- Jamba: an MLP or a mixture of experts in each layer carries the units. Its mixers are those of Falcon-Mamba.

Attention, in the last layer (Falcon-H1: in every layer; Zamba2: in the shared block before the last mixer) has zero
weights.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import torch

from fsa2lrnn.export.gated_delta import layer_types, write_mlp
from fsa2lrnn.export.huggingface import HuggingFace
from fsa2lrnn.export.mamba_models import (
    TRIED,
    in_pairs,
    mamba2_sizes,
    mamba_model,
    mamba_sizes,
    plan_without_reflections,
    write_mamba2_heads,
    write_mamba2_units,
    write_mamba_heads,
)
from fsa2lrnn.export.packages import Target
from fsa2lrnn.export.plan import StagePlan
from fsa2lrnn.export.stream import FIRES, n_units, write, write_experts

_ATTENTION = {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 8}
_LEAST_STEP = 1e-30  # of Δ; its logarithm is taken, so that it is not 0


def _mamba_settings(plan: StagePlan) -> dict[str, Any]:
    """Return the settings of Mamba-2 under the names that Bamba, Falcon-H1 and Granite share."""
    heads, d, expand = mamba2_sizes(plan)
    return {
        "mamba_n_heads": heads, "mamba_d_head": d, "mamba_n_groups": heads, "mamba_d_state": 1, "mamba_expand": expand,
        "mamba_chunk_size": 64, "intermediate_size": n_units(plan), **_ATTENTION,
    }  # fmt: skip


def _bamba(plan: StagePlan, dtype: torch.dtype) -> Any:
    types = layer_types(plan)
    return mamba_model(
        "bamba", "Bamba", plan, dtype, write_mamba2_heads, write_mlp, _mixers_and_mlps, num_hidden_layers=len(types),
        attn_layer_indices=[i for i, kind in enumerate(types) if kind == "full_attention"], **_mamba_settings(plan),
    )  # fmt: skip


def _falcon_h1(plan: StagePlan, dtype: torch.dtype) -> Any:
    return mamba_model(
        "falcon_h1", "FalconH1", plan, dtype, write_mamba2_heads, write_mlp, _mixers_and_mlps,
        num_hidden_layers=len(plan.stages), mamba_d_ssm=None, mamba_rms_norm=True, mamba_norm_before_gate=False,
        **_mamba_settings(plan),
    )  # fmt: skip


def _mixers_and_mlps(layers: Any) -> list[tuple[Any, Any]]:
    return [(layer.mamba, layer.feed_forward) for layer in layers if hasattr(layer, "mamba")]


def _granite(plan: StagePlan, dtype: torch.dtype) -> Any:
    types = layer_types(plan)
    return mamba_model(
        "granitemoehybrid", "GraniteMoeHybrid", plan, dtype, write_mamba2_heads, _write_granite_units,
        lambda layers: [(layer.mamba, layer) for layer in layers if layer.mamba is not None],
        num_hidden_layers=len(types), layer_types=types, num_local_experts=plan.shape.experts, num_experts_per_tok=2,
        shared_intermediate_size=n_units(plan), **_mamba_settings(plan),
    )  # fmt: skip


def _write_granite_units(layer: Any, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> None:
    """Write units into the shared MLP of a layer; if it has experts too, half of a symbol comes from them."""
    shared, sparse = layer.shared_mlp, layer.block_sparse_moe
    if sparse is not None:
        down = down / 2
        write_experts(sparse.router.weight, sparse.experts, gate, up, down)
    write(shared.input_linear.weight, gate)
    write(shared.input_linear.weight[shared.hidden_size :], up)
    write(shared.output_linear.weight, down)


def _nemotron_h(plan: StagePlan, dtype: torch.dtype) -> Any:
    (heads, d, expand), size = mamba2_sizes(plan), n_units(plan)
    unit_layers = cycle(["moe", "mlp"] if plan.shape.experts else ["mlp"])
    pairs = {"linear_attention": lambda: ["linear_attention", next(unit_layers)]}
    types = [kind for one in layer_types(plan) for kind in pairs.get(one, lambda: ["full_attention"])()]
    return mamba_model(
        "nemotron_h", "NemotronH", plan, dtype, write_mamba2_heads, _write_nemotron_units,
        lambda layers: in_pairs([layer.mixer for layer in layers if layer.block_type != "full_attention"]),
        layers_block_type=types, mamba_num_heads=heads, mamba_head_dim=d, n_groups=heads, ssm_state_size=1,
        expand=expand, chunk_size=64, time_step_min=_LEAST_STEP, intermediate_size=size,
        moe_intermediate_size=size, moe_shared_expert_intermediate_size=size, n_routed_experts=plan.shape.experts or 2,
        num_experts_per_tok=2, **_ATTENTION,
    )  # fmt: skip


def _write_nemotron_units(module: Any, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> None:
    """Write units into an MLP with relu², or in halves into the shared MLP and the experts of a mixture."""
    down = down / (FIRES / 2)
    if hasattr(module, "experts"):
        down = down / 2
        write_experts(module.gate.weight, module.experts, gate, up, down)
        module = module.shared_experts
    write(module.up_proj.weight, gate)
    write(module.down_proj.weight, down)


def _zamba2(plan: StagePlan, dtype: torch.dtype) -> Any:
    heads, _, expand = mamba2_sizes(plan)
    types = [kind for one in layer_types(plan) for kind in (["hybrid"] if one == "full_attention" else [one, one])]
    return mamba_model(
        "zamba2", "Zamba2", plan, dtype, write_mamba2_heads, write_mamba2_units,
        lambda layers: in_pairs([layer.mamba for layer in layers if hasattr(layer, "mamba")]),
        num_hidden_layers=len(types), layers_block_type=types, n_mamba_heads=heads, mamba_ngroups=heads,
        mamba_d_state=1, mamba_expand=expand, chunk_size=64, time_step_min=_LEAST_STEP, intermediate_size=8,
        adapter_rank=8, num_attention_heads=8,
    )  # fmt: skip


def _jamba(plan: StagePlan, dtype: torch.dtype) -> Any:
    (expand, rank), n, every = mamba_sizes(plan), len(plan.stages), plan.shape.attention or len(plan.stages)
    return mamba_model(
        "jamba", "Jamba", plan, dtype, write_mamba_heads, _write_jamba_units, _mixers_and_mlps,
        num_hidden_layers=n + n // every, attn_layer_period=every + 1, attn_layer_offset=every, mamba_expand=expand,
        mamba_dt_rank=rank, mamba_d_state=1, intermediate_size=n_units(plan),
        num_experts=plan.shape.experts or 1, num_experts_per_tok=2, num_attention_heads=8, num_key_value_heads=1,
        use_mamba_kernels=False,  # releases up to 5.4 run on a CPU with this setting alone
    )  # fmt: skip


def _write_jamba_units(module: Any, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> None:
    """Write units into an MLP, or into the experts that every second layer has if there are any."""
    if hasattr(module, "experts"):
        write_experts(module.router.weight, module.experts, gate, up, down)
    else:
        write_mlp(module, gate, up, down)


def _target(name: str, kind: str, build: Callable[[StagePlan, torch.dtype], Any], **more: Any) -> Target:
    layers_a_stage = more.pop("layers_a_stage", 1)
    code = HuggingFace(f"{kind}ForCausalLM", **more)
    return Target(name, TRIED, code, plan_without_reflections, build, layers_a_stage)


TARGETS = (
    _target("bamba", "Bamba", _bamba),
    _target("falcon-h1", "FalconH1", _falcon_h1),
    _target("granite-moe-hybrid", "GraniteMoeHybrid", _granite),
    _target("nemotron-h", "NemotronH", _nemotron_h, layers_a_stage=2),
    _target("zamba2", "Zamba2", _zamba2, layers_a_stage=2),
    _target("jamba", "Jamba", _jamba, continues_by_pieces=False),
)
