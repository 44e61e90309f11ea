"""The machine: what it refuses and how it says so, walking along words, identity; machines from a step function."""

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, compile_machine, prove_equivalent, symbols
from fsa2lrnn.automata import explore, trim
from fsa2lrnn.automata.formats.json_file import from_json
from fsa2lrnn.checker.files import symbol
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, InvalidWord
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


@pytest.mark.parametrize(("delta", "outputs", "options", "message"), [
    (with_entry(2, 5, 9), range(8), {}, "delta[2, 5] = 9, but states run 0..7: give outputs and columns for 10"),
    (with_entry(0, 1, -1), range(8), {}, "delta[0, 1] = -1, but states run 0..7: correct the table, or complete a"),
    ([[0, 1], [0]], "xy", {}, "the rows of delta have the lengths [2, 1]: give one row a letter"),
    ([[0, 1], 3], "xy", {}, "the rows of delta have the lengths [2, 1]: give one row a letter"),
    ([[0, 1.5]], "xy", {}, f"delta[0, 0] = 0.0 {NOT_ONE_STATE}"),
    ([[0, {0, 1}]], "xy", {}, f"delta[0, 1] = {{0, 1}} {NOT_ONE_STATE}"),
    ([[0, None]], "xy", {}, f"delta[0, 1] = None {NOT_ONE_STATE}"),
    ([[False, True]], "xy", {}, f"delta[0, 0] = False {NOT_ONE_STATE}"),
    ([], [], {}, "the alphabet is empty: a machine needs at least one letter, one row of delta"),
    ([[]], [], {}, "delta has no states: a machine needs at least its start state"),
    ([0, 1], "xy", {}, "delta has 1 dimensions: it is a table of shape (letters, states)"),
    (None, "xy", {}, "delta has 0 dimensions: it is a table of shape (letters, states)"),
    ([[0, 1]], "x", {}, "1 outputs for 2 states: give one output a state"),
    *(
        ([[0]], "x", {"start": start}, f"start = {start!r}, but states run 0..0: name one of them")
        for start in (1, -1, 0.0, False, None)
    ),
    ([[0]], "x", {"alphabet": "ab"}, "2 letters for 1 rows of delta: give one letter a row"),
    ([[0], [0]], "x", {"alphabet": "aa"}, "letter 'a' stands twice in the alphabet: letters are distinct"),
    ([[0], [0]], "x", {"alphabet": ["a", ["b"]]}, "letter 1 is ['b'], which is not hashable: use a tuple or a"),
    ([[0]], [{}], {}, "output 0 is {}, which is not hashable: use a tuple or a string"),
    ([[0]], [float("nan")], {}, "output 0 is nan, which is not equal to itself: use None or a string"),
    ([[0]], "x", {"labels": "ab"}, "2 labels for 1 states: give one a state or none"),
    ([[0]], "x", {"labels": [[]]}, "label 0 is [], which is not hashable"),
])  # fmt: skip
def test_bad_input_is_named(delta, outputs, options, message):
    with pytest.raises(InvalidMachine) as error:
        MooreMachine(delta, outputs, **options)
    assert message in str(error.value)


def test_all_faults_are_reported_at_once_and_many_of_a_kind_counted():
    with pytest.raises(InvalidMachine) as error:
        MooreMachine([[7, 1], [0, 9]], "xyz", start=2, alphabet="aa")
    phrases = ("delta[0, 0] = 7", "delta[1, 1] = 9", "3 outputs for 2 states", "start = 2", "letter 'a' stands twice")
    assert [part.partition(phrase)[:2] for part, phrase in zip(str(error.value).split("; "), phrases, strict=True)] == [
        ("", phrase) for phrase in phrases
    ]
    with pytest.raises(InvalidMachine) as error:
        MooreMachine(np.full((2, 10), 99), range(10))
    assert str(error.value).count("= 99") == 5
    assert "15 more entries of delta are out of range" in str(error.value)


@pytest.mark.parametrize("name", ["start", "delta", "outputs", "anything"])
def test_a_machine_is_frozen(name):
    for change, doing in ((lambda: setattr(PARITY, name, 1), "setting"), (lambda: delattr(PARITY, name), "deleting")):
        with pytest.raises(AttributeError, match=f"MooreMachine is frozen: build a new one instead of {doing} {name}"):
            change()


