"""Models from elsewhere: the released code's, against that architecture written out, tables, and users' modules."""

import inspect

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fsa2lrnn import LRNN, Budget, extract, extract_learned, falsify, prove_equivalent, save, wrap, zoo
from fsa2lrnn.errors import CheckpointError, InvalidWord, UnsupportedFormat
from fsa2lrnn.nn import Network
from fsa2lrnn.nn.switched import Readout, SwitchedAffine, switched

DTYPES = (torch.float64, torch.float32, torch.bfloat16)


def published(n_layers, heads=2, b=3, n_letters=4, n_outputs=5, dtype=torch.float64, seed=0):
    """Weights as the released code saves them, at random."""
    torch.manual_seed(seed)
    d, shapes = heads * b, {}
    for i in range(n_layers):
        shapes[f"layers.{i}.a0"] = (1, heads, b)
        for gate, hidden, out in (("gen_block", 7, d * b), ("gen_value", 6, d)):
            shapes |= {f"layers.{i}.{gate}.0.weight": (hidden, d), f"layers.{i}.{gate}.0.bias": (hidden,)}
            shapes |= {f"layers.{i}.{gate}.2.weight": (out, hidden), f"layers.{i}.{gate}.2.bias": (out,)}
        shapes |= {f"ln.{i}.weight": (d,), f"ln.{i}.bias": (d,)}
    shapes |= {"ln_final.weight": (d,), "ln_final.bias": (d,), "embedding.weight": (n_letters, d)}
    shapes |= {"Wo1.weight": (9, d), "Wo1.bias": (9,), "Wo2.weight": (n_outputs, 9), "Wo2.bias": (n_outputs,)}
    return {name: torch.randn(shape, dtype=dtype) for name, shape in shapes.items()}


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * weight + bias


def run_as_published(weights, n_layers, tokens, p=1.2):
    """Logits (B, T, |Γ|) of the released architecture, step by step."""
    x = weights["embedding.weight"][tokens]
    for i in range(n_layers):
        u = layer_norm(x, weights[f"ln.{i}.weight"], weights[f"ln.{i}.bias"])
        made = {}
        for gate in ("gen_block", "gen_value"):
            W1, b1, W2, b2 = (weights[f"layers.{i}.{gate}.{j}.{kind}"] for j in (0, 2) for kind in ("weight", "bias"))
            made[gate] = (u @ W1.T + b1).clamp(min=0) @ W2.T + b2
        state = weights[f"layers.{i}.a0"]
        _, heads, b = state.shape
        A = made["gen_block"].reshape(*tokens.shape, heads, b, b)
        A = A - A.mean(-2, keepdim=True)
        A = A / A.abs().pow(p).sum(-2).pow(1 / p).amax(-1)[..., None, None]
        v = made["gen_value"].reshape(*tokens.shape, heads, b)
        new, state = [], state.expand(len(tokens), heads, b)
        for k in range(tokens.shape[1]):
            state = torch.einsum("nhij,nhj->nhi", A[:, k], state) + v[:, k]
            new.append(state.reshape(len(tokens), heads * b))
        out = torch.stack(new, 1)
        x = out if i + 1 == n_layers else x + out
    x = layer_norm(x, weights["ln_final.weight"], weights["ln_final.bias"])
    return (x @ weights["Wo1.weight"].T + weights["Wo1.bias"]).clamp(min=0) @ weights["Wo2.weight"].T + weights[
        "Wo2.bias"
    ]


@pytest.mark.parametrize("n_layers", [1, 3])
@pytest.mark.parametrize("p", [1.2, 2.0])
def test_published_weights_compute_what_they_computed(n_layers, p):
    weights = published(n_layers)
    model = LRNN.from_paper_weights(weights, alphabet="abcd", outputs=range(10, 15), p=p)
    assert (model.alphabet, model.outputs) == (tuple("abcd"), (10, 11, 12, 13, 14))
    for length in (1, 2, 30):
        tokens = torch.randint(4, (3, length))
        wanted = run_as_published(weights, n_layers, tokens, p)
        for method in ("auto", "sequential"):
            torch.testing.assert_close(model(tokens, method), wanted, rtol=1e-9, atol=1e-9)
    assert not torch.allclose(model(tokens), run_as_published(weights, n_layers, tokens, p=3.0))


