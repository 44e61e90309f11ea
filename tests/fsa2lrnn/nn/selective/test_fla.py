"""Weights carried to modules of flash-linear-attention and back, on stand-ins with the same parameters."""

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import fsa2lrnn
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import LRNN, LRNNConfig
from fsa2lrnn.nn.layers.hard import HardSliceConfig
from fsa2lrnn.nn.wrapped import to_fla

from .published import OUT


def test_other_modules_are_refused_and_rounding_is_seen():
    config = HardSliceConfig(1, "relu", hidden=4, size=2)
    model = LRNN(LRNNConfig("ab", (0, 1), (config,), embedding_dim=3))
    layer, rows = model.recurrences[0], model.first_inputs().detach()
    assert layer.is_exact(rows, 2.0**24)
    with torch.no_grad():
        gate = layer.transition.weights
        gate.W2.copy_(gate.W2[:1].expand_as(gate.W2))
        gate.b2.copy_(gate.b2[:1].expand_as(gate.b2))
    assert not layer.is_exact(rows, 2.0**24)
    with pytest.raises(UnsupportedFormat, match="Linear is not one of GatedDeltaNet, GatedDeltaProduct"):
        fsa2lrnn.wrap_fla(nn.Linear(2, 2))
    module = stand_in("gated_deltanet")
    del module.conv_size
    with pytest.raises(UnsupportedFormat, match="GatedDeltaNet has no conv_size: this version"):
        fsa2lrnn.wrap_fla(module)
    with pytest.raises(UnsupportedFormat, match="the weights of KDALayer do not fit"):
        to_fla(fsa2lrnn.wrap_fla(stand_in("kda")), stand_in("gated_deltanet"))


SIZES = {"hidden_size": 8, "num_heads": 2, "head_dim": 4}
CONV = {"use_short_conv": True, "conv_size": 4, "num_v_heads": 2}
GDN = {**CONV, "head_v_dim": 8, "allow_neg_eigval": False, "use_gate": True}
MODULES = {
    "gated_deltanet": ("GatedDeltaNet", GDN),
    "deltaproduct": (
        "GatedDeltaProduct",
        {**CONV, "head_v_dim": 4, "allow_neg_eigval": True, "use_output_gate": True, "num_householder": 3,
         "use_forget_gate": False},
    ),
    "kda": ("KimiDeltaAttention", {**CONV, "head_v_dim": 4, "allow_neg_eigval": True, "safe_gate": False}),
    "gdn2": ("GatedDeltaNet2", {**CONV, "head_v_dim": 4, "allow_neg_eigval": False}),
    "rwkv7_fla": (
        "RWKV7Attention",
        {"layer_idx": 0, "head_v_dim": 4, "decay_low_rank_dim": 3, "a_low_rank_dim": 3, "gate_low_rank_dim": 5},
    ),
}  # fmt: skip


def stand_in(name, changes=None):
    """A module with the class name, settings and weights of fla's."""
    classname, settings = MODULES[name]
    module = type(classname, (nn.Module,), {})()
    for setting, value in {**SIZES, **settings, **(changes or {})}.items():
        setattr(module, setting, value)
    for key, weight in load_file(OUT / f"{name}.safetensors").items():
        if key.startswith("param."):
            *path, last = key.removeprefix("param.").split(".")
            place = module
            for part in path:
                if not hasattr(place, part):
                    place.add_module(part, nn.Module())
                place = place.get_submodule(part)
            place.register_parameter(last, nn.Parameter(weight.double()))
    return module


@pytest.mark.parametrize("name", MODULES)
def test_weights_there_and_back(name):
    module, numbers = stand_in(name), load_file(OUT / f"{name}.safetensors")
    layer = fsa2lrnn.wrap_fla(module)
    u = numbers["input"].double()
    torch.testing.assert_close(layer(u, layer.initial_state(len(u)))[0].float(), numbers["output"])
    before = {key: weight.clone() for key, weight in module.state_dict().items()}
    with torch.no_grad():
        for weight in module.parameters():
            weight.zero_()
    to_fla(layer, module)
    assert all(torch.equal(weight, before[key]) for key, weight in module.state_dict().items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_v_heads": 4}, "GatedDeltaNet with num_v_heads = 4: our layer gated_deltanet has 2"),
        ({"conv_bias": True}, "with conv_bias = True"),
        ({"use_gate": False}, "g_proj.weight is left over"),
        ({"hidden_size": 16}, r"q_proj.weight has shape \(8, 8\), not \(8, 16\)"),
    ],
)
def test_what_ours_lacks_is_refused(changes, message):
    with pytest.raises(UnsupportedFormat, match=message):
        fsa2lrnn.wrap_fla(stand_in("gated_deltanet", changes))
