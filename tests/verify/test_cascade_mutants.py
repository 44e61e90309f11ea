"""Compiled cascades with a fault: the proof fails with a shortest word, or brute force finds no difference either."""

import itertools
from functools import lru_cache

import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.testing import mutants
from fsa2lrnn.verification import Proved, Refuted, Undecided, prove_equivalent

BUDGET = 2_000  # a fault can make the states of a layer grow without end


def outputs_of_all_words(model, length):
    """Output numbers after every letter of every word of a length: (|Σ|^length, length); −1 where logits are no
    numbers."""
    tokens = torch.tensor(list(itertools.product(range(len(model.alphabet)), repeat=length)))
    with torch.no_grad():
        logits = model(tokens)
    return logits.argmax(-1).where(~logits.isnan().any(-1), -1)


@lru_cache
def wanted_of_all_words(machine, outputs, length):
    words = itertools.product(machine.alphabet, repeat=length)
    return torch.tensor([[outputs.index(y) for y in machine.transduce(word)] for word in words])


def first_difference(model, machine, longest):
    """The length of a shortest word that tells model and machine apart, by trying all; None up to the longest."""
    start = machine.outputs[machine.start]
    with torch.no_grad():
        if model.outputs[int(model.initial_logits().argmax())] != start:
            return 0
    given = outputs_of_all_words(model, longest)
    wrong = (given != wanted_of_all_words(machine, model.outputs, longest)).any(0).nonzero()
    return int(wrong[0]) + 1 if len(wrong) else None


def judged(model, machine, longest):
    """The verdict on a mutant, after it has been held against all words up to a length."""
    verdict = prove_equivalent(model, machine, budget=BUDGET)
    shortest = first_difference(model, machine, longest)
    if isinstance(verdict, Refuted):
        assert shortest == (len(verdict.word) if len(verdict.word) <= longest else None)
        right = machine.transduce(verdict.word) if verdict.word else [machine.outputs[machine.start]]
        assert list(verdict.failure.wanted) == right
        assert verdict.failure.given[-1] != right[-1]
        assert model.transduce(verdict.word) == list(verdict.failure.given) or not verdict.word
    else:
        assert shortest is None
        if isinstance(verdict, Undecided):
            assert verdict.checked_length >= 1
    return verdict


def gate_weights(model, layer):
    for gate in ("transition", "value"):
        units, columns = getattr(model.layers[layer], gate)[0].weight.shape
        yield from ((unit, column, gate) for unit in range(units) for column in range(columns))


@pytest.mark.parametrize("modulus", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_every_gate_weight_of_the_first_layer_of_mod_arith(modulus):
    machine = zoo.mod_arith(modulus, "register")
    model = compile_machine(machine, "cascade")
    verdicts = [judged(mutants.wrong_gate_weight(model, 0, *weight), machine, 3) for weight in gate_weights(model, 0)]
    assert len(verdicts) > 16 * modulus
    assert sum(isinstance(verdict, Refuted) for verdict in verdicts) > 4 * modulus
    assert any(isinstance(verdict, Proved) for verdict in verdicts)


@pytest.mark.parametrize(
    ("source", "max_block"),
    [
        ("dyck(1, 2)", 2),
        ("even_pair(2)", None),
        ("group(Q8)", None),
        pytest.param("tomita(7)", 3, marks=pytest.mark.slow),
    ],
)
def test_every_gate_weight_of_the_last_layer(source, max_block):
    machine = zoo.from_task(source)
    model = compile_machine(machine, "cascade", max_block)
    layer = len(model.layers) - 1
    verdicts = [
        judged(mutants.wrong_gate_weight(model, layer, *weight), machine, 6) for weight in gate_weights(model, layer)
    ]
    assert any(isinstance(verdict, Refuted) for verdict in verdicts)


@pytest.mark.parametrize(
    ("source", "max_block"),
    [("mod_arith(5, completion=register)", None), ("dyck(2, 3)", None), ("contains(abaab)", 4), ("tomita(7)", 3)],
)
def test_a_shift_that_starts_with_zeros(source, max_block):
    machine = zoo.from_task(source)
    model = compile_machine(machine, "cascade", max_block)
    verdict = judged(mutants.shift_by_zeros(model), machine, 3)
    if source == "mod_arith(5, completion=register)":
        assert isinstance(verdict, Refuted)
        assert len(verdict.word) == 1


@pytest.mark.parametrize(
    ("source", "layer", "first", "second"),
    [("group(A5)", 0, 0, 1), ("group(S5)", 0, 1, 2), ("even_pair(5)", 0, 0, 2), ("dyck(2, 3)", 1, 0, 1)],
)
def test_two_components_that_changed_places(source, layer, first, second):
    machine = zoo.from_task(source)
    model = compile_machine(machine, "cascade")
    assert isinstance(judged(mutants.swap_heads(model, layer, first, second), machine, 3), Refuted)
