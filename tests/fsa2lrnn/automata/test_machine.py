"""The machine: what it refuses and how it says so, walking along words, identity."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.errors import InvalidMachine, InvalidWord
from fsa2lrnn.testing.strategies import dfas, machines, words

PARITY = MooreMachine([[0, 1], [1, 0]], [False, True])
NOT_ONE_STATE = (
    "is not one state: delta gives exactly one integer a letter and state (a nondeterministic automaton goes through "
    "from_automata, a partial one through language.complete)"
)
EIGHT = np.zeros((3, 8), dtype=int)


def with_entry(a: int, q: int, value: int) -> np.ndarray:
    table = EIGHT.copy()
    table[a, q] = value
    return table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"delta": with_entry(2, 5, 9), "outputs": range(8)},
            "delta[2, 5] = 9, but states run 0..7: give outputs and columns for 10 states or correct the table",
        ),
        (
            {"delta": with_entry(0, 1, -1), "outputs": range(8)},
            "delta[0, 1] = -1, but states run 0..7: correct the table, or complete a partial one with language",
        ),
        ({"delta": [[0, 1], [0]], "outputs": "xy"}, "the rows of delta have the lengths [2, 1]: give one row a letter"),
        ({"delta": [[0, 1], 3], "outputs": "xy"}, "the rows of delta have the lengths [2, 1]: give one row a letter"),
        ({"delta": [[0.0, 1.0]], "outputs": "xy"}, f"delta[0, 0] = 0.0 {NOT_ONE_STATE}"),
        ({"delta": [[0, 1.5]], "outputs": "xy"}, f"delta[0, 0] = 0.0 {NOT_ONE_STATE}"),
        ({"delta": [[0, {0, 1}]], "outputs": "xy"}, f"delta[0, 1] = {{0, 1}} {NOT_ONE_STATE}"),
        ({"delta": [[0, [0, 1]]], "outputs": "xy"}, f"delta[0, 1] = [0, 1] {NOT_ONE_STATE}"),
        ({"delta": [[0, None]], "outputs": "xy"}, f"delta[0, 1] = None {NOT_ONE_STATE}"),
        ({"delta": [[0, "1"]], "outputs": "xy"}, f"delta[0, 0] = '0' {NOT_ONE_STATE}"),
        ({"delta": [[False, True]], "outputs": "xy"}, f"delta[0, 0] = False {NOT_ONE_STATE}"),
        ({"delta": [[0, 2**70]], "outputs": "xy"}, f"delta[0, 1] = {2**70} {NOT_ONE_STATE}"),
        ({"delta": [], "outputs": []}, "the alphabet is empty: a machine needs at least one letter, one row of delta"),
        ({"delta": [[]], "outputs": []}, "delta has no states: a machine needs at least its start state"),
        ({"delta": [0, 1], "outputs": "xy"}, "delta has 1 dimensions: it is a table of shape (letters, states)"),
        ({"delta": None, "outputs": "xy"}, "delta has 0 dimensions: it is a table of shape (letters, states)"),
        ({"delta": [[[0]]], "outputs": "x"}, "delta has 3 dimensions: it is a table of shape (letters, states)"),
        ({"delta": [[0, 1]], "outputs": "x"}, "1 outputs for 2 states: give one output a state"),
        ({"delta": [[0, 1]], "outputs": "xyz"}, "3 outputs for 2 states: give one output a state"),
        ({"delta": [[0]], "outputs": "x", "start": 1}, "start = 1, but states run 0..0: name one of them"),
        ({"delta": [[0]], "outputs": "x", "start": -1}, "start = -1, but states run 0..0: name one of them"),
        ({"delta": [[0]], "outputs": "x", "start": 0.0}, "start = 0.0, but states run 0..0: name one of them"),
        ({"delta": [[0]], "outputs": "x", "start": False}, "start = False, but states run 0..0: name one of them"),
        ({"delta": [[0]], "outputs": "x", "start": None}, "start = None, but states run 0..0: name one of them"),
        ({"delta": [[0]], "outputs": "x", "alphabet": "ab"}, "2 letters for 1 rows of delta: give one letter a row"),
        (
            {"delta": [[0], [0]], "outputs": "x", "alphabet": "aa"},
            "letter 'a' stands twice in the alphabet: letters are distinct",
        ),
        (
            {"delta": [[0], [0]], "outputs": "x", "alphabet": [1, True]},
            "letter 1 stands twice in the alphabet: letters are distinct",
        ),
        (
            {"delta": [[0], [0]], "outputs": "x", "alphabet": ["a", ["b"]]},
            "letter 1 is ['b'], which is not hashable: use a tuple or a string",
        ),
        ({"delta": [[0]], "outputs": [{}]}, "output 0 is {}, which is not hashable: use a tuple or a string"),
        (
            {"delta": [[0]], "outputs": [float("nan")]},
            "output 0 is nan, which is not equal to itself: use None or a string",
        ),
        ({"delta": [[0]], "outputs": "x", "labels": "ab"}, "2 labels for 1 states: give one a state or none"),
        ({"delta": [[0]], "outputs": "x", "labels": [[]]}, "label 0 is [], which is not hashable"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(InvalidMachine) as error:
        MooreMachine(**arguments)
    assert message in str(error.value)


def test_all_faults_are_reported_at_once():
    with pytest.raises(InvalidMachine) as error:
        MooreMachine([[7, 1], [0, 9]], "xyz", start=2, alphabet="aa")
    assert str(error.value) == (
        "delta[0, 0] = 7, but states run 0..1: give outputs and columns for 10 states or correct the table; "
        "delta[1, 1] = 9, but states run 0..1: give outputs and columns for 10 states or correct the table; "
        "3 outputs for 2 states: give one output a state; "
        "start = 2, but states run 0..1: name one of them; "
        "letter 'a' stands twice in the alphabet: letters are distinct"
    )


def test_many_faults_of_a_kind_are_counted():
    with pytest.raises(InvalidMachine) as error:
        MooreMachine(np.full((2, 10), 99), range(10))
    assert str(error.value).count("= 99") == 5
    assert "15 more entries of delta are out of range" in str(error.value)


def test_the_defaults():
    m = MooreMachine([[1, 0], [0, 0]], "xy")
    assert (m.start, m.alphabet, m.outputs, m.labels, m.n_states) == (0, (0, 1), ("x", "y"), None, 2)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_any_integer_table_is_kept_as_int64(dtype):
    m = MooreMachine(np.array([[0, 1], [1, 0]], dtype), [False, True], start=np.int64(0))
    assert m == PARITY
    assert m.delta.dtype == np.int64
    assert type(m.start) is int


def test_arguments_may_be_generators():
    m = MooreMachine([[1, 0]], (y for y in "xy"), 0, (a for a in "a"), (label for label in "pq"))
    assert (m.outputs, m.alphabet, m.labels) == (("x", "y"), ("a",), ("p", "q"))


@pytest.mark.parametrize("name", ["start", "delta", "outputs", "anything"])
def test_a_machine_is_frozen(name):
    with pytest.raises(AttributeError, match=f"MooreMachine is frozen: build a new one instead of setting {name}"):
        setattr(PARITY, name, 1)
    with pytest.raises(AttributeError, match=f"MooreMachine is frozen: build a new one instead of deleting {name}"):
        delattr(PARITY, name)


def test_the_table_is_read_only_and_our_own():
    table = np.array([[0, 1], [1, 0]])
    m = MooreMachine(table, [False, True])
    table[:] = 0
    assert m == PARITY
    with pytest.raises(ValueError, match="read-only"):
        m.delta[0, 0] = 1


def test_equality_is_structural():
    same = MooreMachine(np.array([[0, 1], [1, 0]], order="F"), [False, True], labels=["even", "odd"])
    assert same == PARITY
    assert hash(same) == hash(PARITY)
    assert {PARITY: 1}[same] == 1
    others = [
        MooreMachine([[0, 1], [1, 1]], [False, True]),
        MooreMachine([[0, 1], [1, 0]], [True, False]),
        MooreMachine([[0, 1], [1, 0]], [False, True], start=1),
        MooreMachine([[0, 1], [1, 0]], [False, True], alphabet="ab"),
        "parity",
    ]
    assert all(other != PARITY for other in others)
    assert hash(others[0]) != hash(PARITY)  # the table counts, or large dictionaries of machines would crawl


@given(machines())
def test_copies_are_equal_and_valid(m):
    for twin in (pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m)):
        assert twin == m
        assert hash(twin) == hash(m)
        assert not twin.delta.flags.writeable


def test_labels_are_pickled_too():
    m = MooreMachine([[0]], [True], labels=[("q", 0)])
    assert pickle.loads(pickle.dumps(m)).labels == (("q", 0),)


@given(st.data())
def test_walking_is_stepping(data):
    m = data.draw(machines())
    word = data.draw(words(m))
    visited, q = [], m.start
    for letter in word:
        q = m.step(q, letter)
        visited.append(q)
    assert m.states(word).tolist() == visited
    assert m.run(word) == q
    assert m.transduce(word) == [m.outputs[p] for p in visited]
    assert all(
        m.delta[m.alphabet.index(a), p] == r for a, p, r in zip(word, [m.start, *visited], visited, strict=False)
    )


def test_long_words_take_the_compiled_walk():
    word = np.random.default_rng(0).integers(2, size=5_000)
    assert PARITY.states(word).tolist() == (np.cumsum(word) % 2).tolist()


@pytest.mark.parametrize("word", ["", [], iter(())])
def test_the_empty_word_stays_at_the_start(word):
    m = MooreMachine([[0, 0]], ["x", "y"], start=1)
    assert m.transduce(word) == []
    assert m.run("") == 1
    assert m.states("").shape == (0,)


def test_accepts_asks_for_an_acceptor():
    assert PARITY.accepts("0111")
    assert not PARITY.accepts("")
    assert MooreMachine([[0]], [np.bool_(True)]).accepts("0") is True
    with pytest.raises(InvalidMachine) as error:
        MooreMachine([[0]], [1]).accepts("0")
    assert str(error.value) == "this machine has outputs other than True and False: use transduce() or run()"


@pytest.mark.parametrize("letter", ["a", 2, None, [1], {}])
def test_an_unknown_letter_is_refused_everywhere(letter):
    with pytest.raises(InvalidWord, match="at position 1 is not in the alphabet"):
        PARITY.step(0, letter)
    with pytest.raises(InvalidWord, match="at position 2 is not in the alphabet"):
        PARITY.run([1, letter])


@pytest.mark.parametrize("state", [2, -1, 0.0, 1.5, True, None, "0"])
def test_an_unknown_state_is_refused(state):
    with pytest.raises(InvalidMachine) as error:
        PARITY.step(state, 1)
    assert str(error.value) == f"state {state!r} is not a state of this machine: states run 0..1"


def test_step_takes_typographic_letters_and_numpy_states():
    m = MooreMachine([[1, 0]], "xy", alphabet="*")
    assert m.step(0, "×") == 1
    assert m.step(np.int64(1), "*") == 0
    assert type(m.step(0, "*")) is int


def test_repr():
    assert repr(PARITY) == "MooreMachine(2 states, 2 letters, acceptor)"
    assert repr(MooreMachine([[1, 0]], "xy")) == "MooreMachine(2 states, 1 letters, 2 outputs)"


@given(dfas(), st.data())
def test_boolean_operations_are_those_of_sets_of_words(a, data):
    b = data.draw(dfas(alphabet=list(a.alphabet)))
    word = data.draw(st.lists(st.sampled_from(a.alphabet), max_size=9))
    p, q = a.accepts(word), b.accepts(word)
    assert [m.accepts(word) for m in (a | b, a & b, a - b, ~a)] == [p or q, p and q, p and not q, not p]
    assert (~(a | b)).equivalent(~a & ~b) is None
    assert {(source, target) for source, _, target in a.transitions()} == {
        (q, int(p)) for row in a.delta for q, p in enumerate(row)
    }


def test_boolean_operations_need_acceptors_over_the_same_letters():
    ab = MooreMachine.from_regex("(ab)*")
    with pytest.raises(InvalidMachine, match=r"& is defined for acceptors.*has the output 0"):
        ab & MooreMachine([[0], [0]], [0], alphabet="ab")
    with pytest.raises(InvalidMachine, match=r"~ is defined for acceptors.*language\.product"):
        ~MooreMachine([[0]], ["x"])
    with pytest.raises(InvalidMachine, match="c"):
        ab | MooreMachine.from_regex("(abc)*")
    with pytest.raises(TypeError, match="unsupported operand"):
        ab | "regex:a"
