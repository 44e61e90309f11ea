"""Models from elsewhere: the released code's, against that architecture written out, tables, and users' modules."""

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
    assert (wrapped().initial_logits().tolist(), wrapped(empty=2).initial_logits().tolist()) == ([1, 0, 0], [0, 0, 1])


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


@pytest.mark.parametrize(("layer", "message"), [
    (lambda: nn.GRU(4, 8), r"beside other words .*batch_first=True"),
    (lambda: nn.Sequential(nn.Linear(4, 8), Always()), r"given twice .*a dropout that eval\(\) does not"),
    (lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(6, track_running_stats=False)), r"statistics of the batch"),
])  # fmt: skip
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
