"""Words that need not fit in memory; many letters per step lead where single steps lead."""

import io
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, compile_machine, streaming, zoo
from fsa2lrnn import multi_step as module
from fsa2lrnn.errors import BudgetExceeded, InvalidWord, UnsupportedFormat
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.multi_step import MultiStepTable, walk
from fsa2lrnn.rows import distinct_rows, number_rows
from fsa2lrnn.symbols import encode_text
from fsa2lrnn.testing.strategies import machines


def run(model, pieces, *rest, **options):
    """`streaming.run` on text."""
    return streaming.run(model, encode_text(pieces, model.alphabet), *rest, **options)


@pytest.fixture
def lowered_threshold(monkeypatch):
    monkeypatch.setattr(streaming, "LONG", 50)


def test_short_and_empty_words():
    result = run(compile_machine(zoo.mod_arith(5)), ["1+2", "-3*4"])
    assert (result.length, result.output, result.method) == (7, 1, "auto")
    assert result.trace == [1, None, 3, None, 0, None, 1]
    assert run(compile_machine(zoo.sum_mod(3)), []).output == 0
    result = run(compile_machine(MooreMachine([[0]], ["only"])), ["  \n"])
    assert (result.length, result.output) == (0, "only")


@pytest.mark.usefixtures("lowered_threshold")
def test_a_long_word_is_walked_on_the_models_own_table():
    machine = zoo.mod_arith(5)
    word = "1+2-3*4+" * 20 + "3"
    pieces = [word[i : i + 7] for i in range(0, len(word), 7)]
    numbers = []
    model = compile_machine(machine)
    result = run(model, pieces, sink=numbers.extend)
    assert result.method == "walked on the model's 51-state table"
    assert [model.outputs[j] for j in numbers] == machine.transduce(word)
    assert (result.length, result.output) == (161, machine.transduce(word)[-1])
    leapt = run(model, pieces)
    assert leapt.method == "walked on the model's 51-state table, 2 letters at a time"
    assert (leapt.length, leapt.output, leapt.trace) == (161, result.output, [])


@pytest.mark.usefixtures("lowered_threshold")
def test_a_named_scan_is_used_and_an_unknown_letter_named_however_long_the_word():
    machine = zoo.sum_mod(3)
    result = run(compile_machine(machine), ["012" * 40], "pscan")
    assert (result.method, result.output) == ("pscan", machine.transduce("012" * 40)[-1])
    with pytest.raises(InvalidWord, match="letter 'x' at position 121 is not in the alphabet"):
        run(compile_machine(zoo.sum_mod(3)), ["012" * 40, "x"])
    model = compile_machine(zoo.sum_mod(3))
    result = run(model, ["012" * 40])
    with pytest.raises(BudgetExceeded, match="a trace of 120 letters is not kept in memory for JSON"):
        streaming.result_json(model, result, [])
    assert "trace" not in streaming.result_json(model, result)


@pytest.mark.usefixtures("lowered_threshold")
def test_a_model_that_does_not_close_is_scanned(monkeypatch):
    monkeypatch.setattr(streaming, "_TABLE_STATES", 100)
    torch.manual_seed(0)
    model = LRNN(LRNNConfig(("a", "b"), (0, 1), (BlockLayerConfig((2,), 4, 4),), 4, 4))
    word = "abbab" * 30
    result = run(model, [word])
    assert (result.method, result.output) == ("auto", model.transduce(word)[-1])


