import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, compile_machine, zoo
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.judge.goal import DOES_NOT_COUNT, Target, joint, target
from fsa2lrnn.testing import strategies


class Symbols:
    def __init__(self, alphabet, outputs):
        self.alphabet, self.outputs = tuple(alphabet), tuple(outputs)


@given(strategies.machines(max_states=5), st.randoms(use_true_random=False))
def test_a_target_is_the_machine_in_the_models_numbers(machine, random):
    letters, outputs = list(machine.alphabet), list(dict.fromkeys(machine.outputs))
    random.shuffle(letters)
    random.shuffle(outputs)
    goal = target(Symbols(letters, outputs), machine)
    tokens = np.array([[random.randrange(len(letters)) for _ in range(6)] for _ in range(3)])
    whole = goal.states(tokens)
    for row, states in zip(tokens, whole, strict=True):
        assert [outputs[goal.wanted[q]] for q in states] == machine.transduce([letters[a] for a in row])
    assert np.array_equal(goal.states(tokens[:, 2:], whole[:, 1]), whole[:, 2:])


def test_outputs_that_the_model_lacks_do_not_count():
    machine = zoo.mod_arith(5)
    goal = target(Symbols(machine.alphabet, range(5)), machine)
    word = ["1", "+", "2", "*", "*"]
    states = goal.states(np.array([[machine.alphabet.index(a) for a in word]]))[0]
    assert goal.wanted[states].tolist() == [1, DOES_NOT_COUNT, 3, DOES_NOT_COUNT, DOES_NOT_COUNT]
    assert set(goal.ignored) == set(machine.outputs) - set(range(5))
    assert target(compile_machine(machine), machine).ignored == ()


def test_nothing_in_common_is_an_error():
    parity = MooreMachine([[0, 1], [1, 0]], [False, True])
    with pytest.raises(UnsupportedFormat, match=r"the model puts out \('no',\), none of the machine's"):
        target(Symbols((0, 1), ("no",)), parity)
    with pytest.raises(InvalidMachine, match="alphabets differ"):
        target(Symbols((0, 2), (False, True)), parity)


@given(strategies.machines(max_states=5, outputs=(0, 1, DOES_NOT_COUNT)))
def test_hopeful_states_lead_to_one_that_counts(machine):
    goal = Target(machine.delta, np.array(machine.outputs), machine.start, ())
    for q in range(machine.n_states):
        reach = {q}
        for _ in range(machine.n_states):
            reach |= {int(to) for p in reach for to in goal.delta[:, p]}
        assert goal.hopeful[q] == any(goal.wanted[p] != DOES_NOT_COUNT for p in reach)


def test_pairs_of_states_are_told_apart_by_either():
    rows = np.array([[1, 2], [1, 2], [1, 3]], np.uint8)
    found = joint(rows, np.array([0, 256, 0]))
    assert found.shape == (3, 10)
    assert len(np.unique(found, axis=0)) == 3
