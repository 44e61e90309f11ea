"""What is not modelled is refused by its name, by every judge; each way to change what a model does has a mutant."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from fsa2lrnn import certify, check, compile_machine, prove_equivalent, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.judge.modules import check_modelled
from fsa2lrnn.lower import lower
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.gate import Gate, TableGate
from fsa2lrnn.lrnn.layers import LAYERS, BlockLayer, register
from fsa2lrnn.testing import mutants

PARITY = zoo.parity()


def learned(**changes):
    torch.manual_seed(0)
    settings = {"normalisation": "clip", "layer_norm": True, "connection": "residual", **changes}
    return LRNN(LRNNConfig(("a", "b"), (False, True), (BlockLayerConfig((2, 2), 5, 5),) * 2, 4, 4, **settings))


class Doubling(LRNN):
    def forward(self, tokens, method="auto"):
        return -super().forward(tokens, method)


class Odd(BlockLayer):
    pass


class Tagged(torch.Tensor):
    pass


def own_forward(model):
    model.readout.forward = lambda x: -x
    return model


def own_method(model):
    model._read = lambda stream: -stream
    return model


def tagged(model):
    model.layers[0].mask = model.layers[0].mask.as_subclass(Tagged)
    return model


def changed(path, value):
    def change(model):
        parent, _, name = path.rpartition(".")
        setattr(model.get_submodule(parent), name, value)
        return model

    return change


def hooked(kind):
    def change(model):
        getattr(model.layers[0].transition, f"register_{kind}")(lambda *_: None)
        return model

    return change


def recast(model):
    model.__class__ = Doubling
    return model


def recast_layer(model):
    model.layers[1].__class__ = Odd
    return model


CHANGES = {
    "eps = 0.1: 1e-05 is modelled": changed("norms.1.eps", 0.1),
    r"layers\.0\.transition is Linear–GELU–Linear": changed("layers.0.transition.1", nn.GELU()),
    r"readout is Linear–Dropout–Linear": changed("readout.1", nn.Dropout()),
    r"readout lacks a bias": changed("readout.2.bias", None),
    r"norms\.2 is of type RMSNorm": changed("norms.2", nn.RMSNorm(4)),
    r"norms\.0 is LayerNorm\(\(4,\), eps=1e-05, elementwise_affine=False": changed(
        "norms.0", nn.LayerNorm(4, elementwise_affine=False)
    ),
    "norms holds 1 modules, layer_norm = True asks for 3": changed("norms", nn.ModuleList([nn.LayerNorm(4)])),
    r"embedding is of type EmbeddingBag": changed("embedding", nn.EmbeddingBag(2, 4)),
    r"embedding\.max_norm = 1\.0": changed("embedding.max_norm", 1.0),
    r"readout is of type Linear": changed("readout", nn.Linear(4, 2)),
    r"has the modules \['dropout', 'embedding'": changed("dropout", nn.Dropout()),
    "it is of type Doubling": recast,
    r"layers\.1 is of type Odd": recast_layer,
    r"layers\.0\.transition has forward_hooks": hooked("forward_hook"),
    r"layers\.0\.transition has forward_pre_hooks": hooked("forward_pre_hook"),
    r"layers\.0\.transition has backward_hooks": hooked("full_backward_hook"),
    r"layers\.0\.transition has backward_pre_hooks": hooked("full_backward_pre_hook"),
    r"readout\.0 is parametrized": lambda model: parametrizations.weight_norm(model.readout[0]) and model,
    "readout has its own forward in place": own_forward,
    "the model has its own _read in place": own_method,
    r"layers\.0\.mask is of a type of its own, Tagged": tagged,
    r"layers\.0\.rule = 'none', its configuration makes it 'clip'": changed("layers.0.rule", "none"),
    r"layers\.1\.p = 1e\+39, its configuration makes it 1\.2": changed("layers.1.p", 1e39),
    r"layers\.0\._block_sizes = \(1, 2\), its configuration makes it \(2, 2\)": changed(
        "layers.0._block_sizes", (1, 2)
    ),
    r"layers\.1\.mask is not that of blocks of sizes \(2, 2\)": changed(
        "layers.1.mask", torch.tensor([[True, False], [True, True]])
    ),
    "of the dtypes float32, float64": lambda model: model.readout.double() and model,
}


@pytest.mark.parametrize("message", CHANGES)
def test_what_is_not_modelled_is_refused_by_name(message):
    assert check_modelled(learned()) == ()
    with pytest.raises(UnsupportedFormat, match=message):
        check_modelled(CHANGES[message](learned()))


def hard(gate="table"):
    layer = BlockLayerConfig((2, 2), 5, 5, gate=gate)
    return LRNN(LRNNConfig(("a", "b"), (False, True), (layer,), embedding_dim=2, normalisation="onehot"))


class Softened(TableGate):
    pass


HARD_CHANGES = {
    "under normalisation='onehot' is modelled without a gate of v": changed("layers.0.value", Gate(2, 5, 4)),
    r"transition is of type Softened: Gate and TableGate": changed("layers.0.transition", Softened(2, 8)),
    r"transition holds table, bias: a table gate is its table alone": changed(
        "layers.0.transition.bias", nn.Parameter(torch.zeros(8))
    ),
    r"transition holds table, 0\.weight": changed("layers.0.transition.0", nn.Linear(2, 2, bias=False)),
    r"readout is of type TableGate": changed("readout", TableGate(4, 2)),
    "under normalisation='clip' is modelled with a gate of v": changed("layers.0.rule", "clip"),
}


@pytest.mark.parametrize("message", HARD_CHANGES)
def test_hard_layers_are_modelled_and_changed_ones_are_not(message):
    assert check_modelled(hard()) == check_modelled(hard("relu")) == ()
    with pytest.raises(UnsupportedFormat, match=message):
        check_modelled(HARD_CHANGES[message](hard()))


def test_hooks_of_all_modules_are_refused():
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        with pytest.raises(UnsupportedFormat, match="torch has forward_hooks for all modules"):
            check_modelled(learned())
    finally:
        handle.remove()


def test_every_judge_refuses():
    model = compile_machine(PARITY)
    certificate = certify(model, PARITY)
    broken = own_forward(copy.deepcopy(model))
    for judge in (prove_equivalent, certify, lambda model, _: check(certificate, model)):
        with pytest.raises(UnsupportedFormat, match="readout has its own forward"):
            judge(broken, PARITY)


@pytest.mark.parametrize("layout", ["dense", "index"])
def test_what_we_make_is_modelled(layout):
    assert check_modelled(compile_machine(PARITY, layout=layout).double()) == ()
    assert check_modelled(compile_machine(zoo.sum_mod(5), layout="dense").to(torch.bfloat16).eval()) == ()


def test_a_layer_of_ones_own_is_believed_and_named(monkeypatch):
    class OwnConfig(BlockLayerConfig):
        pass

    class Own(BlockLayer):
        Config = OwnConfig

    monkeypatch.setattr("fsa2lrnn.lrnn.layers.LAYERS", LAYERS)
    register("own:Own", Own)
    try:
        model = LRNN(LRNNConfig(("a",), (0,), (OwnConfig((2,), 3, 3),)))
        assert check_modelled(model) == ("own:Own",)
    finally:
        del LAYERS["own:Own"]


def test_a_mutant_is_looked_at_and_no_other_type(stacks):
    model = lower(stacks["registers"][0])
    check_modelled(mutants.shift_by_zeros(model))

    class Stranger(LRNN):
        pass

    with pytest.raises(UnsupportedFormat, match="it is of type Stranger, of which nothing is known"):
        check_modelled(Stranger(model.config))