@pytest.mark.parametrize(("layout", "method"), [("auto", "auto"), ("index", "compose"), ("index", "walk")])
def test_memory_does_not_grow_with_the_word(layout, method):
    model, piece = compile_machine(zoo.parity(), layout=layout), "01" * (1 << 18)
    run(model, [piece] * 2, method)  # loads the compiled walk

    def peak(n_pieces):
        tracemalloc.start()
        assert run(model, (piece for _ in range(n_pieces)), method).output == n_pieces * (1 << 18) % 2
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(12) < 1.2 * peak(3)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1 << 20])
def test_pieces_of_a_stream(size, monkeypatch):
    monkeypatch.setattr(streaming, "_PIECE", size)
    text = "aé€𝄞\r\nb" * 10
    pieces = list(streaming.read_pieces(io.BytesIO(text.encode())))
    assert "".join(pieces) == text.replace("\r\n", "\n")
    assert max(map(len, pieces)) <= size
    assert list(streaming.read_pieces(io.BytesIO())) == []


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1 << 20])
@pytest.mark.parametrize(
    ("content", "byte", "offset"), [(b"ab\xe9c", 0xE9, 2), (b"\xe2\x82\xac\xff", 0xFF, 3), (b"abc\xe2\x82", 0xE2, 3)]
)
def test_a_byte_that_is_no_utf8_is_named_with_its_offset(size, content, byte, offset, monkeypatch):
    monkeypatch.setattr(streaming, "_PIECE", size)
    with pytest.raises(UnsupportedFormat, match=rf"standard input is not UTF-8 \(byte 0x{byte:x} at offset {offset}\)"):
        list(streaming.read_pieces(io.BytesIO(content)))


SHAPES = [(0, 5), (1, 0), (1, 1), (7, 9), (8, 8), (9, 17), (16, 1), (19, 41), (3, 20_011), (17, 2_100)]  # (B, T)


def walked(next_state, starts, tokens):
    """The reference: each word by itself, step by step."""
    words = [walk(next_state, int(q), word) for q, word in zip(starts, tokens, strict=True)]
    return np.array(words, np.int64).reshape(tokens.shape)


def ends(next_state, starts, tokens):
    return np.concatenate([np.asarray(starts)[:, None], walked(next_state, starts, tokens)], axis=1)[:, -1].tolist()


@given(machines(max_states=6), st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_leaps_lead_where_single_steps_lead(machine, length, seed):
    tokens = np.random.default_rng(seed).integers(len(machine.alphabet), size=length)
    leaps, states = MultiStepTable.of(machine.delta), np.arange(machine.n_states)
    batch = np.tile(tokens, (machine.n_states, 1))
    expected = ends(machine.delta, states, batch)
    assert [leaps.final(q, tokens) for q in range(machine.n_states)] == expected
    assert leaps.map_of(tokens).tolist() == expected
    assert leaps.finals(states, batch).tolist() == expected
    for q in range(machine.n_states):
        leaps.walk(q, tokens, found := np.full(length, -1))
        assert found.tolist() == walk(machine.delta, q, tokens).tolist()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
@pytest.mark.parametrize(("n_states", "n_letters"), [(1, 1), (1, 2), (3, 1), (2, 2), (5, 5), (51, 8), (300, 4)])
def test_a_batch_ends_where_each_word_ends(shape, dtype, n_states, n_letters):
    rng = np.random.default_rng(n_states)
    delta = rng.integers(n_states, size=(n_letters, n_states))
    tokens, starts = rng.integers(n_letters, size=shape).astype(dtype), rng.integers(n_states, size=shape[0])
    before = starts.copy()
    assert MultiStepTable.of(delta).finals(starts, tokens).tolist() == ends(delta, starts, tokens)
    assert starts.tolist() == before.tolist()


@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("machine", [zoo.sum_mod(5), zoo.mod_arith(5).minimise()], ids=["few states", "many"])
def test_pieces_of_a_long_word_compose(dtype, threads, machine, monkeypatch):
    monkeypatch.setattr(module, "LONG", 1 << 12)
    tokens = np.random.default_rng(0).integers(len(machine.alphabet), size=(1 << 16) + 7).astype(dtype)
    states = walk(machine.delta, machine.start, tokens)
    leaps, found = MultiStepTable.of(machine.delta), np.empty_like(states)
    leaps.walk(machine.start, tokens, found, threads)
    assert np.array_equal(found, states)
    assert leaps.final(machine.start, tokens, threads) == states[-1]


@pytest.mark.parametrize("width", [8, 13, 40])
def test_rows_of_more_codes_than_fit_an_integer(width):
    rng = np.random.default_rng(0)
    rows = rng.integers(-(2**10), 2**10, (50, width))
    rows = rows[rng.integers(50, size=200)]
    assert (np.sort(rows[np.argsort(number_rows(rows))], axis=0) == np.sort(rows, axis=0)).all()
    found, number = distinct_rows(rows)
    assert found.tolist() == np.unique(rows, axis=0).tolist()
    assert (found[number] == rows).all()
