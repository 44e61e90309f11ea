"""Words that need not fit in memory."""

import io
import tracemalloc

import pytest
import torch

from fsa2lrnn import streaming
from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.errors import BudgetExceeded, InvalidWord, UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.symbols import encode_text


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
