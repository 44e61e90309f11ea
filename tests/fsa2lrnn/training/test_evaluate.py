"""What counts as right, whatever pieces the words are read in; intervals that cover."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.training import evaluate as evaluation
from fsa2lrnn.training.data import make_sampler, words
from fsa2lrnn.training.evaluate import Accuracy, count, evaluate, paper_protocol, wilson

_baselines = pytest.importorskip("fsa2lrnn.extra.baselines")
LiquidS4Config, VanillaConfig = _baselines.LiquidS4Config, _baselines.VanillaConfig

ARITHMETIC = "task:mod_arith(3)"


def uniform(machine, outputs=None):
    return words(machine, make_sampler("uniform", machine), outputs)


def untrained(machine):
    torch.manual_seed(0)
    layer = BlockLayerConfig((2, 2), 4, 4)
    outputs = tuple(dict.fromkeys(machine.outputs))
    return LRNN(LRNNConfig(machine.alphabet, outputs, (layer, layer), embedding_dim=4, connection="residual"))


def test_a_constructed_model_is_always_right():
    machine = MooreMachine.from_source(ARITHMETIC)
    model = compile_machine(machine)
    made = words(machine, make_sampler("task", machine, ARITHMETIC), model.outputs)
    found = evaluate(model, made, 0, lengths=(1, 40, 1300), n_words=300, letters=20_000)
    assert found == [Accuracy(1, 300, 300, 300), Accuracy(39, 300, 300, 300), Accuracy(1299, 15, 15, 15)]


def test_no_word_is_longer_than_the_letters_that_a_length_may_take():
    machine = zoo.sum_mod(2)
    model = compile_machine(machine)
    made = uniform(machine, model.outputs)
    assert evaluate(model, made, 0, (30,), n_words=9, letters=30) == [Accuracy(30, 1, 1, 1)]
    wrong = r"length 31: one such word is longer than the 30 letters .*: give shorter lengths, or more letters"
    with pytest.raises(UnsupportedFormat, match=wrong):
        evaluate(model, made, 0, (5, 31), n_words=9, letters=30)


def test_positions_that_do_not_count_are_not_looked_at():
    machine, other = zoo.mod_arith(3, "sink"), zoo.mod_arith(3, "register")  # they differ after operators alone
    model = compile_machine(other)
    made = words(machine, make_sampler("task", machine, ARITHMETIC), model.outputs)
    assert count(model, made, 9, 50, made.generator(0)) == Accuracy(9, 50, 50, 50)


def test_counts_are_those_of_whole_forward_passes(monkeypatch):
    machine = zoo.sum_mod(2)
    model, made, found = untrained(machine), uniform(machine), []
    for entries in (1, 200, 1 << 23):
        monkeypatch.setattr(evaluation, "_PIECE_ENTRIES", entries)
        found.append(count(model, made, 3, 300, made.generator(5)))
    assert found[0] == found[1] == found[2]
    generator = made.generator(5)
    batches = [made.batch(size, 3, generator) for size in (256, 44)]
    right = torch.cat([model(tokens).argmax(-1) == labels for tokens, labels in batches])
    assert found[0] == Accuracy(3, 300, int(right.all(1).sum()), int(right[:, -1].sum()))
    assert 0 < found[0].whole < found[0].last < 300


def test_all_models_read_the_same_words(monkeypatch):
    machine, seen = zoo.sum_mod(3), []
    for model in (untrained(machine), compile_machine(machine), compile_machine(machine, layout="index")):
        read = []
        monkeypatch.setattr(evaluation, "_PIECE_ENTRIES", 256 * 5 * model.entries_per_token + len(seen))
        advance = model.advance
        monkeypatch.setattr(
            model, "advance", lambda t, s, read=read, advance=advance: (read.append(t), advance(t, s))[1]
        )
        count(model, uniform(machine, model.outputs), 33, 3, torch.Generator().manual_seed(0))
        seen.append(torch.cat(read, 1))
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[0], seen[2])


def test_what_is_no_number_is_wrong():
    machine = zoo.sum_mod(2)
    model = compile_machine(machine)
    with torch.no_grad():
        model.readout[2].bias[:] = math.nan
    assert count(model, uniform(machine, model.outputs), 4, 10, torch.Generator().manual_seed(0)) == Accuracy(
        4, 10, 0, 0
    )


def test_the_last_position_of_a_word_in_pieces(monkeypatch):
    machine = zoo.sum_mod(2)
    model = compile_machine(machine)
    made = uniform(machine, model.outputs)
    monkeypatch.setattr(evaluation, "_PIECE_ENTRIES", 1)
    calls = []

    def advance(tokens, state):
        logits, state = original(tokens, state)
        calls.append(tokens.shape[1])
        return (-logits if len(calls) == 1 else logits), state

    original = model.advance
    monkeypatch.setattr(model, "advance", advance)
    assert count(model, made, 4, 7, made.generator(0)) == Accuracy(4, 7, 0, 7)
    assert calls == [1] * 4


@given(st.integers(0, 400), st.integers(1, 400))
def test_wilson_solves_its_equation(right, n):
    right = min(right, n)
    low, high = wilson(right, n)
    assert 0 <= low <= right / n <= high <= 1
    for bound in (low, high):
        deviation = abs(right / n - bound) - 1.959964 * math.sqrt(bound * (1 - bound) / n)
        assert abs(deviation) < 1e-9


def test_accuracies_in_json():
    value = Accuracy(40, 100, 90, 100).to_json()
    assert value["whole_word"]["accuracy"] == 0.9
    assert value["last_position"]["accuracy"] == value["last_position"]["interval"][1] == 1.0
    assert value["last_position"]["interval"][0] == pytest.approx(0.963, abs=1e-3)
    assert (value["length"], value["words"], value["whole"], value["last"]) == (40, 100, 90, 100)


def test_the_papers_protocol_takes_the_best_look():
    looks = [
        {"step": k, "accuracy": a, "length": 500, "words": 128} for k, a in ((1, 0.2), (2, 0.9), (3, 0.9), (4, 0.5))
    ]
    assert paper_protocol(looks, 1.0) == {
        "accuracy": 0.9, "step": 2, "length": 500, "words": 128, "looks": 4, "stopped": False,
    }  # fmt: skip
    assert paper_protocol([*looks, {**looks[0], "accuracy": 1.0}], 1.0)["stopped"]
    assert not paper_protocol([{**looks[0], "accuracy": 1.0}], None)["stopped"]
    assert paper_protocol([], 1.0) == {"accuracy": None, "looks": 0}


def test_layers_that_look_ahead_read_whole_words(monkeypatch):
    machine = zoo.sum_mod(3)
    layer = LiquidS4Config(4, d_state=4, kernel="polyb")
    torch.manual_seed(0)
    model = LRNN(LRNNConfig(machine.alphabet, (0, 1, 2), (layer,), embedding_dim=4, connection="full-residual"))
    made = uniform(machine, model.outputs)
    wanted = count(model, made, 30, 20, made.generator(0))
    monkeypatch.setattr(evaluation, "_PIECE_ENTRIES", 1)
    monkeypatch.setattr(evaluation, "_DRAWN", 7)
    found = count(model, made, 30, 20, made.generator(0))
    assert found.words == wanted.words == 20
    batch, right = made.begin(20), 0
    pieces, generator = [], made.generator(0)
    for first in range(0, 30, 7):
        drawn, batch = made.advance(batch, min(7, 30 - first), generator)
        pieces.append(drawn)
    tokens, labels = (torch.cat([getattr(piece, name) for piece in pieces], 1) for name in ("tokens", "labels"))
    right = (model(tokens).argmax(-1) == labels)[:, -1].sum()
    assert found.last == int(right)


def test_a_recurrence_that_overflows_is_wrong_from_then_on():
    machine = zoo.sum_mod(3)
    torch.manual_seed(0)
    config = LRNNConfig(machine.alphabet, (0, 1, 2), (VanillaConfig(4),), embedding_dim=4, layer_norm=True)
    model = LRNN(config)
    with torch.no_grad():
        model.layers[0].A.copy_(2 * torch.eye(4))
    short, long = evaluate(model, uniform(machine, model.outputs), 0, (5, 200), 50)
    assert (short.words, long.words) == (50, 50)
    assert short.last > 0
    assert (long.last, long.whole) == (0, 0)
