"""A module of a user's before those who ask it for outputs alone."""

import pytest
import torch
from torch import nn

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.extraction import extract, extract_learned
from fsa2lrnn.lrnn.checkpoint import save
from fsa2lrnn.lrnn.network import Network
from fsa2lrnn.lrnn.wrapped import wrap
from fsa2lrnn.verification import prove_equivalent
from fsa2lrnn.verification.falsify import Budget, falsify


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


def test_words_of_unlike_lengths_are_carried_on_together():
    model = wrapped()
    a, b = (model.advance(torch.tensor([word]), model.initial_state())[1][0] for word in ([1, 2, 2], [2]))
    both = (type(a)(torch.cat([a.x, b.x]), torch.cat([a.u, b.u])),)
    logits, after = model.advance(torch.tensor([[1], [2]]), both)
    assert logits[:, 0].argmax(-1).tolist() == [0, 1]
    assert after[0].u.tolist() == [[4], [2]]


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


def test_what_does_not_fit_is_named():
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


@pytest.mark.parametrize("ask", [extract, lambda model: prove_equivalent(model, zoo.sum_mod(3))])
def test_who_asks_for_its_states_is_told_who_does_not(ask):
    """`extract` ended in an AttributeError, and a proof in a word about LRNN's name."""
    with pytest.raises(UnsupportedFormat, match=r"Wrapped.* LRNN.* falsify and extract_learned; .*from_tables"):
        ask(wrap(Sum(), zoo.sum_mod(3).alphabet, (0, 1, 2)))


def test_a_file_holds_no_module_of_a_users(tmp_path):
    """It ended in an AttributeError."""
    with pytest.raises(UnsupportedFormat, match=r"Wrapped is no LRNN, .*: write a module of your own with torch\.save"):
        save(wrapped(), tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_what_is_no_module_is_refused():
    with pytest.raises(UnsupportedFormat, match=r"function is no torch\.nn\.Module: put what computes logits into one"):
        wrap(lambda tokens: tokens, "ab", (0, 1))
