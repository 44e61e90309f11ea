"""JFLAP: files in its own layout, round trips, and damaged or hostile files."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import equivalent, trim
from fsa2lrnn.automata.formats import read_source
from fsa2lrnn.automata.formats.jflap import from_jflap, to_jflap
from fsa2lrnn.automata.formats.regex import from_regex
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas, machines

DATA = Path(__file__).parent / "data"
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="no"?><!--Created with JFLAP 6.4.--><structure>&#13;\n'
LETTERS = [" ", '"', "&amp;", "<", "]]>", "ab", "ε"]  # in natural order


@given(machines(outputs=("", "x", "<y>", "é è"), alphabet=LETTERS))
def test_moore_machines_come_back_equal(machine):
    assert from_jflap(to_jflap(machine)) == machine


@given(dfas(alphabet=LETTERS))
def test_acceptors_come_back_equal(machine):
    assume(any(trim(machine).outputs) or not any(machine.outputs))
    assert from_jflap(to_jflap(machine)) == machine


def test_labels_are_names_of_states():
    machine = MooreMachine([[1, 0]], [True, False], alphabet="a", labels=[("p", 1), 'q<">\x00'])
    assert from_jflap(to_jflap(machine)).labels == ("('p', 1)", 'q<">?')


@pytest.mark.parametrize(
    ("name", "expected"), [("jflap_dfa", "a(ba)*"), ("jflap_nfa", "(0|1)*1(0|())"), ("jflap_old", "a*")]
)
def test_acceptors_in_the_layout_of_jflap(name, expected):
    assert equivalent(read_source(DATA / f"{name}.jff"), from_regex(expected)) is None


def test_transducers_in_the_layout_of_jflap():
    moore = read_source(DATA / "jflap_moore.jff")
    assert (moore.labels, moore.transduce("1101")) == (("q0", "q1"), ["odd", "even", "even", "odd"])
    mealy = read_source(DATA / "jflap_mealy.jff")  # a delay by one letter
    assert mealy.transduce("1101") == ["0", "1", "1", "0"]


def jff(body: str, kind: str = "fa") -> str:
    return f"{HEAD}\t<type>{kind}</type>&#13;\n\t<automaton>&#13;\n{body}\t</automaton>&#13;\n</structure>"


STATE = '<state id="0" name="q0"><x>1.0</x><y>1.0</y><initial/></state>\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ((DATA / "jflap_dfa.jff").read_text()[:400], "line 15: the XML is broken here .*: is the file truncated"),
        (jff(STATE.replace("<initial/>", "")), "no state is marked as start: in JFLAP choose Initial for one state"),
        (jff(STATE * 2), r"line 5: state '0' is defined twice, first in line 4"),
        (jff(STATE + STATE.replace('"0"', '"1"')), "line 5: 2 states are <initial/>, JFLAP allows one"),
        (jff(STATE + "<transition><from>0</from><to>7</to><read>a</read></transition>"), "line 5: an edge goes to '7'"),
        (jff(STATE + "<transition><from>0</from><read>a</read></transition>"), "line 5: a <transition> has no <to>"),
        (jff(STATE + "<state/>"), "line 5: a <state> has no id"),
        (jff(STATE), "the alphabet is empty"),
        (
            jff(STATE + "<transition><from>0</from><to>0</to><read>a</read></transition>", "moore"),
            "line 4: state 'q0' has no output",
        ),
        (
            jff(STATE + "<transition><from>0</from><to>0</to><read/><transout>1</transout></transition>", "mealy"),
            "line 5: an edge of a Mealy machine reads no letter",
        ),
        ("<structure><type>fa</type>", "line 1: the XML is broken here"),
        ("not XML", "line 1: the XML is broken here"),
    ],
)
def test_faults_are_named_with_their_line(text, message):
    with pytest.raises(InvalidMachine, match=message):
        from_jflap(text)


def test_other_files_of_jflap_and_other_xml_are_refused():
    with pytest.raises(UnsupportedFormat, match="a JFLAP file with type 'pda': those of finite automata"):
        from_jflap(jff(STATE, "pda"))
    with pytest.raises(UnsupportedFormat, match="a JFLAP file with no <type>"):
        from_jflap("<structure/>")
    with pytest.raises(
        UnsupportedFormat, match="line 1: the outermost element is <html>, a JFLAP file has <structure>"
    ):
        from_jflap("<html/>")


def test_a_billion_laughs_are_not_laughed():
    entities = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
    text = f'<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY l0 "ha">{entities}]><structure>&l9;</structure>'
    with pytest.raises(InvalidMachine, match="line 2: the file declares a document type or entities, which can expand"):
        from_jflap(text)


def test_deep_nesting_is_refused():
    with pytest.raises(BudgetExceeded, match="elements are nested deeper than 50, JFLAP nests four"):
        from_jflap("<structure>" + "<a>" * 100_000)


@given(st.integers(0, 1200))
def test_every_truncation_is_an_error_of_ours(length):
    text = (DATA / "jflap_moore.jff").read_text()
    if length < len(text):
        with pytest.raises((InvalidMachine, UnsupportedFormat)):
            from_jflap(text[:length])


@pytest.mark.parametrize("symbol", [" a", "a\n", "\x00", "\ud800"])
def test_symbols_that_xml_loses_are_refused(symbol):
    for machine in (MooreMachine([[0]], [True], alphabet=[symbol]), MooreMachine([[0]], [symbol])):
        with pytest.raises(UnsupportedFormat, match="has control characters or white space at its ends"):
            to_jflap(machine)


def test_outputs_written_alike_are_refused():
    with pytest.raises(UnsupportedFormat, match="two outputs are written alike"):
        to_jflap(MooreMachine([[0, 0]], [1, "1"]))
