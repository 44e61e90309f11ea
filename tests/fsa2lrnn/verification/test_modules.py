"""Every verifier names what it does not model and refuses it; each check has a mutant."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from fsa2lrnn import certify, check, compile_machine, prove_equivalent, zoo
from fsa2lrnn.compile.lower import lower
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.nn.gate import Gate, TableGate
from fsa2lrnn.nn.layers import LAYERS, BlockLayer, register
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.verification.modelled import check_modelled
from verify import mutants

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


def outside_the_parameters(model):
    first = model.readout[0]
    weight = first._parameters.pop("weight").detach()
    first.weight = weight
    return model


def put(path, kind, make):
    """The tensor at a path replaced by what `make` makes of it, past the checks of `nn.Module`."""

    def change(model):
        parent, _, name = path.rpartition(".")
        table = getattr(model.get_submodule(parent), kind)
        table[name] = make(table[name])
        return model

    return change


def parameter(make, path="readout.0.weight"):
    return put(path, "_parameters", lambda old: nn.Parameter(make(old.detach()), requires_grad=False))


def state_dict_hook(model):
    model.register_state_dict_post_hook(lambda *_: None)
    return model


CHANGES = {
    r"norms\.1\.eps = 0\.1, its configuration makes it 1e-05": changed("norms.1.eps", 0.1),
    r"layers\.0\.transition\.1 is of type GELU, its configuration makes it ReLU": changed(
        "layers.0.transition.1", nn.GELU()
    ),
    r"readout\.1 is of type Dropout": changed("readout.1", nn.Dropout()),
    r"readout\.2 has as parameters weight, its configuration makes it weight, bias": changed("readout.2.bias", None),
    r"norms\.2 is of type RMSNorm": changed("norms.2", nn.RMSNorm(4)),
    r"norms\.0 has as parameters nothing": changed("norms.0", nn.LayerNorm(4, elementwise_affine=False)),
    r"norms\.0\.weight has the shape \(2,\) of torch\.float32": parameter(lambda w: w[:2].clone(), "norms.0.weight"),
    "norms has as modules 0, its configuration makes it 0, 1, 2": changed("norms", nn.ModuleList([nn.LayerNorm(4)])),
    r"embedding is of type EmbeddingBag": changed("embedding", nn.EmbeddingBag(2, 4)),
    r"embedding\.max_norm = 1\.0": changed("embedding.max_norm", 1.0),
    r"readout is of type Linear": changed("readout", nn.Linear(4, 2)),
    "has as modules embedding, layers, norms, readout, dropout": changed("dropout", nn.Dropout()),
    "it is of type Doubling": recast,
    r"layers\.1 is of type Odd": recast_layer,
    r"layers\.0\.transition has forward_hooks": hooked("forward_hook"),
    r"layers\.0\.transition has forward_pre_hooks": hooked("forward_pre_hook"),
    r"layers\.0\.transition has backward_hooks": hooked("full_backward_hook"),
    r"layers\.0\.transition has backward_pre_hooks": hooked("full_backward_pre_hook"),
    r"the model\._state_dict_hooks = ": state_dict_hook,
    r"readout\.0 is of type ParametrizedLinear": lambda model: parametrizations.weight_norm(model.readout[0]) and model,
    "readout has the attribute forward, unlike a new one": own_forward,
    "the model has the attribute _read, unlike a new one": own_method,
    r"layers\.1 has the attribute takes_index, unlike a new one": changed("layers.1.takes_index", False),
    "the model has the attribute _compiled_call_impl, unlike": lambda model: model.compile(backend="eager") or model,
    r"layers\.0\.mask is of type Tagged: only Tensor is modelled": tagged,
    r"layers\.0\.rule = 'none', its configuration makes it 'clip'": changed("layers.0.rule", "none"),
    r"layers\.1\.p = 1e\+39, its configuration makes it 1\.2": changed("layers.1.p", 1e39),
    r"layers\.0\._block_sizes = \(1, 2\), its configuration makes it \(2, 2\)": changed(
        "layers.0._block_sizes", (1, 2)
    ),
    r"layers\.1\.mask is not that of blocks of sizes \(2, 2\)": changed(
        "layers.1.mask", torch.tensor([[True, False], [True, True]])
    ),
    "of the dtypes float32, float64": lambda model: model.readout.double() and model,
    r"readout\.0 has as parameters bias, .*readout\.0 has the attribute weight": outside_the_parameters,
    r"the model has the attribute other, unlike a new one": changed("other", torch.zeros(2)),
    r"readout\.0\.weight is of type Tagged: only Parameter is modelled": put(
        "readout.0.weight", "_parameters", lambda old: old.detach().as_subclass(Tagged)
    ),
    r"readout has as modules 2, 1, 0": lambda model: (
        model.readout._modules.update({name: model.readout._modules.pop(name) for name in "210"}) or model
    ),
    r"readout\.0\.weight does not lie in memory as a new tensor": parameter(lambda w: w.T.contiguous().T),
    r"readout\.2\.weight does not lie in memory": parameter(lambda w: w.to_sparse(), "readout.2.weight"),
    r"norms\.0\.bias does not lie in memory": parameter(lambda w: w[:1].expand(4), "norms.0.bias"),
    r"readout\.2\.bias has the shape \(2,\) of torch\.int64": parameter(lambda w: w.long(), "readout.2.bias"),
    r"layers\.0\._non_persistent_buffers_set = ": changed("layers.0._non_persistent_buffers_set", set()),
    "its configuration is of type dict": changed("config", {}),
    r"layers\.0\.transition\.0\.weight has the shape \(5, 4\) of torch\.float32, its configuration makes it \(7, 4\)": (
        lambda model: changed("config", replace(model.config, layers=(BlockLayerConfig((2, 2), 7, 5),) * 2))(model)
    ),
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
    r"layers\.0 has as modules transition, value, its configuration makes it transition:": changed(
        "layers.0.value", Gate(2, 5, 4)
    ),
    r"transition is of type Softened, its configuration makes it (Table)?Gate": changed(
        "layers.0.transition", Softened(2, 8)
    ),
    r"transition has as parameters table, bias, its configuration makes it table:": changed(
        "layers.0.transition.bias", nn.Parameter(torch.zeros(8))
    ),
    r"transition has as modules 0, its configuration makes it nothing": changed(
        "layers.0.transition.0", nn.Linear(2, 2, bias=False)
    ),
    r"readout is of type TableGate": changed("readout", TableGate(4, 2)),
    "layers.0.rule = 'clip', its configuration makes it 'onehot'": changed("layers.0.rule", "clip"),
}


@pytest.mark.parametrize("message", HARD_CHANGES)
def test_hard_layers_are_modelled_and_changed_ones_are_not(message):
    assert check_modelled(hard()) == check_modelled(hard("relu")) == ()
    with pytest.raises(UnsupportedFormat, match=message):
        check_modelled(HARD_CHANGES[message](hard()))


def test_hooks_and_inherited_methods_are_refused_and_what_programs_leave_is_not():
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        with pytest.raises(UnsupportedFormat, match="torch has forward_hooks for all modules"):
            check_modelled(learned())
    finally:
        handle.remove()
    model = learned()
    model.train_mark, model.layers[0].mark = True, ("a", 1)
    shared = torch.empty(8)
    for norm in model.norms[:2]:  # tensors that share memory are read as they are
        norm._parameters["bias"] = nn.Parameter(shared[:4].zero_())
    assert check_modelled(model.eval().requires_grad_(False)) == ()


@pytest.mark.long
def test_judges_refuse_and_tables_are_plain_tensors():
    model = compile_machine(PARITY)
    certificate = certify(model, PARITY)
    for change in (own_forward, outside_the_parameters):
        broken = change(copy.deepcopy(model))
        for judge in (prove_equivalent, certify, lambda model, _: check(certificate, model)):
            with pytest.raises(
                UnsupportedFormat, match=r"readout has the attribute forward|readout\.0 has as parameters bias"
            ):
                judge(broken, PARITY)
    tables = switched(compile_machine(PARITY))
    certificate = certify(tables, PARITY)
    tagged_tables = replace(tables, A=tables.A.as_subclass(Tagged))
    for judge in (certify, lambda tables, _: check(certificate, tables)):
        with pytest.raises(UnsupportedFormat, match="A is of type Tagged: only Tensor or Parameter is modelled"):
            judge(tagged_tables, PARITY)

    class Other(type(tables)):
        pass

    with pytest.raises(UnsupportedFormat, match="the tables are of type Other"):
        certify(Other(**vars(tables)), PARITY)


INDICES = {"layers.0.next_state": 2, "layers.0.start": 2, "embedding.cell": 2, "readout.output": 2}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("entry", [-1, 2, 2**40])
def test_indices_out_of_range_are_refused(name, entry):
    """Scans look them up without a check: one of −1 was proved, and then raised or read elsewhere."""
    model = compile_machine(PARITY, layout="index")
    model.get_buffer(name).view(-1)[0] = entry
    limit = INDICES[name] - 1
    with pytest.raises(UnsupportedFormat, match=rf"{name} holds {entry}, but its entries run 0\.\.{limit}"):
        prove_equivalent(model, PARITY)


@pytest.mark.parametrize("layout", ["dense", "index"])
def test_what_we_make_is_modelled(layout):
    assert check_modelled(compile_machine(PARITY, layout=layout).double()) == ()
    assert check_modelled(compile_machine(zoo.sum_mod(5), layout="dense").to(torch.bfloat16).eval()) == ()


def test_a_layer_of_ones_own_is_believed_and_named(monkeypatch):
    class OwnConfig(BlockLayerConfig):
        pass

    class Own(BlockLayer):
        Config = OwnConfig

    monkeypatch.setattr("fsa2lrnn.nn.layers.LAYERS", LAYERS)
    register("own:Own", Own)
    try:
        model = LRNN(LRNNConfig(("a",), (0,), (OwnConfig((2,), 3, 3),)))
        assert check_modelled(model) == ("own:Own",)
    finally:
        del LAYERS.loaded["own:Own"]


def test_subclasses_are_refused_mutants_included(stacks):
    model = lower(stacks["registers"][0])
    assert check_modelled(model) == ()
    with pytest.raises(UnsupportedFormat, match="it is of type _ShiftsInZeros, a subclass that may compute"):
        check_modelled(mutants.shift_by_zeros(model))
