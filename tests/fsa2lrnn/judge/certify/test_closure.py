"""Proofs for all lengths where states close, and what stands in their way."""

import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.judge.certify import closure
from fsa2lrnn.lower import compile_machine


def test_closure():
    machine = zoo.sum_mod(5)
    closed = closure(compile_machine(machine), machine)
    assert (closed.pairs, closed.transitions, "pscan" in closed.scans) == (5, 25, True)
    other = MooreMachine(machine.delta, [0, 1, 2, 3, 3], 0, machine.alphabet)
    wrong = closure(compile_machine(machine), other)
    assert (wrong.checked_length, wrong.is_wrong) == (0, True)
    short = closure(compile_machine(machine), machine, budget=5)
    assert (short.is_wrong, short.checked_length) == (False, 1)
    with pytest.raises(TypeError, match="no truth value"):
        bool(closed)


def test_outputs_that_the_model_lacks_do_not_count():
    machine = zoo.sum_mod(3)
    fewer = MooreMachine(machine.delta, [0, 1, "?"], 0, machine.alphabet)
    assert closure(compile_machine(machine), fewer).pairs == 3