def test_tables_are_read_only_and_acceptors_accept():
    table = np.array([[0, 1], [1, 0]])
    m = MooreMachine(table, [False, True])
    table[:] = 0
    assert m == PARITY
    with pytest.raises(ValueError, match="read-only"):
        m.delta[0, 0] = 1
    assert PARITY.accepts("0111")
    assert not PARITY.accepts("")
    assert MooreMachine([[0]], [np.bool_(True)]).accepts("0") is True
    with pytest.raises(InvalidMachine) as error:
        MooreMachine([[0]], [1]).accepts("0")
    assert str(error.value) == "this machine has outputs other than True and False: use transduce() or run()"
    m = MooreMachine([[1, 0]], "xy", alphabet="*")
    assert (m.step(0, "×"), m.step(np.int64(1), "*")) == (1, 0)
    assert type(m.step(0, "*")) is int
    assert repr(PARITY) == "MooreMachine(2 states, 2 letters, acceptor)"
    assert repr(MooreMachine([[1, 0]], "xy")) == "MooreMachine(2 states, 1 letters, 2 outputs)"


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
    labelled = MooreMachine([[0]], [True], labels=[("q", 0)])
    assert pickle.loads(pickle.dumps(labelled)).labels == (("q", 0),)
    assert hash(others[0]) != hash(PARITY)  # the table counts, or large dictionaries of machines would crawl


@given(machines())
def test_copies_are_equal_and_valid(m):
    for twin in (pickle.loads(pickle.dumps(m)), copy.copy(m), copy.deepcopy(m)):
        assert twin == m
        assert hash(twin) == hash(m)
        assert not twin.delta.flags.writeable


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


def test_machines_from_step_functions():
    m = explore("ab", "", lambda q, a: (q + a)[-2:], lambda q: len(q))
    assert m.labels == ("", "a", "b", "aa", "ab", "ba", "bb")
    assert m.outputs == (0, 1, 1, 2, 2, 2, 2)
    assert trim(m) == m

    def step(q: tuple[int, int], a: int) -> tuple[int, int]:
        return (q[0] + a) % 3, (q[1] * a + 1) % 4

    m = explore((0, 1, 2), (0, 0), step, sum)
    for q, label in enumerate(m.labels):
        assert m.outputs[q] == sum(label)
        assert [m.labels[m.step(q, a)] for a in m.alphabet] == [step(label, a) for a in m.alphabet]
    assert explore((a for a in "ab"), 0, lambda q, _: q, lambda _: True) == MooreMachine([[0], [0]], [True], 0, "ab")
    with pytest.raises(BudgetExceeded, match=r"more than 1,000 states are reachable \(the last: 1000\): is the task"):
        explore("a", 0, lambda q, _: q + 1, lambda q: q, max_states=1_000)
    assert explore("a", 0, lambda q, _: (q + 1) % 10, lambda q: q, max_states=10).n_states == 10
    with pytest.raises(InvalidMachine, match="the alphabet is empty"):
        explore("", 0, lambda q, _: q, lambda q: q)


@pytest.mark.parametrize(
    "pair", [(1, True), (0, False), (1, 1.0), (0.0, -0.0), ((1, "a"), (True, "a")), (frozenset({1}), frozenset({1.0}))]
)
def test_symbols_that_are_equal_in_python_only_are_refused(pair):
    named = r"are equal in Python, so that one would be read as the other"
    for outputs, alphabet in ((pair, "a"), ("xy", pair)):
        with pytest.raises(InvalidMachine, match=named):
            MooreMachine([[0, 1]] * len(alphabet), outputs, 0, alphabet)
    one, other = (MooreMachine([[0]], [symbol], 0, "a") for symbol in pair)
    with pytest.raises(InvalidMachine, match=named):
        one.equivalent(other)
    with pytest.raises(InvalidMachine, match=named):
        prove_equivalent(compile_machine(one), other)
    letter, other_letter = (MooreMachine([[0]], ["x"], 0, [symbol]) for symbol in pair)
    with pytest.raises(InvalidMachine, match=named):
        letter.equivalent(other_letter)
    with pytest.raises(InvalidWord, match="is not in the alphabet"):
        letter.transduce([pair[1]])
    text = one.to_json().replace('"outputs": [', '"outputs": [' + json.dumps(symbols.to_json(pair[1])) + ", ")
    with pytest.raises(InvalidMachine, match=named):
        from_json(text.replace("[0]\n", "[0, 0]\n"))
    assert symbol(symbols.to_json(pair[0])) != symbol(symbols.to_json(pair[1]))  # of the checker