def test_every_missing_and_unknown_weight_is_named():
    for name in published(2):
        with pytest.raises(CheckpointError, match=name.replace(".", r"\.") + " is missing"):
            LRNN.from_paper_weights({old: tensor for old, tensor in published(2).items() if old != name})
    weights = published(1)
    weights |= {"ln.1.weight": weights["ln.0.weight"], "head.weight": weights["ln.0.weight"]}
    with pytest.raises(CheckpointError, match=r"ln\.1\.weight is not a weight .*; head\.weight is not a weight of"):
        LRNN.from_paper_weights(weights)
    with pytest.raises(CheckpointError, match=r"layers\.1\.a0 is missing"):
        LRNN.from_paper_weights(
            {name.replace("layers.1", "layers.4"): t for name, t in published(2).items() if "4" not in name}
        )
    with pytest.raises(CheckpointError, match=r"embedding\.weight is missing"):
        LRNN.from_paper_weights({})


@pytest.mark.parametrize("name", published(2))
def test_every_misshaped_weight_is_named(name):
    weights = published(2)
    if name != "embedding.weight":  # with more rows it has more letters
        with pytest.raises((CheckpointError, UnsupportedFormat), match=r"shape|wide"):
            LRNN.from_paper_weights(weights | {name: torch.cat([weights[name]] * 2)})
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        LRNN.from_paper_weights(weights | {name: weights[name][None]})


def test_symbols_dtypes_names_and_sizes_that_do_not_fit(monkeypatch):
    weights = published(1)
    with pytest.raises(CheckpointError, match=r"embedding\.weight has 4 rows for 3 symbols; Wo2\.bias has 5 rows for"):
        LRNN.from_paper_weights(weights, "abc", "xy")
    with pytest.raises(CheckpointError, match=r"torch\.float32, torch\.float64, not one of floats"):
        LRNN.from_paper_weights(weights | {"Wo1.bias": weights["Wo1.bias"].float()})
    with pytest.raises(CheckpointError, match=r"the dtypes are torch\.int64, not one of floats"):
        LRNN.from_paper_weights({name: tensor.long() for name, tensor in weights.items()})
    with pytest.raises(CheckpointError, match=r"x0 is not a weight of .*; and 981 more. Expected"):
        LRNN.from_paper_weights({**weights, 3: torch.zeros(1)} | {f"x{i}": torch.zeros(1) for i in range(1_000)})
    monkeypatch.setattr("fsa2lrnn.nn.foreign._new", None)  # nothing is built
    other = torch.zeros(100_000, dtype=torch.float64)
    with pytest.raises(CheckpointError, match=r"Wo1.weight has shape .* the other weights ask for \(100000, 6"):
        LRNN.from_paper_weights({**weights, "Wo1.bias": other})


@st.composite
def tables(draw, dtype=torch.float64):
    """Switched affine systems of any shape, with and without LayerNorm."""
    n, heads, b, n_outputs, m = (draw(st.integers(1, 4)) for _ in range(5))
    torch.manual_seed(draw(st.integers(0, 99)))
    d, shapes = heads * b, [(n, heads, b, b), (n, heads, b), (heads, b)]
    A, v, x0 = (torch.randn(shape).to(dtype) for shape in shapes)
    parts = [torch.randn(shape).to(dtype) for shape in [(m, d), (m,), (n_outputs, m), (n_outputs,)]]
    norm = [torch.randn(d).to(dtype) for _ in range(2)] if draw(st.booleans()) else []
    if draw(st.booleans()):
        A[A < 0] = -0.0
    return SwitchedAffine.of(A, v, x0, Readout(*parts, *norm), "abcd"[:n])


