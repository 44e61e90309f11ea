"""The module: shapes, streams, training, and what it refuses."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import InvalidWord, NotExact, UnsupportedFormat
from fsa2lrnn.lower import DTYPES, compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.config import CONNECTIONS
from fsa2lrnn.lrnn.network import Network
from fsa2lrnn.lrnn.scans import METHODS


def random_model(seed=0, sizes=((4, 4), (4, 4)), **options):
    torch.manual_seed(seed)
    layers = tuple(BlockLayerConfig(s, 12, 10) for s in sizes)
    config = LRNNConfig(("a", "b", "c"), (0, 1, 2, 3), layers, embedding_dim=8, readout_hidden=9, **options)
    return LRNN(config).double()


OPTIONS = [
    dict(zip(("connection", "layer_norm", "token_shift", "normalisation"), values, strict=True))
    for values in itertools.product(CONNECTIONS, (False, True), (False, True), ("clip", "released", "none"))
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_word_in_pieces_is_the_word_whole(options):
    model = random_model(**options)
    tokens = torch.randint(3, (2, 11), generator=torch.Generator().manual_seed(3))
    whole = model(tokens)
    assert whole.shape == (2, 11, 4)
    state, pieces = model.initial_state(2), []
    for piece in tokens.split([4, 0, 1, 6], dim=1):
        logits, state = model.advance(piece, state)
        pieces.append(logits)
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_scans_agree_in_the_model_forward_and_backward(options):
    tokens = torch.randint(3, (2, 9), generator=torch.Generator().manual_seed(3))
    gradients = []
    for method in METHODS:
        model = random_model(**options)
        model(tokens, method).square().mean().backward()
        gradients.append([p.grad for p in model.parameters()])
    for reference, *others in zip(*gradients, strict=True):
        for other in others:
            torch.testing.assert_close(other, reference, rtol=1e-9, atol=1e-9)


def step_by_step(_model, _tokens):
    """Stands for `LRNN._has_few_inputs`: no tables."""
    return False


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_first_layer_with_tables_is_the_one_without_forward_and_backward(options, monkeypatch):
    tokens = torch.randint(3, (5, 14), generator=torch.Generator().manual_seed(3))
    found = []
    for patched in (False, True):
        if patched:
            monkeypatch.setattr(LRNN, "_has_few_inputs", step_by_step)
        model = random_model(**options)
        assert model._has_few_inputs(tokens) == (not patched)
        start = model.initial_state(5)
        _, carried = model.advance(tokens[:, :4], start)
        logits, after = model.advance(tokens, carried)
        logits.square().mean().backward()
        states = [part for layer in after for part in layer if part is not None]
        found.append([logits, *states, *(p.grad for p in model.parameters())])
    for by_letter, by_step in zip(*found, strict=True):
        torch.testing.assert_close(by_letter, by_step, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("length", [1, 14])  # without and with tables for the first layer
@pytest.mark.parametrize("token_shift", [False, True])
@pytest.mark.parametrize("n_layers", [1, 3])
def test_letters_are_sequential_forward_and_backward(n_layers, token_shift, length):
    tokens = torch.randint(3, (5, length), generator=torch.Generator().manual_seed(3))
    found = []
    for method in ("letters", "sequential"):
        model = random_model(sizes=((4, 4),) * n_layers, token_shift=token_shift, normalisation="released")
        assert model._has_few_inputs(tokens) == (length > 1)
        logits = model(tokens, method)
        logits.square().mean().backward()
        found.append([logits, *(p.grad for p in model.parameters())])
    for by_letter, sequential in zip(*found, strict=True):
        torch.testing.assert_close(by_letter, sequential, rtol=1e-9, atol=1e-9)


def test_letters_compute_the_same_in_a_cascade_and_are_not_for_an_index():
    model = compile_machine(zoo.mod_arith(5), form="cascade", token_shift=False)
    assert len(model.layers) > 1
    tokens = torch.randint(len(model.alphabet), (40, 120), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(model(tokens, "letters"), model(tokens))
    with pytest.raises(UnsupportedFormat, match="scan method 'letters' is not known: choose one of auto, sequential"):
        compile_machine(zoo.mod_arith(5), layout="index")(tokens, "letters")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", ["onehot", "cascade"])
def test_tables_change_no_bit_of_a_compiled_model(form, dtype, monkeypatch):
    model = compile_machine(zoo.group("Z3xZ2"), form=form, dtype=dtype)
    tokens = torch.randint(len(model.alphabet), (40, 50), generator=torch.Generator().manual_seed(0))
    assert model._has_few_inputs(tokens)
    by_letter = [model(tokens, method) for method in METHODS]
    monkeypatch.setattr(LRNN, "_has_few_inputs", step_by_step)
    for logits in by_letter:
        assert torch.equal(logits, model(tokens, "sequential"))


@pytest.mark.parametrize("token_shift", [False, True])
def test_the_gates_of_the_first_layer_run_once_a_letter_or_pair(token_shift):
    model, seen = random_model(token_shift=token_shift), []
    for layer in model.layers:
        layer.transition.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[:-1].numel()))
    model(torch.zeros(2, 50, dtype=torch.int64))
    assert seen == [9 + 2 if token_shift else 3, 100]


def test_residual_streams_add_all_layers_but_the_last():
    model = random_model(connection="residual")
    tokens = torch.tensor([[0, 1]])
    embedded = model.embedding(tokens)
    below, _ = model.layers[0](embedded, model.layers[0].initial_state(1))
    above, _ = model.layers[1](embedded + below, model.layers[1].initial_state(1))
    assert torch.equal(model(tokens), model.readout(above))


def test_a_compiled_model_is_trained_like_any_other():
    model = compile_machine(zoo.mod_arith(5))
    assert type(model) is LRNN
    before = [p.clone() for p in model.parameters()]
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    logits = model(torch.randint(8, (4, 7), generator=torch.Generator().manual_seed(0)))
    logits.logsumexp(-1).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    optimiser.step()
    assert any(not torch.equal(p, q) for p, q in zip(before, model.parameters(), strict=True))


def test_streams_in_pieces_give_the_same_outputs():
    model = compile_machine(zoo.mod_arith(5))
    word = "1+2*3-4" * 30
    tokens = np.array([model.alphabet.index(letter) for letter in word])
    pieces = np.split(tokens, [1, 1, 50, 187])
    numbers = np.concatenate(list(model.stream(pieces)))
    assert [model.outputs[j] for j in numbers] == model.transduce(word)


def test_a_long_word_is_cut_into_chunks_that_carry_the_state(monkeypatch):
    model = compile_machine(zoo.sum_mod(3))
    word = "0120121" * 40
    whole = model.transduce(word)
    monkeypatch.setattr("fsa2lrnn.lrnn.model._CHUNK_ENTRIES", 9 * 17)
    assert model._chunk_length() == 17
    assert model.transduce(word) == whole == zoo.sum_mod(3).transduce(word)


@pytest.mark.parametrize("method", ["sequential", "pscan", "walk", "compose"])
def test_an_index_model_transduces_by_every_method(method, monkeypatch):
    machine, word = zoo.mod_arith(5), "1+2*3-4" * 30
    model = compile_machine(machine, layout="index")
    assert model.methods == ("sequential", "pscan", "walk", "compose")
    monkeypatch.setattr("fsa2lrnn.lrnn.model._INDEX_CHUNK", 97)
    assert model.transduce(word, method=method) == machine.transduce(word)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (torch.zeros(1, 2), r"tokens of type torch.float32 and shape \(1, 2\): give int64, shape \(B, T\)"),
        (torch.zeros(2, dtype=torch.int64), r"shape \(2,\)"),
        (torch.tensor([[0, 3]]), r"token 3 is no letter: tokens run 0\.\.2"),
        (torch.tensor([[0, -1]]), "token -1 is no letter"),
    ],
)
def test_bad_tokens_are_named(tokens, message):
    with pytest.raises(InvalidWord, match=message):
        random_model()(tokens)


def test_empty_words_and_unknown_letters():
    model = compile_machine(zoo.sum_mod(3))
    assert model.transduce("") == []
    assert model(torch.empty(2, 0, dtype=torch.int64)).shape == (2, 0, 3)
    assert model.outputs[int(model.initial_logits().argmax())] == 0
    with pytest.raises(InvalidWord, match="letter '7' at position 3 is not in the alphabet"):
        model.transduce("017")
    assert "letters=3, outputs=4, normalisation='clip'" in str(random_model())


def test_logits_that_are_not_numbers_are_refused():
    model = random_model(sizes=((2,),), normalisation="none")
    with torch.no_grad():
        model.layers[0].transition[2].bias.fill_(1e200)
    with pytest.raises(NotExact, match=r"the logits at position \d+ are NaN"):
        model.transduce("abcabc")


def test_a_model_is_a_network_and_a_plain_module_is_none():
    assert isinstance(compile_machine(zoo.parity()), Network)
    assert isinstance(compile_machine(zoo.parity(), layout="index"), Network)
    assert not isinstance(nn.Linear(2, 2), Network)
