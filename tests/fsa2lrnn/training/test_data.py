"""Drawn words and evaluation."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, compile_machine, zoo
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import output_classes
from fsa2lrnn.automata.table_kernels import settled
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.nn.layers.liquid_s4 import LiquidS4Config
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.training import evaluate as evaluation
from fsa2lrnn.training.data import Sampler, make_sampler, shares_of, walk_compiled, walk_composed, words
from fsa2lrnn.training.evaluate import Accuracy, count, paper_protocol, wilson
from fsa2lrnn.training.evaluate import evaluate as evaluate_of_evaluate

ARITHMETIC = "task:mod_arith(5)"


def uniform(machine, outputs=None):
    return words(machine, make_sampler("uniform", machine), outputs)


def drawn(source, sampler, size=64, length=41, seed=0):
    machine = MooreMachine.from_source(source)
    made = words(machine, make_sampler(sampler, machine, source))
    return machine, made, *made.batch(size, length, made.generator(seed))


def read(made, labels):
    return [None if label == UNCOUNTED else made.outputs[label] for label in labels.tolist()]


@given(machines(), st.sampled_from(["uniform", "live", "balanced"]), st.integers(0, 2**32 - 1))
def test_labels_are_the_outputs_of_the_machine(machine, sampler, seed):
    made = words(machine, make_sampler(sampler, machine))
    tokens, labels = made.batch(5, 9, made.generator(seed))
    assert tokens.dtype == labels.dtype == torch.int64
    assert tokens.shape == labels.shape == (5, 9)
    for word, row in zip(tokens, labels, strict=True):
        assert [made.outputs[j] for j in row] == machine.transduce([machine.alphabet[a] for a in word])


@given(machines(), st.sampled_from(["uniform", "live", "balanced"]), st.integers(0, 3), st.integers(0, 17))
def test_both_walks_agree(machine, sampler, size, length):
    made = words(machine, make_sampler(sampler, machine))
    cells = torch.randint(made.n_draws, (size, length), generator=made.generator(length))
    starts = torch.randint(machine.n_states, (size,), generator=made.generator(size))
    compiled = walk_compiled(made.next_state, made.letters, cells, starts)
    composed = walk_composed(made.next_state, made.letters, cells, starts)
    assert all(torch.equal(a, b) for a, b in zip(compiled, composed, strict=True))


def test_words_go_on_where_they_stopped():
    machine = MooreMachine.from_source(ARITHMETIC)
    made = words(machine, make_sampler("task", machine, ARITHMETIC))
    generator, walks, pieces = made.generator(0), made.begin(6), []
    for length in (1, 0, 4, 8):
        batch, walks = made.advance(walks, length, generator)
        pieces.append(batch)
    tokens, labels = (torch.cat(parts, 1) for parts in zip(*pieces, strict=True))
    assert walks.position == 13
    for word, row in zip(tokens, labels, strict=True):
        transduced = machine.transduce([machine.alphabet[a] for a in word])
        assert read(made, row)[::2] == transduced[::2]
        assert (row[1::2] == UNCOUNTED).all()


def test_modular_arithmetic_and_uniform_letters():
    _, _, tokens, _ = drawn("task:sum_mod(5)", "uniform", 1000, 50)
    shares = tokens.flatten().bincount(minlength=5) / tokens.numel()
    assert (shares - 0.2).abs().max() < 0.008  # 4.5 standard deviations
    completed = [drawn(f"task:mod_arith(5, completion={name})", "task") for name in ("sink", "ignore", "register")]
    texts = [[read(made, row) for row in labels] for _, made, _, labels in completed]
    assert texts[0] == texts[1] == texts[2]
    assert all(torch.equal(tokens, completed[0][2]) for _, _, tokens, _ in completed)
    machine, made, tokens, labels = drawn(ARITHMETIC, "task")
    assert made.outputs == (0, 1, 2, 3, 4)
    assert (labels[:, 1::2] == UNCOUNTED).all()
    for word, row in zip(tokens, labels, strict=True):
        text = "".join(machine.alphabet[a] for a in word)
        assert read(made, row)[-1] == eval(text) % 5
    digits, operators = tokens[:, ::2].flatten().bincount(), tokens[:, 1::2].flatten().bincount()[5:]
    assert (digits / digits.sum() - 1 / 5).abs().max() < 0.06
    assert (operators / operators.sum() - 1 / 3).abs().max() < 0.06
    assert (made.fit(40), made.fit(500), made.fit(39), made.fit(1)) == (39, 499, 39, 1)


@given(machines())
def test_live_words_settle_only_where_they_must(machine):
    sinks = settled(machine.delta, output_classes(machine.outputs))
    for q in range(machine.n_states):
        assert sinks[q] == (len(outputs_from(machine, q)) == 1)
    choices = make_sampler("live", machine).choices[0]
    for q in range(machine.n_states):
        leads = sinks[machine.delta[:, q]]
        assert choices[q].tolist() == ([True] * len(leads) if leads.all() else (~leads).tolist())


def outputs_from(machine, start):
    seen, waiting = {start}, [start]
    for q in waiting:
        new = {int(r) for r in machine.delta[:, q]} - seen
        seen |= new
        waiting += new
    return {machine.outputs[q] for q in seen}


def test_live_words_of_ab_star():
    machine = MooreMachine.from_regex("(ab)*")
    shares = {name: shares_of(words(machine, make_sampler(name, machine)), 40)[True] for name in ("task", "balanced")}
    assert shares["task"] < 1e-6
    assert shares["balanced"] == pytest.approx(0.5)
    labels = words(machine, make_sampler("balanced", machine)).batch(10, 40, torch.Generator().manual_seed(0)).labels
    assert labels[:, -1].unique().tolist() == [0, 1]


def test_samplers_are_checked_and_lengths_bounded():
    machine = zoo.sum_mod(3)
    made = words(machine, make_sampler("uniform", machine), (2, 1, 0, "other"))
    tokens, labels = made.batch(2, 5, made.generator(0))
    assert labels[0].tolist() == [2 - total for total in machine.transduce([machine.alphabet[a] for a in tokens[0]])]
    with pytest.raises(UnsupportedFormat, match="output 2 of the machine is none of 0, 1: take the machine"):
        words(machine, make_sampler("uniform", machine), (0, 1))
    with pytest.raises(UnsupportedFormat, match="sampler 'even' is not known: choose one of uniform, live, balanced"):
        make_sampler("even", zoo.parity())
    machine = zoo.parity()
    made = words(machine, Sampler(np.ones((3, 2, 2), bool), (False, False, True)))
    assert (made.fit(8), made.fit(6), made.fit(3)) == (6, 6, 3)
    with pytest.raises(UnsupportedFormat, match="length 2: no word"):
        made.fit(2)
    n = 60
    machine = MooreMachine(np.tile(np.arange(n), (n, 1)), range(n))
    sampler = Sampler(np.tri(n, dtype=bool)[None], (True,))  # 1 … 60 choices
    with pytest.raises(BudgetExceeded, match='use the sampler "uniform"'):
        words(machine, sampler)
    machine = zoo.sum_mod(2)
    model = compile_machine(machine)
    made = uniform(machine, model.outputs)
    assert evaluate_of_evaluate(model, made, 0, (30,), n_words=9, letters=30) == [Accuracy(30, 1, 1, 1)]
    wrong = r"length 31: one such word is longer than the 30 letters .*: give shorter lengths, or more letters"
    with pytest.raises(UnsupportedFormat, match=wrong):
        evaluate_of_evaluate(model, made, 0, (5, 31), n_words=9, letters=30)


ARITHMETIC_OF_EVALUATE = "task:mod_arith(3)"


def untrained(machine):
    torch.manual_seed(0)
    layer = BlockLayerConfig((2, 2), 4, 4)
    outputs = tuple(dict.fromkeys(machine.outputs))
    return LRNN(LRNNConfig(machine.alphabet, outputs, (layer, layer), embedding_dim=4, connection="residual"))


def test_constructed_models_are_right_and_positions_that_do_not_count_are_ignored():
    machine = MooreMachine.from_source(ARITHMETIC_OF_EVALUATE)
    model = compile_machine(machine)
    made = words(machine, make_sampler("task", machine, ARITHMETIC_OF_EVALUATE), model.outputs)
    found = evaluate_of_evaluate(model, made, 0, lengths=(1, 40, 1300), n_words=300, letters=20_000)
    assert found == [Accuracy(1, 300, 300, 300), Accuracy(39, 300, 300, 300), Accuracy(1299, 15, 15, 15)]
    machine, other = zoo.mod_arith(3, "sink"), zoo.mod_arith(3, "register")  # they differ after operators alone
    model = compile_machine(other)
    made = words(machine, make_sampler("task", machine, ARITHMETIC_OF_EVALUATE), model.outputs)
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


def test_numbers_that_overflow_are_wrong():
    machine = zoo.sum_mod(2)
    model = compile_machine(machine)
    with torch.no_grad():
        model.readout[2].bias[:] = math.nan
    assert count(model, uniform(machine, model.outputs), 4, 10, torch.Generator().manual_seed(0)) == Accuracy(
        4, 10, 0, 0
    )


@given(st.integers(0, 400), st.integers(1, 400))
def test_wilson_solves_its_equation(right, n):
    right = min(right, n)
    low, high = wilson(right, n)
    assert 0 <= low <= right / n <= high <= 1
    for bound in (low, high):
        deviation = abs(right / n - bound) - 1.959964 * math.sqrt(bound * (1 - bound) / n)
        assert abs(deviation) < 1e-9


def test_accuracies_and_the_best_of_evaluations():
    value = Accuracy(40, 100, 90, 100).to_json()
    assert value["whole_word"]["accuracy"] == 0.9
    assert value["last_position"]["accuracy"] == value["last_position"]["interval"][1] == 1.0
    assert value["last_position"]["interval"][0] == pytest.approx(0.963, abs=1e-3)
    assert (value["length"], value["words"], value["whole"], value["last"]) == (40, 100, 90, 100)
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
