"""What a layer declares by default, layers by name, a layer of a user's own, maps among finitely many states."""

import json
import sys
from dataclasses import dataclass, field

import pytest
import torch
from torch import nn

from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.lrnn import LRNN, Gate, Layer, LayerConfig, LRNNConfig, layer_named, load, register, save
from fsa2lrnn.lrnn.layers import LAYERS, Columns, Shape, name_of
from fsa2lrnn.lrnn.layers.base import Hint, is_one_hot, maps_closed, starts_closed


@dataclass(frozen=True)
class SumsConfig(LayerConfig):
    width: int
    scale: float = 1.0


class Sums(Layer):
    """x_k = x_{k−1} + s·W u_k."""

    Config = SumsConfig

    def __init__(self, width_in, config):
        super().__init__()
        self.scale, self.W = config.scale, nn.Linear(width_in, config.width)

    def initial_state(self, batch):
        return torch.zeros(batch, self.W.out_features)

    def emit(self, state):
        return state

    def forward(self, u, state, method="auto"):  # noqa: ARG002
        x = state[:, None] + self.scale * self.W(u).cumsum(1)
        return x, x[:, -1] if x.shape[1] else state


@pytest.fixture
def sums():
    register("tests:Sums", Sums)
    yield LRNNConfig("ab", (0, 1), (SumsConfig(4), SumsConfig(4, 0.5)), embedding_dim=4, connection="residual")
    del LAYERS.loaded["tests:Sums"]


def test_a_layer_claims_nothing_by_default(sums):
    layer = LRNN(sums).recurrences[0]
    assert (layer.block_sizes, layer.n_heads, list(layer.gates), layer.family) == ((), 0, [], None)
    assert (layer.has_tables, layer.is_lookup(torch.eye(4)), layer.starts_exact()) == (False, False, False)
    assert not layer.is_exact(torch.eye(4), 2.0**24)
    for refused in (
        lambda: layer.tables(torch.eye(4)),
        lambda: layer.get_map(0, 0),
        lambda: layer.set_map(0, 0, torch.arange(2)),
        lambda: layer.transpose_map(0, 0),
        lambda: layer.swap_heads(0, 1),
    ):
        with pytest.raises(UnsupportedFormat, match="Sums has no "):
            refused()


def test_a_step_is_a_sequence_of_one_and_models_run_in_pieces(sums, tmp_path):
    layer, u = LRNN(sums).recurrences[0], torch.randn(3, 4)
    y, after = layer.step(u, layer.initial_state(3))
    assert torch.equal(y, after)
    torch.testing.assert_close(y, layer.W(u))
    model, tokens = LRNN(sums), torch.randint(2, (3, 9))
    assert model.methods == ("sequential",)
    whole = model(tokens)
    first, state = model.advance(tokens[:, :4], model.initial_state(3))
    rest, _ = model.advance(tokens[:, 4:], state)
    torch.testing.assert_close(torch.cat([first, rest], 1), whole)
    save(model, tmp_path / "m.safetensors")
    assert torch.equal(load(tmp_path / "m.safetensors")(tokens), whole)


