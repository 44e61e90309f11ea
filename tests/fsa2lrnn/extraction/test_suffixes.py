"""Classes are found, split by what tells them apart, and never guessed; L* learns no more than it may ask for."""

import numpy as np
import pytest
import torch

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.counting import positions_of
from fsa2lrnn.errors import BudgetExceeded, NotExact
from fsa2lrnn.extraction.lstar import _Teacher, learn
from fsa2lrnn.extraction.runner import MaskedModel
from fsa2lrnn.extraction.suffixes import _keep, classes_of
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN
from fsa2lrnn.lrnn.switched import Readout


def asked(model, empty_word=True):
    return MaskedModel(model, positions_of(model.alphabet, None, empty_word))


def late(n):
    """Puts out 1 after n letters, and 0 until then and for ever after: states differ by long suffixes alone."""
    return MooreMachine([[*range(1, n + 2), n + 1]], [0] * n + [1, 0])


def test_long_suffixes_are_found_by_the_letters_that_lead_apart():
    model = compile_machine(MooreMachine([*late(9).delta, range(11)], late(9).outputs))
    found = classes_of(asked(model), 100, 32, 10_000, 0)
    assert found.machine.minimise() == MooreMachine([*late(9).delta, range(11)], late(9).outputs)
    assert found.conflicts > 0
    assert found.suffix_length == 9
    assert found.classes == 11


def test_two_words_that_only_a_longer_suffix_tells_apart_are_named():
    model = compile_machine(MooreMachine([*late(12).delta, range(14)], late(12).outputs))
    with pytest.raises(NotExact, match=r"\(.*\) and \(.*\) can't be told apart by suffixes of up to 8 letters, but"):
        classes_of(asked(model), 100, 8, 10_000, 0)


def unbounded():
    """Puts out whether there were more ones than zeros: no finite automaton."""
    step = torch.tensor([-1.0, 1.0]).reshape(2, 1, 1)
    readout = Readout.linear(torch.tensor([[0.0], [1.0]]), torch.tensor([0.5, 0.0]))
    return LRNN.from_tables(torch.ones(2, 1, 1, 1), step, torch.zeros(1, 1), readout)


def test_a_counter_runs_out_of_every_limit():
    with pytest.raises(BudgetExceeded, match=r"2\d classes after .* raise max_classes \(20\)"):
        classes_of(asked(unbounded()), 20, 32, 10_000, 0)
    with pytest.raises(BudgetExceeded, match=r"max_words \(200\)"):
        classes_of(asked(unbounded()), 1_000, 64, 200, 0)
    with pytest.raises(NotExact, match="up to 6 letters"):
        classes_of(asked(unbounded()), 1_000, 6, 10_000, 0)


def test_some_words_of_each_class_are_kept():
    rng = np.random.default_rng(0)
    level, classes = np.arange(100, 200), np.array([0] * 90 + [1] * 8 + [2] * 2)
    kept = _keep(level, classes, 20, rng)
    assert len(kept) == 20
    assert sorted(kept) == kept.tolist()
    counts = np.bincount(classes[kept - 100])
    assert counts[1] >= 3
    assert counts[2] == 2
    assert _keep(level, classes, 500, rng).tolist() == level.tolist()
    assert len(_keep(level, classes, 1, rng)) == 8


def test_all_short_words_are_looked_at_and_it_is_said_to_which_length():
    machine = zoo.sum_mod(3)
    found = classes_of(asked(compile_machine(machine)), 100, 32, 10_000, 0)
    assert found.depth == found.exhaustive_depth
    assert found.prefixes == sum(3**k for k in range(found.depth + 1))
    slow = zoo.sum_mod(14)
    found = classes_of(asked(compile_machine(MooreMachine(slow.delta[:2], slow.outputs))), 100, 64, 100_000, 0)
    assert found.machine.minimise().n_states == 14
    assert found.exhaustive_depth < 13 <= found.depth


def test_a_teacher_answers_once_and_steps_as_it_answers():
    teacher = _Teacher(asked(compile_machine(zoo.sum_mod(3))))
    assert teacher.query((1, 1, 2)) == [1, 2, 1]
    assert teacher.query((1, 1)) == [1, 2]
    assert teacher.query(()) == [0]
    assert (teacher.num_queries, teacher.longest) == (1, 3)
    teacher.pre()
    assert [teacher.step(letter) for letter in (None, 2, 2)] == [0, 2, 1]
    teacher.post()


def test_hypotheses_are_bounded_and_what_shows_beyond_the_horizon_is_not_learned():
    with pytest.raises(BudgetExceeded, match="a hypothesis of 5 states, more than 3"):
        learn(asked(compile_machine(zoo.sum_mod(5))), 20, 3, 0)
    machine = MooreMachine([[min(q + 1, 30) for q in range(31)]], [0] * 30 + [1])
    assert learn(asked(compile_machine(machine)), 10, 100, 0).machine.n_states == 1
