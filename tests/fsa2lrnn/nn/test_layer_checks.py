"""Each rule for layers has mutants that break it; a layer that keeps the rules, and every layer of ours, passes."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from fsa2lrnn import MooreMachine, Proved, certify, check, falsify, prove_equivalent
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn import LRNN, FalseDeclaration, Layer, LRNNConfig, check_layers, load, save
from fsa2lrnn.nn.layer_checks import TOLERANCES, check_layer, user_layers
from fsa2lrnn.nn.layers import LAYERS, BlockLayer, BlockLayerConfig, IndexLayerConfig, Shape, register
from fsa2lrnn.nn.switched import as_tables, switched
from fsa2lrnn.training.settings import preset
from fsa2lrnn.training.train import TrainingRun
from fsa2lrnn.verification.check import CertificateRefused

from . import broken_layers
from .broken_layers import (
    Centred,
    Dropping,
    Learning,
    OneLetterWrong,
    OtherStep,
    Random,
    ShiftedV,
    Toy,
    ToyConfig,
    Unnamed,
)

TRUE = MooreMachine([[0], [0]], [True], alphabet=("a", "b"))

TABLES = r"`forward` does not compute x_k = A\(u_k\) x_\{k-1\} \+ v\(u_k\) with what `tables` returns: correct either"
MUTANTS = {
    "ShiftedV": rf"{TABLES} \(3 words of 3 inputs\); the difference is [01]\.\d+, more than rounding explains",
    "SlightlyScaledA": TABLES,
    "OwnStart": "`forward` reads a word in two pieces, the state carried on, otherwise than whole",
    "StartByBatch": "`initial_state` differs between words or with their number",
    "StartByWord": "`initial_state` differs between words",
    "OtherEmit": "tables are declared: let `emit` return the state, flattened; the difference is 1",
    "WideEmit": r"what `emit` returns is torch.float32 of shape \(3, 8\): return torch.float32 of shape \(3, 4\)",
    "OtherStep": r"`step` computes other than `forward` \(3 words of 3 inputs\); the difference is 0.5",
    "OtherStateOfStep": "`step` computes other than `forward`",
    "OtherOutputs": "`outputs` are other than those of `forward`",
    "OtherMethod": "`forward` computes otherwise by method 'pscan'",
    "NotANumber": "`forward` returns NaN, where `tables` and the state are finite",
    "Centred": "`forward` is not causal, outputs depend on later inputs: declare is_causal = False",
    "Positional": "`forward` reads a word in two pieces, the state carried on, otherwise than whole",
    "Random": "`forward` is random: it gives other outputs for the same inputs",
    "Dropping": "`forward` is random",
    "Counting": "`forward` is random",
    "Overwriting": "`forward` changes its arguments in place: return new tensors",
    "OverwritingInputs": "`forward` changes its arguments in place",
    "Learning": r"reading changes layers\.0\.seen: let the state be all that a layer remembers",
    "BatchNormed": "`forward` gives a word other outputs in a batch than alone",
    "NarrowOutputs": r"the first of what `forward` returns is torch.float32 of shape \(3, 3, 3\): return .* 3, 4\)",
    "FlatState": r"the state that `forward` returns is torch.float32 of shape \(3, 4\): return .* \(3, 4, 1\)",
    "NoStateBack": "`forward` returns a Tensor: return a tuple of two tensors",
    "InAList": "`forward` returns a list: return a tuple of two tensors",
    "FlatTables": r"the first of what `tables` returns is torch.float32 of shape \(1, 4\): return .* \(1, 4, 1, 1\)",
    "NoTables": r"NoTables has no tables A\(u\), v\(u\) of numbers",
    "DoubleOutputs": "the first of what `forward` returns is torch.float64",
    "EmptyFails": r"`forward` fails for the arguments \[\(\d, 0, 4\), \(\d, 4, 1\), 'auto'\], tensors by their shapes",
    "BadIndex": "`forward` computes otherwise by method 'auto', rows given by index",
    "RoundsLess": "`tables` lie outside of `rounded_tables`",
    "LooksUp": "`tables` of a row depend on the other rows, though is_lookup is declared",
    "OwnEmbedding": "`embedding` of a letter depends on where it stands",
    "OwnReadout": "`readout` is a Gate, but does not compute",
    "OtherReadout": "`readout` of a row depends on where it stands",
    "Inexact": r"the difference is \d\.\d+e-0[678], more than rounding explains",
    "OneLetterWrong": TABLES,
}


@pytest.fixture(autouse=True)
def registry():
    """Layers are known for one test alone."""
    known = dict(LAYERS.loaded)
    yield
    LAYERS.loaded.clear()
    LAYERS.loaded.update(known)


def model_of(kind, depth=1, n_letters=2, **options):
    """A model of such layers; the embedding of its last letter is 1 everywhere."""
    own = type(f"{kind.__name__}Config", (kind.Config,), {})
    layer = type(kind.__name__, (kind,), {"Config": own})
    register(f"toys:{kind.__name__}", layer)
    torch.manual_seed(0)
    alphabet = tuple(range(n_letters)) if n_letters > 2 else ("a", "b")
    model = LRNN(LRNNConfig(alphabet, (False, True), (own(4),) * depth, 4, 4, **options))
    with torch.no_grad():
        model.embedding.weight[-1] = 1
    return model


@pytest.mark.parametrize("kind", MUTANTS)
def test_a_layer_that_breaks_a_rule_is_refused_with_the_rule(kind):
    with pytest.raises(UnsupportedFormat, match=MUTANTS[kind]):
        check_layers(model_of(getattr(broken_layers, kind)))


@pytest.mark.parametrize("kind", [ShiftedV, OtherStep, Centred, Random])
def test_whoever_relies_on_a_layer_or_first_uses_it_refuses_it(kind, tmp_path):
    model = model_of(kind)
    save(model, tmp_path / "m.safetensors")
    settings = preset("quick", "regex:(ab)*", layer=f"toys:{kind.__name__}", heads=2, block=2, embedding_dim=4)
    settings = replace(settings, normalisation="none", connection="chain")
    for use in (
        lambda: switched(model),
        lambda: as_tables(model),
        lambda: certify(model, TRUE),
        lambda: prove_equivalent(model, TRUE),
        lambda: falsify(model, TRUE),
        lambda: load(tmp_path / "m.safetensors"),
        lambda: TrainingRun(settings, tmp_path, resume=False),
    ):
        with pytest.raises(FalseDeclaration, match=f"layer toys:{kind.__name__} .* breaks a rule of"):
            use()


def test_a_family_is_one_that_theory_decides():
    for name in (None, "diagonal[0,1]", "block(3)", "householder(2)"):
        check_layers(model_of(type("Toy", (Toy,), {"family": name})))
    for name in ("diagonal", "block(0)", "mamba", 3):
        unknown = model_of(type("Toy", (Toy,), {"family": name}))
        with pytest.raises(FalseDeclaration, match=r"is not the name of one: return None or one of lti, .*block"):
            check_layers(unknown)


def test_layers_in_the_middle_and_every_letter_are_tested():
    model = model_of(Toy, depth=3)
    check_layers(model)
    model.layers[1].forward = lambda u, state, method="auto": Toy.forward(model.layers[1], u + 0.5, state, method)
    with pytest.raises(FalseDeclaration, match=rf"layer toys:Toy \(layers\.1, float32\) .*{TABLES}"):
        check_layers(model)
    model = model_of(OneLetterWrong, n_letters=3000)
    messages = []
    for _ in range(2):
        with pytest.raises(FalseDeclaration, match=r"\(952 words of 1 inputs\)") as refused:
            check_layers(model)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("depth", [1, 2])
def test_the_readout_of_the_last_layer_is_tested(depth):
    model = model_of(Toy, depth=depth)
    model.readout.forward = lambda x: type(model.readout).forward(model.readout, x) + x.shape[1]
    with pytest.raises(FalseDeclaration, match="`readout` of a row depends on where it stands"):
        check_layers(model)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("token_shift", [False, True])
def test_a_layer_that_keeps_the_rules_is_accepted_and_nothing_is_disturbed(dtype, token_shift):
    model = model_of(Toy, depth=2, layer_norm=True, token_shift=token_shift).to(dtype)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random_numbers = torch.get_rng_state()
    check_layers(model)
    assert torch.equal(torch.get_rng_state(), random_numbers)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())
    for kind in (Random, Learning):
        model = model_of(kind)
        weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        random_numbers = torch.get_rng_state()
        with pytest.raises(FalseDeclaration):
            check_layers(model)
        assert torch.equal(torch.get_rng_state(), random_numbers)
        assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())


class Refusing(Toy):
    """Takes no more than three inputs, and says so."""

    def forward(self, u, state, method="auto"):
        if u.shape[1] > 3:
            raise UnsupportedFormat("words are too long")
        return super().forward(u, state, method)


class Whole(Centred):
    has_tables = False
    is_causal = False


class Abrupt(Layer):
    """No tables; the state is a count in integers."""

    Config = ToyConfig

    def __init__(self, width_in, config):  # noqa: ARG002
        super().__init__()
        self.scale = nn.Parameter(torch.ones(config.width))

    def initial_state(self, batch):
        return torch.zeros(batch, dtype=torch.int64)

    def emit(self, state):
        return state[:, None] * self.scale

    def forward(self, u, state, method="auto"):  # noqa: ARG002
        counts = state[:, None] + (u.sum(-1) > 0).cumsum(1)
        return counts[..., None] * self.scale, counts[:, -1] if u.shape[1] else state


def test_layers_that_declare_less_are_accepted_and_calls_bounded(monkeypatch):
    for kind in (Refusing, Whole, Abrupt):
        check_layers(model_of(kind))
    check_layers(model_of(Dropping).eval())  # dropout that is switched off is not random
    monkeypatch.setattr(ToyConfig, "entries", property(lambda _: 1 << 19))
    model = model_of(Wide, n_letters=100)
    check_layers(model)
    assert 6 <= Wide.most <= 8


class Wide(Toy):
    """One step takes 2^19 numbers, so that no call of the tests may read more than 8 inputs."""

    most = 0

    def forward(self, u, state, method="auto"):
        Wide.most = max(Wide.most, u.shape[0] * u.shape[1])
        return super().forward(u, state, method)


def configurations():
    for name, kind in LAYERS.items():
        yield name, IndexLayerConfig(4, 5) if name == "index" else kind.Config.of_shape(Shape(4, 4), {})


# In one precision each, in turn; the slow tests take the other.
IN_TURN = [(name, dtype) for i, name in enumerate(LAYERS) for dtype in (torch.float32, torch.float64)[:: (-1) ** i]]


@pytest.mark.long_cases("block-dtype0")
@pytest.mark.parametrize(
    ("name", "dtype"), [*IN_TURN[::2], *(pytest.param(*pair, marks=pytest.mark.slow) for pair in IN_TURN[1::2])]
)
def test_every_layer_of_ours_keeps_the_rules(name, dtype):
    config = dict(configurations())[name]
    places = range(1 if config.reads_letters else 2)
    for rule in ("clip", "onehot") if name == "block" else ("none",):
        torch.manual_seed(0)
        layers = tuple(config.at(i, 2) for i in places)
        model = LRNN(LRNNConfig(tuple(range(5)), (0, 1), layers, embedding_dim=16, normalisation=rule)).to(dtype)
        for weight in model.parameters():  # some begin at 0, where nothing would be compared
            weight.data += 0.1 * torch.randn_like(weight)
        assert user_layers(model) == ()
        for place in places:
            check_layer(model, place)


class Sure(BlockLayer):
    """Ours under another name, whose declarations are inherited."""

    @dataclass(frozen=True)
    class Config(BlockLayerConfig):
        pass


def sure(rule="none", kind=Sure):
    register("toys:Sure", kind)
    config = LRNNConfig(TRUE.alphabet, (True, False), (Sure.Config((2, 2), 3, 3),), 2, 2, normalisation=rule)
    torch.manual_seed(0)
    model = LRNN(config)
    with torch.no_grad():
        model.readout.weights.b2.copy_(torch.tensor([100.0, -100.0]))
        model.layers[0].transition.weights.W2.mul_(0.1)
        model.layers[0].transition.weights.b2.mul_(0.1)
    return model


class OtherMaps(Sure):
    def maps(self, u):
        return 1 - super().maps(u)


def test_maps_are_compared_with_tables():
    with pytest.raises(FalseDeclaration, match="`maps` are not those of `tables`; the difference is 1"):
        check_layers(sure("onehot", OtherMaps))


TESTED = "what the layer toys:Sure declares was tested on random inputs, not proved"


def test_a_proof_says_that_declarations_were_tested():
    verdict = prove_equivalent(sure("onehot"), TRUE)
    assert isinstance(verdict, Proved)
    assert verdict.covers.tested_layers == ("toys:Sure",)
    assert str(verdict.covers).endswith(TESTED)
    assert verdict.to_json()["tested_layers"] == ["toys:Sure"]


@pytest.mark.long
def test_a_certificate_says_so_and_cannot_leave_it_out():
    model = sure()
    certificate = certify(model, TRUE, work=1e5)
    assert certificate.horizon is None or certificate.horizon > 0
    assert certificate.tested_layers == ("toys:Sure",)
    assert type(certificate).from_json(certificate.to_json()).tested_layers == ("toys:Sure",)
    accepted = check(certificate, model)
    assert accepted.tested_layers == ("toys:Sure",)
    assert TESTED in dict(accepted.in_words())["covers"]
    with pytest.raises(CertificateRefused, match=r"names the user-defined layers \[\], the model has \['toys:Sure'\]"):
        check(replace(certificate, tested_layers=()), model)
    tables = switched(model)  # tables alone rest on no layer
    alone = certify(tables, TRUE, work=1e5)
    assert alone.tested_layers == check(alone, tables).tested_layers == check(certificate, tables).tested_layers == ()
    assert "tested_layers" not in alone.to_json()


def test_a_read_out_that_is_not_a_gate_leaves_no_tables():
    model = model_of(Unnamed)
    assert not model.is_switched
    with pytest.raises(UnsupportedFormat, match="an embedding or a read-out that is not a table or a gate"):
        switched(model)
