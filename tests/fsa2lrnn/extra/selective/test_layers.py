"""The selective layers: equal to their published code, and all ways to read a word agree."""

import pytest
import torch

from experiments import selective_fixtures
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn import LRNN, LRNNConfig
from fsa2lrnn.lrnn.layer_checks import check_layer
from fsa2lrnn.lrnn.layers import Columns, Shape, layer_named
from fsa2lrnn.lrnn.switched import table_error

STATE = {"reads": "state", "conv": 0}
GATED = [
    ("gated_deltanet", {}),
    ("gated_deltanet", {"conv": 0, "gate": False, "neg_eigval": True}),
    ("deltaproduct", {"factors": 3}),
    ("gated_deltaproduct", {"expand_v": 0.5}),
    ("kda", {}),
    ("gdn2", {"conv": 0}),
    ("mamba2", {}),
    ("mamba2", {"conv": 0}),
    ("mamba3", {"rope": 1.0}),
    ("rwkv7", {"rank": 3}),
    ("pd_ssm", {"dictionary": 3}),
    ("slstm", {}),
    ("slstm", {"conv": 0}),
]
STATES = [
    ("gated_deltanet", {**STATE, "neg_eigval": True}),
    ("deltaproduct", STATE),
    ("gated_deltaproduct", {**STATE, "factors": 3}),
    ("kda", {**STATE, "neg_eigval": True}),
    ("gdn2", STATE),
    ("mamba2", STATE),
    ("rwkv7", {"reads": "state", "rank": 3}),
    ("pd_ssm", {"reads": "state"}),
    ("slice", {}),
    ("slice", {"form": "sparse", "density": 0.5}),
    ("slice", {"form": "hadamard"}),
    ("slice", {"form": "diagonal"}),
    ("mingru", {}),
]
BOUNDED = ("gated_deltanet", "deltaproduct", "gated_deltaproduct", "kda", "gdn2", "mingru")


def config(name, options):
    return layer_named(name).Config.of_shape(Shape(2, 4), options)


def model_with(name, options, dtype):
    torch.manual_seed(0)
    model = LRNN(LRNNConfig("abc", (0, 1), (config(name, options),), embedding_dim=8)).to(dtype)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.2 * torch.randn_like(weight)
    return model


@pytest.mark.parametrize("path", selective_fixtures.files(), ids=lambda path: path.stem)
def test_equal_to_the_published_code(path):
    assert max(selective_fixtures.errors(path).values()) < 1e-6


def test_numbers_of_each_layer_are_compared():
    compared = {selective_fixtures.about(path)["layer"] for path in selective_fixtures.files()}
    assert compared == {name for name, _ in GATED + STATES}


@pytest.mark.parametrize(("name", "options"), GATED + STATES)
def test_all_ways_agree(sequences, name, options):
    sequences(config(name, options), lengths=(1, 39))


@pytest.mark.parametrize(("name", "options"), GATED[::3] + STATES[::4])
def test_gradients_of_rows_by_index(on_letters, name, options):
    if config(name, options).width == 8:
        on_letters(config(name, options), words=4)


@pytest.mark.parametrize(("name", "options"), [GATED[0], GATED[8], GATED[10], GATED[11]])
def test_models_of_two_layers(model_of, name, options):
    model_of(config(name, options), connection="full-residual", layer_norm=True)


@pytest.mark.parametrize(("name", "options"), STATES + GATED[::2])
def test_declarations_hold(name, options):
    check_layer(model_with(name, options, torch.float32), 0)


@pytest.mark.parametrize(("name", "options"), [case for case in STATES if case[0] in BOUNDED])
def test_bounds_of_tables_are_declared_and_small(name, options):
    for error in table_error(model_with(name, options, torch.float32)):
        assert 0 < float(error.max()) < 2e-3


@pytest.mark.parametrize("name", [name for name, _ in STATES if name not in ("slice", "mingru", "pd_ssm")])
def test_published_layers_declare_no_tables(name):
    layer = layer_named(name).build(8, config(name, {}), Columns("none", 2.0))
    assert not layer.has_tables
    with pytest.raises(UnsupportedFormat, match="has no tables"):
        layer.tables(torch.zeros(3, 8))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gated_deltanet", {"reads": "state"}, "conv = 4: a number of letters, 0 with"),
        ("gated_deltanet", {"reads": "keys"}, "reads = 'keys': one of gated, state"),
        ("kda", {"expand_v": 0.3}, "4 keys take a whole number of values"),
        ("deltaproduct", {"factors": 0}, "a product has 1 factor or more"),
        ("mamba3", {"reads": "state"}, "Mamba-3 takes 0"),
        ("rwkv7", {"conv": 4}, "RWKV-7 has 0 and 1"),
        ("rwkv7", {"rank": 0}, "needs a positive whole number"),
        ("pd_ssm", {"dictionary": 0}, "PD-SSM needs a positive whole number"),
        ("slice", {"form": "full"}, "one of block, sparse, hadamard, diagonal"),
        ("slice", {"density": 0}, "out of range"),
    ],
)
def test_misfits_are_refused(name, options, message):
    with pytest.raises(UnsupportedFormat, match=message):
        config(name, options)