def test_a_file_is_no_reason_to_import_a_module(sums, tmp_path, monkeypatch):
    config = json.dumps(sums.to_json()).replace("tests:Sums", "surprise:Sums")
    (tmp_path / "surprise.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        UnsupportedFormat, match=r"layer kind 'surprise:Sums' is not known: .*layer_named\('surprise:Sums'"
    ):
        LRNNConfig.from_json(json.loads(config))
    save(LRNN(sums), tmp_path / "m.safetensors")
    kept = LAYERS.loaded.pop("tests:Sums")
    with pytest.raises(CheckpointError, match="a layer of your own is made known first"):
        load(tmp_path / "m.safetensors")
    LAYERS.loaded["tests:Sums"] = kept
    assert "surprise" not in sys.modules


def test_a_layer_by_its_place(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from fsa2lrnn.lrnn.layers.block import BlockLayer, BlockLayerConfig\nnone = 3\n"
        "class Mine(BlockLayer):\n    Config = type('MineConfig', (BlockLayerConfig,), {})\n"
        "class Same(BlockLayer): pass\n"
        "from fsa2lrnn.lrnn import Layer, LayerConfig\n"
        "class Mute(Layer):\n    Config = type('MuteConfig', (LayerConfig,), {})\n"
        "    def forward(self, u, state, method='auto'): return u, state\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(LAYERS, "loaded", dict(LAYERS.loaded))
    assert issubclass(layer_named("mine:Mine"), LAYERS["block"])
    for name, message in [
        ("mine:none", "mine:none is no layer: derive it from fsa2lrnn.lrnn.Layer"),
        ("mine:Same", "mine:Same.Config is BlockLayerConfig, which block has: derive one of its own"),
        ("mine:Mute", "mine:Mute lacks initial_state, emit: define it"),
        ("mine:Nobody", "layer 'mine:Nobody' can't be had"),
        ("nowhere:Mine", "layer 'nowhere:Mine' can't be had"),
        (":Mine", "layer ':Mine' can't be had"),
        ("s5000", "layer 's5000' is not known: one of block, "),
    ]:
        with pytest.raises(UnsupportedFormat, match=message):
            layer_named(name)


def test_configurations_of_nobody_and_settings_of_a_run():
    @dataclass(frozen=True)
    class Stray(LayerConfig):
        width: int = 3

    with pytest.raises(UnsupportedFormat, match="Stray is the configuration of no layer that is known"):
        name_of(Stray())
    stray = type("NoConfig", (Layer,), {"Config": dict})
    with pytest.raises(UnsupportedFormat, match=r"x:y\.Config is dict: derive it from"):
        register("x:y", stray)
    assert SumsConfig.of_shape(Shape(2, 3), {"scale": 0.5}) == SumsConfig(6, 0.5)
    assert SumsConfig.options() == ("scale",)
    with pytest.raises(UnsupportedFormat, match="factors: no such option of SumsConfig, it takes scale"):
        SumsConfig.of_shape(Shape(2, 3), {"factors": 1})

    @dataclass(frozen=True)
    class Needy(LayerConfig):
        width: int
        order: int
        tags: list = field(default_factory=list)

    with pytest.raises(UnsupportedFormat, match="Needy needs order: set it among the layer's options"):
        Needy.of_shape(Shape(1, 1), {})
    with pytest.raises(UnsupportedFormat, match="width: no such option"):
        Needy.of_shape(Shape(1, 1), {"width": 4, "order": 1})


@pytest.mark.parametrize("name", ["block", "householder"])
def test_what_is_written_is_what_runs(name):
    kind = LAYERS[name]
    layer = kind.build(3, kind.Config.of_shape(Shape(2, 2), {}), Columns("none", 2.0))
    weights = {"W1": torch.eye(layer.transition.n_hidden, 3)}
    layer.write(torch.ones(2, 2), transition=weights)
    assert torch.equal(layer.transition.weights.W1, weights["W1"])
    assert not any(part.any() for part in layer.value.weights)
    assert layer.initial_state(1).tolist() == [[[1, 1], [1, 1]]]
    with pytest.raises(ValueError, match=f"bias: {kind.__name__} has the gates transition, value"):
        layer.write(torch.ones(2, 2), bias=weights)


@pytest.mark.parametrize("kind", LAYERS.values())
def test_every_gate_is_declared(kind):
    """A gate that a layer keeps to itself is forgotten by whoever asks, as Householder's third once was."""
    if kind.Config.reads_letters:
        pytest.skip("no gates")
    layer = kind.build(4, kind.Config.of_shape(Shape(2, 2), {}), Columns("clip", 1.2))
    assert {id(gate) for _, gate in layer.gates} == {id(m) for m in layer.modules() if isinstance(m, Gate)}


@pytest.mark.parametrize(
    ("hint", "rate"), [(Hint(), 4e-3), (Hint(rate=1e-3), 1e-3), (Hint(factor=0.5), 2e-3), (Hint(1e-3, 0.0, 2.0), 2e-3)]
)
def test_a_hint_gives_a_rate_its_own_or_a_share_of_the_runs(hint, rate):
    assert hint.rate_for(4e-3) == pytest.approx(rate)


MASK = torch.tensor([[True, True], [True, False]])  # a block of 2, a lane
EYE = torch.eye(2)
SWAP, ZERO = EYE.flip(0), torch.zeros(2, 2)


def transition(block, reset, a, c):
    """One transition: (1, 2, 2, 2) and (1, 2, 2)."""
    A = torch.stack([block, torch.tensor([[a, 0.0], [0.0, 0.0]])])[None]
    return A, torch.stack([torch.tensor(reset), torch.tensor([c, 0.0])])[None]


@pytest.mark.parametrize(("a", "c"), [(1.0, 0.0), (-1.0, 1.0), (0.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize(("block", "reset"), [(EYE, (0.0, 0.0)), (SWAP, (0.0, 0.0)), (ZERO, (0.0, 1.0))])
def test_maps_resets_and_the_four_maps_of_a_lane(block, reset, a, c):
    assert maps_closed(*transition(block, reset, a, c), MASK)


@pytest.mark.parametrize(
    "broken",
    [
        transition(EYE, (0.0, 1.0), 1.0, 0.0),  # a map that writes too
        transition(ZERO, (0.0, 0.0), 1.0, 0.0),  # forgets, and writes nothing
        transition(0.5 * EYE, (0.0, 0.0), 1.0, 0.0),
        transition(torch.ones(2, 2), (0.0, 0.0), 1.0, 0.0),
        transition(-SWAP, (0.0, 0.0), 1.0, 0.0),
        transition(EYE, (0.0, 0.0), -1.0, 0.0),  # a lane that leaves {0, 1}
        transition(EYE, (0.0, 0.0), 1.0, 1.0),
        transition(EYE, (0.0, 0.0), 0.0, 0.5),
    ],
)
def test_whatever_else_is_none(broken):
    assert not maps_closed(*broken, MASK)


def test_where_states_start_and_what_is_one_hot():
    assert starts_closed(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), MASK)
    assert starts_closed(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), MASK)
    assert not starts_closed(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), MASK)  # a block that is nowhere
    assert not starts_closed(torch.tensor([[1.0, 0.0], [0.5, 0.0]]), MASK)
    assert is_one_hot(torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 2.0]])).tolist() == [True] + [False] * 3
