"""Our JSON: round trips of everything, and every fault of a broken file at once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata.formats import json_file
from fsa2lrnn.automata.formats.json_file import from_json, to_json
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat
from fsa2lrnn.testing.strategies import machines

BASE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
SYMBOLS = BASE | st.tuples(BASE, BASE) | st.frozensets(BASE, max_size=2)


@given(st.data())
def test_round_trip_keeps_symbols_labels_and_types(data):
    alphabet = data.draw(st.lists(SYMBOLS, min_size=1, max_size=4, unique=True))
    outputs = data.draw(st.lists(SYMBOLS, min_size=1, max_size=3))
    machine = data.draw(machines(outputs=outputs, alphabet=alphabet))
    labels = data.draw(st.none() | st.lists(SYMBOLS, min_size=machine.n_states, max_size=machine.n_states))
    machine = MooreMachine(machine.delta, machine.outputs, machine.start, machine.alphabet, labels)
    again = from_json(to_json(machine))
    assert again == machine
    assert again.labels == machine.labels
    assert list(map(type, again.alphabet)) == list(map(type, machine.alphabet))


def test_labels_of_other_types_become_text_and_other_symbols_are_refused():
    odd = MooreMachine([[0]], [True], labels=[1j])
    assert from_json(to_json(odd)).labels == ("1j",)
    with pytest.raises(UnsupportedFormat, match="symbol 1j of type complex can't be written to JSON"):
        to_json(MooreMachine([[0]], [1j]))


GOOD = json.loads(to_json(MooreMachine([[1, 0], [0, 1]], [True, False], alphabet="ab")))


def broken(**changes) -> str:
    return json.dumps({name: value for name, value in {**GOOD, **changes}.items() if value != "remove"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (broken(delta="remove"), '"delta" is missing: add it'),
        (broken(colour="red"), "'colour' is not known: remove it"),
        (broken(delta=[[1, 2], [0, 1]]), r"delta\[0, 1\] = 2, but states run 0..1"),
        (broken(delta=[[1, [0, 1]], [0, 1]]), "is not one state|rows of delta have the lengths"),
        (broken(delta=[[1], [0, 1]]), r"the rows of delta have the lengths \[1, 2\]"),
        (broken(delta=7), '"delta" is no list of lists'),
        (broken(alphabet="ab"), '"alphabet" is not a list'),
        (broken(alphabet=["a", {"set": []}]), r"\"alphabet\"\[1\]: {'set': \[\]} is not a symbol"),
        (broken(alphabet=[], delta=[]), "the alphabet is empty"),
        (broken(alphabet=["a", "a"]), "letter 'a' stands twice in the alphabet"),
        (broken(start="0"), "start = '0', but states run 0..1: name one of them"),
        (broken(labels=["x"]), "1 labels for 2 states"),
        (to_json(MooreMachine([[0]], [True]))[:-20], "line 7, column .*: the file is truncated or not JSON"),
        (broken(start=int("9" * 4300)), "but states run 0..1"),
        (broken().replace(" 0,", " " + "9" * 5000 + ","), "holds a number of more than 4,300 digits"),
        (broken(alphabet=["a", float("nan")]), "the JSON text: it holds NaN, which is no number"),
        (broken(delta=[[1, 0], [0, True]]), r"\"delta\"\[1\] holds true or false: give the number of a state"),
        (broken(delta=[[1, 0], [0, 1.0]]), "1.0 is not one state"),
    ],
)
def test_faults_name_value_and_remedy(text, message):
    with pytest.raises(InvalidMachine, match=message):
        from_json(text)


def test_all_faults_come_at_once():
    text = broken(colour="red", alphabet=["a", {}], start=5, outputs=[True, False, {}])
    with pytest.raises(InvalidMachine) as caught:
        from_json(text, "m.json")
    message = str(caught.value)
    assert message.startswith("m.json: 4 problems\n")
    for part in ("'colour'", '"alphabet"[1]', '"outputs"[2]', "3 outputs for 2 states", "start = 5"):
        assert part in message


@pytest.mark.parametrize("version", [None, "1", 0, True])
def test_versions_are_checked(version):
    with pytest.raises(UnsupportedFormat, match=r'"version" is .*, expected 1'):
        from_json(broken(version=version))


def test_newer_versions_and_other_json_are_refused():
    with pytest.raises(UnsupportedFormat, match="has format version 2, this fsa2lrnn reads up to 1: install a newer"):
        from_json(broken(version=2))
    for text in ("[]", "{}", '"fsa2lrnn-machine"', "null"):
        with pytest.raises(UnsupportedFormat, match="is JSON, but not a machine of ours"):
            from_json(text)


def test_deep_nesting_and_large_tables_end_with_a_message(monkeypatch):
    with pytest.raises(InvalidMachine, match="nested deeper than 100"):
        from_json("[" * 100_000)
    monkeypatch.setattr(json_file, "MAX_TABLE_ENTRIES", 3)
    with pytest.raises(BudgetExceeded, match="the table has more than 3 entries"):
        from_json(broken())
