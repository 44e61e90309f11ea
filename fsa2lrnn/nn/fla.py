"""Conversion between layers of flash-linear-attention and layers of this library, with the same weight names.

Neither direction imports that package or runs its kernels: a module is read by its class name, its settings and its
`state_dict`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.layers import Columns, layer_named
from fsa2lrnn.nn.layers.base import Layer
from fsa2lrnn.nn.layers.matrix_layer import NORM_EPS


class _Counterpart(NamedTuple):
    """The name of our layer, our options by the names of fla's settings, and the settings with a fixed value."""

    layer: str
    options: Mapping[str, str]
    fixed: Mapping[str, Any]


_SHARED = {"conv_bias": False}
_DELTA = {"allow_neg_eigval": "neg_eigval"}
_COUNTERPARTS = {
    "GatedDeltaNet": _Counterpart("gated_deltanet", _DELTA | {"use_gate": "gate"}, _SHARED),
    "GatedDeltaProduct": _Counterpart(
        "gated_deltaproduct", _DELTA | {"use_output_gate": "gate", "num_householder": "factors"}, _SHARED
    ),
    "KimiDeltaAttention": _Counterpart("kda", _DELTA, _SHARED | {"safe_gate": False, "lower_bound": None}),
    "GatedDeltaNet2": _Counterpart("gdn2", _DELTA, _SHARED),
    "RWKV7Attention": _Counterpart(
        "rwkv7", {"decay_low_rank_dim": "rank", "gate_low_rank_dim": "gate_rank"}, {"layer_idx": 0}
    ),
}


def wrap_fla(module: nn.Module) -> Layer:
    """Return our layer with the settings and weights of one of flash-linear-attention.

    The classes are GatedDeltaNet, GatedDeltaProduct, KimiDeltaAttention, GatedDeltaNet2 and RWKV7Attention, the last
    as a first layer (`layer_idx` 0). `to_fla` writes the weights back.

    Raises:
        UnsupportedFormat: for another class, for settings that our layer does not have, such as more heads of values
            than of keys, and for weights that do not fit.
    """
    name = type(module).__name__
    counterpart = _COUNTERPARTS.get(name)
    if counterpart is None:
        raise UnsupportedFormat(f"{name} is not one of {', '.join(_COUNTERPARTS)}, which wrap_fla reads")
    kind = counterpart.layer
    if kind == "gated_deltaproduct" and not getattr(module, "use_forget_gate", True):
        kind = "deltaproduct"
    heads = _setting(module, "num_heads")
    fixed = dict(counterpart.fixed)
    if hasattr(module, "num_v_heads"):
        fixed["num_v_heads"] = heads
    hidden, head_dim = _setting(module, "hidden_size"), _setting(module, "head_dim")
    options = {ours: _setting(module, theirs) for theirs, ours in counterpart.options.items()}
    options |= {"heads": heads, "block": head_dim, "outputs": hidden}
    if kind == "rwkv7":
        fixed |= {"head_v_dim": head_dim, "a_low_rank_dim": options["rank"]}
    else:
        options["expand_v"] = _setting(module, "head_v_dim") / head_dim
        options["conv"] = _setting(module, "conv_size") if _setting(module, "use_short_conv") else 0
    for setting, value in fixed.items():
        if (actual := getattr(module, setting, value)) != value:
            raise UnsupportedFormat(f"{name} with {setting} = {actual!r}: our layer {kind} has {value!r}")
    if (eps := getattr(getattr(module, "o_norm", None), "eps", NORM_EPS)) != NORM_EPS:
        raise UnsupportedFormat(f"{name} with norm_eps = {eps}: our layer {kind} has {NORM_EPS}")
    layer_class = layer_named(kind)
    layer = layer_class.build(hidden, layer_class.Config(**options), Columns("none", 2.0))
    weights = module.state_dict()
    _check_names(layer.state_dict(), weights, name)
    layer.load_state_dict(weights)
    return layer.to(next(iter(weights.values())).dtype)


def to_fla(layer: Layer, module: nn.Module) -> None:
    """Write the weights of our layer into one of flash-linear-attention.

    Raises `UnsupportedFormat` unless they have the same parameters.
    """
    weights = layer.state_dict()
    _check_names(module.state_dict(), weights, type(layer).__name__)
    module.load_state_dict(weights)


def _setting(module: nn.Module, name: str) -> Any:
    if not hasattr(module, name):
        raise UnsupportedFormat(f"{type(module).__name__} has no {name}: this version of the package is not supported")
    return getattr(module, name)


@torch.no_grad()
def _check_names(into: Mapping[str, Tensor], weights: Mapping[str, Tensor], name: str) -> None:
    """Raise `UnsupportedFormat` with up to four weights that are missing, left over or of another shape."""
    faults = [f"{key} is missing" for key in into if key not in weights]
    faults += [f"{key} is left over" for key in weights if key not in into]
    faults += [
        f"{key} has shape {tuple(weights[key].shape)}, not {tuple(into[key].shape)}"
        for key in into
        if key in weights and weights[key].shape != into[key].shape
    ]
    if faults:
        raise UnsupportedFormat(f"the weights of {name} do not fit: {'; '.join(faults[:4])}")
