"""What layers declare by default, by name and of a user; the trainable layers and index tables by their formulas."""

import json
import sys
from dataclasses import dataclass, field

import pytest
import torch
from torch import nn

from fsa2lrnn.compile.lower import compile_machine
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.nn import (
    LRNN,
    BlockLayerConfig,
    Gate,
    HouseholderLayerConfig,
    Layer,
    LayerConfig,
    LRNNConfig,
    layer_named,
    load,
    register,
    save,
)
from fsa2lrnn.nn.layers import LAYERS, BlockLayer, Columns, HouseholderLayer, Shape, name_of
from fsa2lrnn.nn.layers.base import is_one_hot, maps_closed, starts_closed
from fsa2lrnn.nn.layers.index import METHODS


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
        lambda: layer.set_map(0, 0, torch.arange(2)),
    ):
        with pytest.raises(UnsupportedFormat, match="Sums has no "):
            refused()


def test_a_file_is_no_reason_to_import_a_module(sums, tmp_path, monkeypatch):
    config = json.dumps(sums.to_json()).replace("tests:Sums", "surprise:Sums")
    (tmp_path / "surprise.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnsupportedFormat, match=r"'surprise:Sums' is not known: .*layer_named\('surprise:Sums'"):
        LRNNConfig.from_json(json.loads(config))
    save(LRNN(sums), tmp_path / "m.safetensors")
    kept = LAYERS.loaded.pop("tests:Sums")
    with pytest.raises(CheckpointError, match=r"a layer of your own is made known first, .* --import "):
        load(tmp_path / "m.safetensors")
    LAYERS.loaded["tests:Sums"] = kept
    assert "surprise" not in sys.modules


def test_a_layer_by_its_place(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from fsa2lrnn.nn.layers.block import BlockLayer, BlockLayerConfig\nnone = 3\n"
        "class Mine(BlockLayer):\n    Config = type('MineConfig', (BlockLayerConfig,), {})\n"
        "class Same(BlockLayer): pass\n"
        "from fsa2lrnn.nn import Layer, LayerConfig\n"
        "class Mute(Layer):\n    Config = type('MuteConfig', (LayerConfig,), {})\n"
        "    def forward(self, u, state, method='auto'): return u, state\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.setattr(LAYERS, "loaded", dict(LAYERS.loaded))
    assert issubclass(layer_named("mine:Mine"), LAYERS["block"])
    for name, message in [
        ("mine:none", "mine:none is not a layer: derive it from fsa2lrnn.nn.Layer"),
        ("mine:Same", "mine:Same.Config is BlockLayerConfig, which block has: derive one of its own"),
        ("mine:Mute", "mine:Mute lacks initial_state, emit: define it"),
        ("mine:Nobody", "layer 'mine:Nobody' cannot be imported"),
        ("nowhere:Mine", "layer 'nowhere:Mine' cannot be imported"),
        (":Mine", "layer ':Mine' cannot be imported"),
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


MASK = torch.tensor([[True, True], [True, False]])  # a block of 2, a channel
EYE = torch.eye(2)
SWAP, ZERO = EYE.flip(0), torch.zeros(2, 2)


def transition(block, reset, a, c):
    """One transition: (1, 2, 2, 2) and (1, 2, 2)."""
    A = torch.stack([block, torch.tensor([[a, 0.0], [0.0, 0.0]])])[None]
    return A, torch.stack([torch.tensor(reset), torch.tensor([c, 0.0])])[None]


@pytest.mark.parametrize(("a", "c"), [(1.0, 0.0), (-1.0, 1.0), (0.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize(("block", "reset"), [(EYE, (0.0, 0.0)), (SWAP, (0.0, 0.0)), (ZERO, (0.0, 1.0))])
def test_maps_resets_and_the_four_maps_of_a_channel(block, reset, a, c):
    assert maps_closed(*transition(block, reset, a, c), MASK)


@pytest.mark.parametrize("broken", [
    transition(EYE, (0.0, 1.0), 1.0, 0.0),  # a map that writes too
    transition(ZERO, (0.0, 0.0), 1.0, 0.0),  # forgets, and writes nothing
    transition(0.5 * EYE, (0.0, 0.0), 1.0, 0.0),
    transition(torch.ones(2, 2), (0.0, 0.0), 1.0, 0.0),
    transition(-SWAP, (0.0, 0.0), 1.0, 0.0),
    transition(EYE, (0.0, 0.0), -1.0, 0.0),  # a channel that leaves {0, 1}
    transition(EYE, (0.0, 0.0), 1.0, 1.0),
    transition(EYE, (0.0, 0.0), 0.0, 0.5),
])  # fmt: skip
def test_whatever_else_is_none(broken):
    assert not maps_closed(*broken, MASK)


def test_where_states_start_and_what_is_one_hot():
    assert starts_closed(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), MASK)
    assert starts_closed(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), MASK)
    assert not starts_closed(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), MASK)  # a block that is nowhere
    assert not starts_closed(torch.tensor([[1.0, 0.0], [0.5, 0.0]]), MASK)
    assert is_one_hot(torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 2.0]])).tolist() == [True] + [False] * 3


def layer(sizes, rule="clip"):
    torch.manual_seed(0)
    return BlockLayer(5, BlockLayerConfig(sizes, 7, 6), rule, 1.2).double()


@pytest.mark.parametrize("rule", ["clip", "none", "paper"])
def test_tables_are_the_gates_reshaped_and_normalised(rule):
    block, u = layer((3, 3), rule), torch.randn(4, 2, 5, dtype=torch.float64)
    A, v = block.tables(u)
    assert A.shape == (4, 2, 2, 3, 3)
    assert torch.equal(v, block.value(u).reshape(4, 2, 2, 3))
    raw = block.transition(u).reshape(4, 2, 2, 3, 3)
    assert torch.equal(A, raw) == (rule == "none")
    if rule == "clip":
        norms = torch.linalg.vector_norm(raw, ord=1.2, dim=-2, keepdim=True)
        torch.testing.assert_close(A * norms.clamp(min=1), raw)


def test_padding_neither_computes_nor_learns_nor_counts_in_the_column_norm():
    block = layer((3, 1, 2))
    assert (block.block_sizes, block.n_heads) == ((3, 1, 2), 3)
    u = torch.randn(2, 5, 5, dtype=torch.float64)
    A, v = block.tables(u)
    outside = ~(block.mask[:, :, None] & block.mask[:, None, :])
    assert not A[..., outside].any()
    assert not v[..., ~block.mask].any()
    x, _ = block(u, block.initial_state(2))
    assert not x.unflatten(-1, (3, 3))[..., ~block.mask].any()
    x.square().sum().backward()
    assert not block.x0.grad[~block.mask].any()
    assert block.x0.grad[block.mask].all()
    assert not block.transition[2].bias.grad.reshape(3, 3, 3)[outside].any()
    block = layer((3, 1))
    with torch.no_grad():
        block.transition[2].bias[9:] = 5
    A, _ = block.tables(torch.zeros(5, dtype=torch.float64))
    assert A[1, 0, 0] == 1


def test_householder_factors_multiply_first_first_and_unit_keys_never_lengthen():
    torch.manual_seed(0)
    layer = HouseholderLayer(5, HouseholderLayerConfig(4, 3, 6, 6, n_heads=2)).double()
    u = torch.randn(2, 7, 5, dtype=torch.float64)
    A, v = layer.tables(u)
    keys, rates = layer.transition(u).reshape(2, 7, 2, 3, 4), layer.rate(u).reshape(2, 7, 2, 3)
    expected = torch.eye(4, dtype=torch.float64)
    for j in range(3):
        k = keys[..., j, :]
        factor = torch.eye(4, dtype=torch.float64) - rates[..., j, None, None] * k.unsqueeze(-1) * k.unsqueeze(-2)
        expected = factor @ expected
    torch.testing.assert_close(A, expected)
    assert torch.equal(v.flatten(-2), layer.value(u))
    torch.manual_seed(0)
    layer = HouseholderLayer(5, HouseholderLayerConfig(4, 1, 6, 6, n_heads=2, unit_keys=True)).double()
    u = 30 * torch.randn(50, 5, dtype=torch.float64)
    eigenvalues = torch.linalg.eigvalsh(layer.tables(u)[0])  # ascending
    torch.testing.assert_close(eigenvalues[..., 1:], torch.ones(50, 2, 3, dtype=torch.float64))
    torch.testing.assert_close(eigenvalues[..., 0], 1 - 2 * layer.rate(u).sigmoid())
    assert eigenvalues[..., 0].min() < -0.5
    several = HouseholderLayer(5, HouseholderLayerConfig(4, 3, 6, 6, unit_keys=True)).double()
    assert torch.linalg.matrix_norm(several.tables(u)[0], ord=2).max() <= 1 + 1e-12


@pytest.mark.long_cases("1-1-(1, 0)")
@pytest.mark.parametrize("shape", [(0, 3), (1, 0), (2, 1), (8, 5), (11, 130), (2, 5_000)], ids=str)  # (B, T)
@pytest.mark.parametrize(("n_states", "n_maps"), [(1, 1), (1, 3), (6, 1), (5, 5), (400, 3)])
def test_every_method_is_as_sequential_on_odd_shapes(shape, n_states, n_maps):
    generator = torch.Generator().manual_seed(0)
    table = torch.randint(n_states, (n_maps, n_states), generator=generator)
    cells = torch.randint(n_maps, shape[::-1], generator=generator).T  # not contiguous
    starts = torch.randint(n_states, (), generator=generator).expand(shape[0])
    expected = METHODS["sequential"](table, cells, starts)
    for method in METHODS:
        assert torch.equal(METHODS[method](table, cells, starts), expected)


def compile_machine_of_two_states(dtype=torch.float32):
    from fsa2lrnn.automata import MooreMachine

    return compile_machine(MooreMachine([[1, 0]], [False, True]), layout="index", dtype=dtype)


def test_an_index_model_has_a_dtype_and_nothing_to_train():
    for dtype in (torch.float64, torch.bfloat16):
        model = compile_machine_of_two_states(dtype)
        assert model(torch.zeros(1, 1, dtype=torch.int64)).dtype == model.dtype == dtype
        assert not list(model.parameters())
    with pytest.raises(UnsupportedFormat, match="scan method 'fused' is not known"):
        model(torch.zeros(1, 1, dtype=torch.int64), "fused")
