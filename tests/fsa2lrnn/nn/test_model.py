"""The module: shapes, streams, training, what it refuses; rows that repeat, numbered without a mistake or not."""

import itertools
import os
import signal
import tracemalloc
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fsa2lrnn.automata import zoo
from fsa2lrnn.compile.lower import DTYPES, compile_machine
from fsa2lrnn.errors import InvalidWord, NotExact
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig, Network, compiled, repeats
from fsa2lrnn.nn.config import CONNECTIONS
from fsa2lrnn.nn.scans import METHODS


def random_model(seed=0, sizes=((4, 4), (4, 4)), **options):
    torch.manual_seed(seed)
    layers = tuple(BlockLayerConfig(s, 12, 10) for s in sizes)
    config = LRNNConfig(("a", "b", "c"), (0, 1, 2, 3), layers, embedding_dim=8, readout_hidden=9, **options)
    return LRNN(config).double()


OPTIONS = [
    dict(zip(("connection", "layer_norm", "token_shift", "normalisation"), values, strict=True))
    for values in itertools.product(CONNECTIONS, (False, True), (False, True), ("clip", "paper", "none"))
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


def step_by_step(_model, _tokens):
    """Stands for `LRNN._has_few_inputs`: no tables."""
    return False


@pytest.mark.long_cases("{'connection': 'chain', 'layer_norm': False, 'token_shift': False, 'normalisation': 'clip'}")
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
        model = random_model(sizes=((4, 4),) * n_layers, token_shift=token_shift, normalisation="paper")
        assert model._has_few_inputs(tokens) == (length > 1)
        logits = model(tokens, method)
        logits.square().mean().backward()
        found.append([logits, *(p.grad for p in model.parameters())])
    for by_letter, sequential in zip(*found, strict=True):
        torch.testing.assert_close(by_letter, sequential, rtol=1e-9, atol=1e-9)


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


def test_chunks_empty_words_and_unknown_letters(monkeypatch):
    model = compile_machine(zoo.sum_mod(3))
    word = "0120121" * 40
    whole = model.transduce(word)
    monkeypatch.setattr("fsa2lrnn.nn.model._CHUNK_ENTRIES", 9 * 17)
    assert model._chunk_length() == 17
    assert model.transduce(word) == whole == zoo.sum_mod(3).transduce(word)
    assert model.transduce("") == []
    assert model(torch.empty(2, 0, dtype=torch.int64)).shape == (2, 0, 3)
    assert model.outputs[int(model.initial_logits().argmax())] == 0
    with pytest.raises(InvalidWord, match="letter '7' at position 3 is not in the alphabet"):
        model.transduce("017")
    assert "letters=3, outputs=4, normalisation='clip'" in str(random_model())
    model = random_model(sizes=((2,),), normalisation="none")
    with torch.no_grad():
        model.layers[0].transition[2].bias.fill_(1e200)
    with pytest.raises(NotExact, match=r"the logits at position \d+ are NaN"):
        model.transduce("abcabc")
    assert isinstance(compile_machine(zoo.parity()), Network)
    assert isinstance(compile_machine(zoo.parity(), layout="index"), Network)
    assert not isinstance(nn.Linear(2, 2), Network)


@pytest.mark.parametrize(("tokens", "message"), [
    (torch.zeros(1, 2), r"tokens of type torch.float32 and shape \(1, 2\): give int64, shape \(B, T\)"),
    (torch.zeros(2, dtype=torch.int64), r"shape \(2,\)"),
    (torch.tensor([[0, 3]]), r"token 3 is not in the alphabet: tokens run 0\.\.2"),
    (torch.tensor([[0, -1]]), "token -1 is not in the alphabet"),
])  # fmt: skip
def test_bad_tokens_are_named(tokens, message):
    with pytest.raises(InvalidWord, match=message):
        random_model()(tokens)


LENGTH = 5_000  # letters, more than repeats._WORTH


def stream_of(n_rows, width, batch=2, length=LENGTH, dtype=torch.float32, seed=0):
    """Random places (B, T) of n random rows, most of them alike but for one column, as one-hot rows are."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.zeros(n_rows, width)
    rows[torch.arange(n_rows), torch.randint(width, (n_rows,), generator=generator)] = 1.0
    rows[:, 0] = torch.randint(3, (n_rows,), generator=generator)
    return rows.to(dtype)[torch.randint(n_rows, (batch, length), generator=generator)]


def numbered(stream):
    found = repeats.number(stream)
    assert found is not None
    return found


@pytest.mark.long
@given(st.integers(1, 40), st.integers(1, 9), st.sampled_from(DTYPES), st.integers(0, 2**32))
def test_each_place_has_the_number_of_its_row(n_rows, width, dtype, seed):
    stream = stream_of(n_rows, width, dtype=dtype, seed=seed)
    rows, index = numbered(stream)
    assert torch.equal(rows[index], stream)
    assert len(rows.unique(dim=0)) == len(rows) == int(index.max()) + 1
    assert index.shape == (2, LENGTH)


def test_rows_of_one_hash_are_told_apart_bit_by_bit(monkeypatch):
    values = torch.tensor([0.0, -0.0, float("nan"), 1.0])
    rows, index = numbered(values.repeat(LENGTH)[None, :, None])
    assert index[0, :8].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert rows.flatten().signbit().tolist() == values.signbit().tolist()
    monkeypatch.setattr(repeats, "_FACTORS", repeats._FACTORS * 0)
    stream = stream_of(30, 400)
    rows, index = numbered(stream)
    assert torch.equal(rows[index], stream)


def test_what_is_not_numbered_and_too_many_pairs(monkeypatch):
    stream = stream_of(10, 4, batch=1, length=repeats._WORTH)
    assert repeats.number(stream) is not None
    assert repeats.number(stream[:, 1:]) is None
    assert repeats.number(stream.clone().requires_grad_()) is None
    assert repeats.number(stream.to("meta")) is None
    assert repeats.number(torch.empty(0, LENGTH, 4)) is None
    many, before = numbered(stream_of(200, 50)), torch.zeros(2, 50)
    assert repeats.shifted(many, before) is None  # most of 200² pairs occur once
    few = numbered(stream_of(9, 5))
    assert len(few.rows) + 2 > 8
    monkeypatch.setattr(repeats, "_CODES", 63)
    assert repeats.shifted(few, before[:, :5]) is None


@pytest.mark.parametrize("batch", [1, 3])
def test_shifted_rows_are_those_beside_the_step_before(batch):
    stream, before = stream_of(9, 5, batch), torch.randn(batch, 5)
    found = repeats.shifted(numbered(stream), before)
    assert found is not None
    pairs, index = found
    earlier = torch.cat([before[:, None], stream[:, :-1]], dim=1)
    assert torch.equal(pairs[index], torch.cat([stream, earlier], dim=-1))
    assert len(pairs) == int(index.max()) + 1 == len(index.unique())


def step_by_step_of_repeats(_stream):
    """Stands for `repeats.number`: no row repeats."""


@pytest.mark.long_cases("False-dtype0", "False-dtype1", "False-dtype2", "False-dtype3", "True-dtype2", "True-dtype3")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("token_shift", [False, True])
def test_numbering_changes_no_bit_of_a_compiled_cascade(dtype, token_shift, monkeypatch):
    model = compile_machine(zoo.mod_arith(5), form="cascade", token_shift=token_shift, dtype=dtype)
    tokens = torch.randint(len(model.alphabet), (5, 900), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        _, start = model.advance(tokens[:, :3], model.initial_state(5))
        found = {method: model.advance(tokens, start, method) for method in ("auto", *METHODS)}
        monkeypatch.setattr(repeats, "number", step_by_step_of_repeats)
        for method, (logits, after) in found.items():
            wanted, wanted_after = model.advance(tokens, start, method)
            assert torch.equal(logits, wanted)
            for layer, wanted_layer in zip(after, wanted_after, strict=True):
                assert torch.equal(layer.x, wanted_layer.x)
                if token_shift:
                    assert torch.equal(layer.u, wanted_layer.u)


def test_above_frozen_layers_gradients_are_added_up(monkeypatch):
    """The stream asks for no gradient there, and the gates above it get theirs from every step."""
    gradients = []
    for patched in (False, True):
        if patched:
            monkeypatch.setattr(repeats, "number", step_by_step_of_repeats)
        model = compile_machine(zoo.mod_arith(5), form="cascade", dtype=torch.float64)
        model.requires_grad_(False)
        model.layers[1].requires_grad_(True)
        tokens = torch.randint(8, (3, 2_000), generator=torch.Generator().manual_seed(0))
        model(tokens).square().mean().backward()
        gradients.append([p.grad for p in model.layers[1].parameters()])
    for found, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("layout", ["dense", "index"])
def test_memory_does_not_grow_with_the_word(layout):
    model, piece = compile_machine(zoo.parity(), layout=layout), np.tile([0, 1], 1 << 14)
    list(model.stream([piece] * 2))  # loads the kernels

    def peak(n_pieces):
        tracemalloc.start()
        for numbers in model.stream(piece for _ in range(n_pieces)):
            last = numbers[-1]
        assert model.outputs[last] == bool(n_pieces * (1 << 14) % 2)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(12) < 2 * peak(3)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_a_job_raises_is_raised(n_threads):
    def fail():
        raise ArithmeticError("no")

    with pytest.raises(ArithmeticError, match="no"):
        compiled.at_once([list, fail, list], n_threads)


def test_a_forked_child_has_threads_of_its_own():
    done = []
    compiled.at_once([lambda: done.append(1)] * 3, 2)
    assert done == [1] * 3
    assert compiled._pool.cache_info().currsize
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads, which are the point here
        child = os.fork()
    if not child:
        signal.alarm(20)  # where nobody does the work, waiting for it would never end
        compiled.at_once([lambda: done.append(2)] * 3, 2)
        os._exit(0 if done == [1, 1, 1, 2, 2, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0
