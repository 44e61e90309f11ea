import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, compile_machine, zoo
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from verify import strategies
from verify.targets import DOES_NOT_COUNT, target


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
    for row, states in zip(tokens, goal.states(tokens), strict=True):
        assert [outputs[goal.wanted[q]] for q in states] == machine.transduce([letters[a] for a in row])


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
