"""Only what comes before a mistake counts, and every state counts alike."""

import numpy as np
import pytest
import torch

from fsa2lrnn import compile_machine
from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.repairing.observed import RepairStates, is_right, observe
from fsa2lrnn.verification.specification import specification_of


def tables_and_states(model, machine):
    return switched(model).to(torch.float64), RepairStates.of(specification_of(model, machine))


def test_states_of_a_constructed_model_are_the_machines():
    machine = zoo.tomita(4)
    tables, states = tables_and_states(compile_machine(machine), machine)
    seen = observe(tables, states)
    assert np.array_equal(seen.head(0).x.argmax(1), states.numbers[seen.state])
    shares = np.bincount(seen.state, seen.weights)
    assert np.allclose(shares, 1 / states.initial)


def test_nothing_after_a_mistake_is_kept():
    machine = zoo.length_mod(3)
    outputs = [machine.outputs[machine.run(machine.alphabet[:1] * k)] for k in range(6)]
    other = MooreMachine([[1, 2, 3, 4, 5, 5]] * 2, outputs, 0, machine.alphabet)  # right on five letters
    tables, states = tables_and_states(compile_machine(other), machine)
    seen = observe(tables, states)
    assert len(seen.state) == 1_200 * 5
    assert len(np.unique(seen.head(0).x, axis=0)) == 5


def test_a_model_that_is_never_right_is_refused():
    machine = zoo.parity()
    wrong = MooreMachine(machine.delta, [not output for output in machine.outputs], machine.start, machine.alphabet)
    tables, states = tables_and_states(compile_machine(wrong), machine)
    with pytest.raises(NotExact, match="train it first"):
        observe(tables, states)


def test_logits_that_are_no_numbers_are_wrong():
    machine = zoo.parity()
    tables, states = tables_and_states(compile_machine(machine), machine)
    x = torch.full((1, 1, *tables.x0.shape), torch.nan, dtype=torch.float64)
    assert not is_right(tables, states, x, np.array([[0]])).any()
