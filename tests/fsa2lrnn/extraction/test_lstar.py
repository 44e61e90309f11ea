"""L* finds the same machine, and learns no more than it may ask for."""

import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.counting import positions_of
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.extraction.lstar import _Teacher, learn
from fsa2lrnn.extraction.runner import MaskedModel
from fsa2lrnn.lower import compile_machine


def asked(machine):
    return MaskedModel(compile_machine(machine), positions_of(machine.alphabet, None, True))


def test_a_teacher_answers_once_and_steps_as_it_answers():
    teacher = _Teacher(asked(zoo.sum_mod(3)))
    assert teacher.query((1, 1, 2)) == [1, 2, 1]
    assert teacher.query((1, 1)) == [1, 2]
    assert teacher.query(()) == [0]
    assert (teacher.num_queries, teacher.longest) == (1, 3)
    teacher.pre()
    assert [teacher.step(letter) for letter in (None, 2, 2)] == [0, 2, 1]
    teacher.post()


def test_the_minimal_machine_is_learned():
    machine = zoo.even_pair(3)
    found = learn(asked(machine), 20, 100, 0)
    assert found.machine.minimise() == machine.minimise()
    assert found.queries > 0


def test_a_hypothesis_too_large_is_refused():
    with pytest.raises(BudgetExceeded, match="a hypothesis of 5 states, more than 3"):
        learn(asked(zoo.sum_mod(5)), 20, 3, 0)


def test_what_shows_beyond_the_horizon_is_not_seen():
    late = MooreMachine([[min(q + 1, 30) for q in range(31)]], [0] * 30 + [1])
    assert learn(asked(late), 10, 100, 0).machine.n_states == 1
