"""Each rule for layers has mutants that break it; a layer that keeps the rules, and every layer of ours, passes."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from fsa2lrnn import MooreMachine, certify, check, falsify, prove_equivalent
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn import LRNN, FalseDeclaration, Gate, Layer, LayerConfig, LRNNConfig, check_layers, load, save, scan
from fsa2lrnn.lrnn.layer_checks import TOLERANCES, check_layer, user_layers
from fsa2lrnn.lrnn.layers import LAYERS, BlockLayer, BlockLayerConfig, IndexLayerConfig, Shape, register
from fsa2lrnn.lrnn.switched import as_tables, switched
from fsa2lrnn.training.settings import preset
from fsa2lrnn.training.train import TrainingRun
from fsa2lrnn.verdicts import Proved
from fsa2lrnn.verification.check import CertificateRefused

TRUE = MooreMachine([[0], [0]], [True], alphabet=("a", "b"))


@dataclass(frozen=True)
class ToyConfig(LayerConfig):
    width: int


class Toy(Layer):
    """x_k = a(u_k) ⊙ x_{k-1} + h(u_k), as docs/own-layer.md has it."""

    Config = ToyConfig
    methods = ("sequential", "pscan", "chunked", "fused")
    has_tables = True

    def __init__(self, width_in, config):
        super().__init__()
        self.a, self.h = nn.Linear(width_in, config.width), nn.Linear(width_in, config.width)
        self.x0 = nn.Parameter(torch.randn(config.width, 1))

    def tables(self, u, method="auto"):  # noqa: ARG002
        return self.a(u).sigmoid()[..., None, None], self.h(u)[..., None]

    def initial_state(self, batch):
        return self.x0.expand(batch, -1, -1)

    def emit(self, state):
        return state.flatten(-2)

    def forward(self, u, state, method="auto"):
        return self.scanned(*self.tables(u), state, method)

    def scanned(self, A, v, state, method):
        x = scan(A, v, state, method)
        return x.flatten(-2), x[:, -1] if x.shape[1] else state


class ShiftedV(Toy):
    def forward(self, u, state, method="auto"):
        A, v = self.tables(u)
        return self.scanned(A, v + 0.5, state, method)


class SlightlyScaledA(Toy):
    def forward(self, u, state, method="auto"):
        A, v = self.tables(u)
        return self.scanned(1.001 * A, v, state, method)


class OwnStart(Toy):
    """Begins each word, and each piece of one, at x₀."""

    def forward(self, u, state, method="auto"):
        y, after = super().forward(u, self.initial_state(len(u)), method)
        return y, after if u.shape[1] else state


class StartByBatch(Toy):
    def initial_state(self, batch):
        return super().initial_state(batch) * batch


class StartByWord(Toy):
    def initial_state(self, batch):
        return super().initial_state(batch) + torch.arange(batch)[:, None, None]


class OtherEmit(Toy):
    def emit(self, state):
        return super().emit(state) + 1


class WideEmit(Toy):
    has_tables = False

    def emit(self, state):
        return torch.cat([super().emit(state)] * 2, 1)


class OtherStep(Toy):
    def step(self, u, state):
        y, after = super().step(u, state)
        return y + 0.5, after


class OtherStateOfStep(Toy):
    has_tables = False

    def step(self, u, state):
        y, after = super().step(u, state)
        return y, 2 * after


class OtherOutputs(Toy):
    def outputs(self, u, state, method="auto", index=None):
        return super().outputs(u, state, method, index) + 0.5


class OtherMethod(Toy):
    def forward(self, u, state, method="auto"):
        y, after = super().forward(u, state, method)
        return y + 0.5 * (method == "pscan"), after


class Centred(Toy):
    """Subtracts the mean of the word, later inputs included."""

    def forward(self, u, state, method="auto"):
        return super().forward(u - u.mean(1, keepdim=True) if u.shape[1] else u, state, method)


class Positional(Toy):
    """Knows how many inputs were read in this call."""

    has_tables = False

    def forward(self, u, state, method="auto"):
        y, after = super().forward(u, state, method)
        return y + torch.arange(u.shape[1])[:, None], after


class Random(Toy):
    def forward(self, u, state, method="auto"):
        return super().forward(u + torch.randn_like(u), state, method)


class Dropping(Toy):
    def forward(self, u, state, method="auto"):
        return super().forward(nn.functional.dropout(u, 0.5, self.training), state, method)


class Counting(Toy):
    """Remembers outside of its state how often it was called."""

    calls = 0

    def forward(self, u, state, method="auto"):
        self.calls += 1
        y, after = super().forward(u, state, method)
        return y + self.calls, after


class Overwriting(Toy):
    def forward(self, u, state, method="auto"):
        return super().forward(u, state.add_(1), method)


class OverwritingInputs(Toy):
    def forward(self, u, state, method="auto"):
        return super().forward(u.mul_(2), state, method)


class Learning(Toy):
    """Changes a buffer as it reads."""

    def __init__(self, width_in, config):
        super().__init__(width_in, config)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, u, state, method="auto"):
        self.seen += 1
        return super().forward(u, state, method)


class BatchNormed(Toy):
    def forward(self, u, state, method="auto"):
        return super().forward(u - u.mean(0, keepdim=True), state, method)


class NarrowOutputs(Toy):
    def forward(self, u, state, method="auto"):
        y, after = super().forward(u, state, method)
        return y[..., 1:], after


class FlatState(Toy):
    has_tables = False

    def forward(self, u, state, method="auto"):
        y, after = super().forward(u, state, method)
        return y, after.flatten(1)


class NoStateBack(Toy):
    def forward(self, u, state, method="auto"):
        return super().forward(u, state, method)[0]


class FlatTables(Toy):
    def tables(self, u, method="auto"):  # noqa: ARG002
        return self.a(u).sigmoid(), self.h(u)

    def forward(self, u, state, method="auto"):
        A, v = self.tables(u)
        return self.scanned(A[..., None, None], v[..., None], state, method)


class NoTables(Toy):
    tables = Layer.tables

    def forward(self, u, state, method="auto"):
        return self.scanned(*Toy.tables(self, u), state, method)


class DoubleOutputs(Toy):
    def forward(self, u, state, method="auto"):
        y, after = super().forward(u, state, method)
        return y.double(), after


class EmptyFails(Toy):
    def forward(self, u, state, method="auto"):
        x = scan(*self.tables(u), state, method)
        return x.flatten(-2), x[:, -1]


class BadIndex(Toy):
    takes_index = True

    def forward(self, u, state, method="auto", index=None):
        return super().forward(u if index is None else u[index].flip(1), state, method)


class RoundsLess(Toy):
    def rounded_tables(self, u):
        return tuple(replace(u, mid=part.double() + 1e-3, off=0 * part.double()) for part in self.tables(u.mid.float()))


class LooksUp(Toy):
    """Claims to look its tables up, while they are made by batch."""

    def tables(self, u, method="auto"):
        A, v = super().tables(u, method)
        return A, v + 1e-6 * (len(u) > 1)

    def is_lookup(self, u):  # noqa: ARG002
        return True


class PositionalEmbedding(nn.Embedding):
    def forward(self, tokens):
        return super().forward(tokens) + torch.arange(tokens.shape[1])[:, None]


class OwnEmbedding(Toy):
    @classmethod
    def embedding(cls, config, n_letters, dim):  # noqa: ARG003
        return PositionalEmbedding(n_letters, dim)


class Negated(Gate):
    def forward(self, x):
        return -super().forward(x)


class OwnReadout(Toy):
    @classmethod
    def readout(cls, config, width, hidden, n_outputs):  # noqa: ARG003
        return Negated(width, hidden, n_outputs)


class PositionalLinear(nn.Linear):
    def forward(self, x):
        return super().forward(x) + torch.arange(x.shape[-2])[:, None]


class OtherReadout(Toy):
    @classmethod
    def readout(cls, config, width, hidden, n_outputs):  # noqa: ARG003
        return PositionalLinear(width, n_outputs)


class Inexact(Toy):
    """Claims that nothing rounds, so that the last bits of all methods have to agree."""

    def starts_exact(self):
        return True

    def is_exact(self, u, limit):  # noqa: ARG002
        return True


class OneLetterWrong(Toy):
    """Wrong at the input (1, 1, 1, 1), which no random number is and one letter of many may be."""

    def forward(self, u, state, method="auto"):
        y, after = super().forward(u, state, method)
        return y + 0.5 * (u == 1).all(-1, keepdim=True), after


TABLES = r"`forward` does not compute x_k = A\(u_k\) x_\{k-1\} \+ v\(u_k\) with what `tables` returns: correct either"
MUTANTS = {
    ShiftedV: rf"{TABLES} \(3 words of 3 inputs\); the difference is [01]\.\d+, more than rounding explains",
    SlightlyScaledA: TABLES,
    OwnStart: "`forward` reads a word in two pieces, the state carried on, otherwise than whole",
    StartByBatch: "`initial_state` differs between words or with their number",
    StartByWord: "`initial_state` differs between words",
    OtherEmit: "tables are declared: let `emit` return the state, flattened; the difference is 1",
    WideEmit: r"what `emit` returns is torch.float32 of shape \(3, 8\): return torch.float32 of shape \(3, 4\)",
    OtherStep: r"`step` computes other than `forward` \(3 words of 3 inputs\); the difference is 0.5",
    OtherStateOfStep: "`step` computes other than `forward`",
    OtherOutputs: "`outputs` are other than those of `forward`",
    OtherMethod: "`forward` computes otherwise by method 'pscan'",
    Centred: "`forward` is not causal, outputs depend on later inputs: declare is_causal = False",
    Positional: "`forward` reads a word in two pieces, the state carried on, otherwise than whole",
    Random: "`forward` is random: it gives other outputs for the same inputs",
    Dropping: "`forward` is random",
    Counting: "`forward` is random",
    Overwriting: "`forward` changes its arguments in place: return new tensors",
    OverwritingInputs: "`forward` changes its arguments in place",
    Learning: r"reading changes layers\.0\.seen: let the state be all that a layer remembers",
    BatchNormed: "`forward` gives a word other outputs in a batch than alone",
    NarrowOutputs: r"the first of what `forward` returns is torch.float32 of shape \(3, 3, 3\): return .* \(3, 3, 4\)",
    FlatState: r"the state that `forward` returns is torch.float32 of shape \(3, 4\): return .* \(3, 4, 1\)",
    NoStateBack: "`forward` returns a Tensor: return a tuple of two tensors",
    FlatTables: r"the first of what `tables` returns is torch.float32 of shape \(1, 4\): return .* \(1, 4, 1, 1\)",
    NoTables: r"NoTables has no tables A\(u\), v\(u\) of numbers",
    DoubleOutputs: "the first of what `forward` returns is torch.float64",
    EmptyFails: r"`forward` fails for the arguments \[\(\d, 0, 4\), \(\d, 4, 1\), 'auto'\], tensors by their shapes",
    BadIndex: "`forward` computes otherwise by method 'auto', rows given by index",
    RoundsLess: "`tables` lie outside of `rounded_tables`",
    LooksUp: "`tables` of a row depend on the other rows, though is_lookup is declared",
    OwnEmbedding: "`embedding` of a letter depends on where it stands",
    OwnReadout: "`readout` is a Gate, but does not compute",
    OtherReadout: "`readout` of a row depends on where it stands",
    Inexact: r"the difference is \d\.\d+e-0[678], more than rounding explains",
    OneLetterWrong: TABLES,
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
    model = model_of(kind)
    with pytest.raises(UnsupportedFormat, match=MUTANTS[kind]):
        check_layers(model)


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
        with pytest.raises(FalseDeclaration, match=f"layer toys:{kind.__name__} .* breaks a rule of docs/own-layer.md"):
            use()


def test_a_layer_in_the_middle_of_a_stack_is_tested():
    model = model_of(Toy, depth=3)
    check_layers(model)
    model.layers[1].forward = lambda u, state, method="auto": Toy.forward(model.layers[1], u + 0.5, state, method)
    with pytest.raises(FalseDeclaration, match=rf"layer toys:Toy \(layers\.1, float32\) .*{TABLES}"):
        check_layers(model)


def test_every_letter_is_read_and_no_two_draws_differ():
    model = model_of(OneLetterWrong, n_letters=3000)
    messages = []
    for _ in range(2):
        with pytest.raises(FalseDeclaration, match=r"\(952 words of 1 inputs\)") as refused:
            check_layers(model)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("token_shift", [False, True])
def test_a_layer_that_keeps_the_rules_is_accepted_and_nothing_is_disturbed(dtype, token_shift):
    model = model_of(Toy, depth=2, layer_norm=True, token_shift=token_shift).to(dtype)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random_numbers = torch.get_rng_state()
    check_layers(model)
    assert torch.equal(torch.get_rng_state(), random_numbers)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("kind", [Random, Learning])
def test_a_refused_layer_leaves_nothing_behind(kind):
    model = model_of(kind)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random_numbers = torch.get_rng_state()
    with pytest.raises(FalseDeclaration):
        check_layers(model)
    assert torch.equal(torch.get_rng_state(), random_numbers)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in model.state_dict().items())


def test_dropout_that_is_switched_off_is_not_random():
    check_layers(model_of(Dropping).eval())


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


@pytest.mark.parametrize("kind", [Refusing, Whole, Abrupt])
def test_layers_that_declare_less_are_accepted(kind):
    check_layers(model_of(kind))


class Wide(Toy):
    """One step takes 2^19 numbers, so that no call of the tests may read more than 8 inputs."""

    most = 0

    def forward(self, u, state, method="auto"):
        Wide.most = max(Wide.most, u.shape[0] * u.shape[1])
        return super().forward(u, state, method)


def test_calls_are_bounded_by_what_a_step_takes(monkeypatch):
    monkeypatch.setattr(ToyConfig, "entries", property(lambda _: 1 << 19))
    model = model_of(Wide, n_letters=100)
    check_layers(model)
    assert 6 <= Wide.most <= 8


def configurations():
    for name, kind in LAYERS.items():
        yield name, IndexLayerConfig(4, 5) if name == "index" else kind.Config.of_shape(Shape(4, 4), {})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LAYERS)
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


def test_a_certificate_says_so_and_cannot_leave_it_out():
    model = sure()
    certificate = certify(model, TRUE, work=1e5)
    assert certificate.horizon is None or certificate.horizon > 0
    assert certificate.tested_layers == ("toys:Sure",)
    assert type(certificate).from_json(certificate.to_json()).tested_layers == ("toys:Sure",)
    assert TESTED in certificate._repr_html_()
    accepted = check(certificate, model)
    assert accepted.tested_layers == ("toys:Sure",)
    assert ("assumed", TESTED) in accepted.in_words()
    with pytest.raises(CertificateRefused, match=r"names the user-defined layers \[\], the model has \['toys:Sure'\]"):
        check(replace(certificate, tested_layers=()), model)


def test_tables_alone_rest_on_no_layer():
    tables = switched(sure())
    certificate = certify(tables, TRUE, work=1e5)
    assert certificate.tested_layers == check(certificate, tables).tested_layers == ()
    assert "tested_layers" not in certificate.to_json()
    assert check(certify(sure(), TRUE, work=1e5), tables).tested_layers == ()


class Unnamed(Toy):
    @classmethod
    def readout(cls, config, width, hidden, n_outputs):  # noqa: ARG003
        return nn.Linear(width, n_outputs)


def test_a_read_out_that_is_not_a_gate_leaves_no_tables():
    model = model_of(Unnamed)
    assert not model.is_switched
    with pytest.raises(UnsupportedFormat, match="an embedding or a read-out that is not a table or a gate"):
        switched(model)