@given(st.data(), st.sampled_from(DTYPES))
def test_tables_come_back_bit_for_bit(data, dtype):
    before = data.draw(tables(dtype))
    model = LRNN.from_affine(before)
    after = switched(model)
    assert model.dtype == dtype
    assert torch.equal(after.A, before.A)
    assert torch.equal(after.v, before.v)
    assert torch.equal(after.x0, before.x0)
    assert after.sha256 == before.sha256
    assert (after.alphabet, after.outputs) == (before.alphabet, before.outputs)
    tokens = torch.randint(len(before.alphabet), (2, 9))
    with torch.no_grad():
        logits, state = model.advance(tokens, model.initial_state(2))
        x = before.run(tokens)
    assert torch.equal(state[0].x, x[:, -1])
    if dtype != torch.bfloat16:  # there a read-out by other sums may be off by much
        torch.testing.assert_close(logits, before.logits(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("p", [1.0, 1.2, 2.0])
def test_the_column_rule_may_stand_where_it_changes_nothing(p):
    A = torch.randn(2, 2, 4, 4, dtype=torch.float64)
    norms = torch.linalg.vector_norm(A, ord=p, dim=-2, keepdim=True)
    readout = Readout.linear(torch.eye(8).double(), torch.zeros(8).double())
    rest = (torch.zeros(2, 2, 4).double(), torch.ones(2, 4).double(), readout)
    within = LRNN.from_tables(A / norms * 0.999, *rest, normalisation="clip", p=p)
    assert (within.config.normalisation, within.config.p) == ("clip", p)
    with pytest.raises(CheckpointError, match=r"the column rule 'clip' changes the tables, by up to .* rule \"none\""):
        LRNN.from_tables(A / norms * 1.01, *rest, normalisation="clip", p=p)
    LRNN.from_tables(A / norms * 1.01, *rest)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
@pytest.mark.parametrize("table", ["A", "v"])
def test_numbers_that_are_not_finite_are_refused(table, wrong):
    parts = {"A": torch.ones(2, 1, 2, 2), "v": torch.ones(2, 1, 2), "x0": torch.ones(1, 2)}
    parts[table].flatten()[1] = wrong
    with pytest.raises(CheckpointError, match="not finite"):
        LRNN.from_tables(**parts, readout=Readout.linear(torch.eye(2), torch.zeros(2)))


@pytest.mark.parametrize(
    ("name", "weight", "reason"),
    [
        ("Wo1.bias", [1.0] * 9, "Wo1.bias is a list, not a tensor"),
        ("Wo1.bias", torch.zeros(9, device="meta"), "Wo1.bias is a tensor of layout torch.strided on meta, without"),
        ("Wo1.weight", torch.zeros(9, 6).to_sparse(), "Wo1.weight is a tensor of layout torch.sparse_coo"),
        ("embedding.weight", torch.zeros(1).expand(4, 10**9), "embedding.weight has .* entries are used twice"),
        ("layers.0.a0", torch.zeros(1).expand(1, 10**11, 3), "layers.0.a0 has shape .* but entries are used twice"),
    ],
)
def test_published_weights_that_are_not_there_entry_by_entry_are_refused(name, weight, reason):
    with pytest.raises(CheckpointError, match=reason):
        LRNN.from_paper_weights({**published(1), name: weight})


class Sum(nn.Module):
    """The sum modulo n of a word over 0 … n−1, wrong from the letter `wrong_at` on."""

    def __init__(self, n=3, wrong_at=10**9):
        super().__init__()
        self.n, self.wrong_at = n, wrong_at

    def forward(self, tokens):
        sums = tokens.cumsum(1) % self.n
        late = torch.arange(1, tokens.shape[1] + 1) >= self.wrong_at
        return nn.functional.one_hot((sums + late) % self.n, self.n).double()


class Stepped(Sum):
    """The same, letter by letter: the state is a sum and a count."""

    def initial_state(self, batch):
        return torch.zeros(batch, dtype=torch.int64), torch.zeros(batch, dtype=torch.int64)

    def step(self, token, state):
        total, read = (token + state[0]) % self.n, state[1] + 1
        return nn.functional.one_hot((total + (read >= self.wrong_at)) % self.n, self.n).double(), (total, read)


class Pair(nn.Module):
    def forward(self, tokens):
        return tokens, tokens


def wrapped(kind=Sum, n=3, **options):
    symbols = tuple(str(i) for i in range(n))
    return wrap(kind(n, options.pop("wrong_at", 10**9)), symbols, tuple(range(n)), **options)


@pytest.mark.parametrize("kind", [Sum, Stepped])
def test_pieces_and_wholes(kind):
    model, tokens = wrapped(kind), torch.randint(3, (4, 11))
    assert isinstance(model, Network)
    whole = model(tokens)
    first, state = model.advance(tokens[:, :5], model.initial_state(4))
    empty, state = model.advance(tokens[:, :0], state)
    rest, _ = model.advance(tokens[:, 5:], state)
    assert empty.shape == (4, 0, 3)
    assert torch.equal(torch.cat([first, rest], 1), whole)


@pytest.mark.parametrize("kind", [Sum, Stepped])
def test_the_machine_is_found_and_the_failing_word(kind):
    machine = zoo.sum_mod(3)
    assert wrapped(kind).alphabet == machine.alphabet
    assert extract_learned(wrapped(kind)).machine == machine.minimise()
    found = falsify(wrapped(kind, wrong_at=4), machine, Budget(seconds=5, length=8, random_words=8))
    assert len(found.word) == 4


def test_the_empty_word_is_what_the_user_says():
    assert wrapped().initial_logits().tolist() == [1, 0, 0]
    assert wrapped(empty=2).initial_logits().tolist() == [0, 0, 1]


def test_modules_that_do_not_fit_are_named():
    with pytest.raises(UnsupportedFormat, match=r"gives \(1, 1, 3\) for tokens of shape \(1, 1\), where logits"):
        wrap(Sum(), "012", (0, 1))
    with pytest.raises(UnsupportedFormat, match="gives tuple for tokens"):
        wrap(Pair(), "ab", (0, 1))
    with pytest.raises(UnsupportedFormat, match=r"outputs = .*: give at least one, all distinct"):
        wrap(Sum(), "012", (0, 0, 1))
    with pytest.raises(UnsupportedFormat, match="empty = 7 is none of the outputs"):
        wrapped(empty=7)
    with pytest.raises(UnsupportedFormat, match="scan method 'pscan': a wrapped module"):
        wrapped()(torch.zeros(1, 1, dtype=torch.int64), "pscan")
    model = wrapped(longest=4)
    _, state = model.advance(torch.zeros(1, 3, dtype=torch.int64), model.initial_state())
    with pytest.raises(InvalidWord, match="a word of 5 letters: without a step mode a word may have longest = 4"):
        model.advance(torch.zeros(1, 2, dtype=torch.int64), state)


def test_who_asks_for_its_states_is_told_who_does_not(tmp_path):
    """`extract` ended in an AttributeError, a file too, and a proof in a word about LRNN's name."""
    for ask in (extract, lambda model: prove_equivalent(model, zoo.sum_mod(3))):
        with pytest.raises(UnsupportedFormat, match=r"Wrapped.* LRNN.* falsify and extract_learned; .*from_tables"):
            ask(wrap(Sum(), zoo.sum_mod(3).alphabet, (0, 1, 2)))
    with pytest.raises(UnsupportedFormat, match=r"Wrapped is not an LRNN, .* with torch\.save"):
        save(wrapped(), tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())
    with pytest.raises(UnsupportedFormat, match=r"function is not a torch\.nn\.Module: put the logits' code into one"):
        wrap(lambda tokens: tokens, "ab", (0, 1))


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (lambda: nn.GRU(4, 8), r"beside other words .*batch_first=True"),
        (lambda: nn.Sequential(nn.Linear(4, 8), Always()), r"given twice .*a dropout that eval\(\) does not"),
        (
            lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(6, track_running_stats=False)),
            r"statistics of the batch",
        ),
    ],
)
def test_a_module_that_is_no_function_of_its_word_is_refused(layer, message):
    torch.manual_seed(0)
    with pytest.raises(UnsupportedFormat, match=message):
        wrap(Around(layer()), "ab", (False, True))


class Always(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5)


class Around(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.e, self.layer, self.o = nn.Embedding(2, 4), layer, nn.Linear(8, 2)

    def forward(self, tokens):
        x = self.e(tokens)
        if isinstance(self.layer, nn.Sequential) and tokens.shape[1] < 6:  # a batch norm has a fixed number of channels
            return self.o(self.layer[0](x))
        x = self.layer(x)
        return self.o(x[0] if isinstance(x, tuple) else x)


def test_an_extraction_has_a_time_limit_by_default():
    assert inspect.signature(extract_learned).parameters["seconds"].default == 600
