"""OpenFst text, KISS2, JSON and JFLAP: files of other tools, round trips, tables, faults."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import equivalent, trim
from fsa2lrnn.automata.formats import json_file, read_source, write_file
from fsa2lrnn.automata.formats.jflap import from_jflap, to_jflap
from fsa2lrnn.automata.formats.json_file import from_json, to_json
from fsa2lrnn.automata.formats.kiss2 import from_kiss2
from fsa2lrnn.automata.formats.openfst import from_openfst, to_openfst
from fsa2lrnn.automata.formats.regex import from_regex
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, MissingFile, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas, machines

DATA = Path(__file__).parent / "data"
SYMBOLS_AB = "<eps> 0\na 1\nb 2\n"


@given(dfas(alphabet=["b", "a10", "a9", "0"]))
def test_openfst_acceptors_come_back_equal(machine):
    assume(any(trim(machine).outputs) or not any(machine.outputs))
    text, table = to_openfst(machine)
    assert from_openfst(text, isymbols=table) == machine


def test_openfst_files_symbols_and_tables(tmp_path):
    assert equivalent(read_source(DATA / "pynini_bytes.fst.txt"), from_words("97 98")) is None
    nfa = read_source(DATA / "pynini_nfa.fst.txt")
    assert nfa.alphabet == ("zero", "one")
    assert all(nfa.accepts(w) for w in ("one zero", "zero one zero", "one one zero"))
    assert not nfa.accepts("one")
    assert not nfa.accepts("zero")
    mealy = read_source(DATA / "pynini_mealy.fst.txt")
    assert mealy.transduce("zero one one zero one") == ["even", "odd", "even", "even", "odd"]
    assert mealy.outputs[mealy.start] is None
    numbers = from_openfst("0 1 2\n1 0 1\n1\n", isymbols="a 1\nb 2\n<eps> 0\n")
    assert (numbers.alphabet, numbers.accepts("b"), numbers.accepts("bab")) == (("a", "b"), True, True)
    assert from_openfst("0 0 b\n0\n", isymbols=SYMBOLS_AB).alphabet == ("a", "b")
    assert from_openfst("0 1 0\n1 1 5\n1\n").accepts([])  # without a table 0 is epsilon, as in OpenFst
    assert from_openfst("0 1 @0@\n1 1 a\n1\n").accepts("")  # foma's epsilon
    assert from_openfst("0 1 <eps>\n1 1 a\n1 0.0\n2 Infinity\n").accepts("")
    assert from_openfst("0 0 a x\n").outputs[0] is None
    assert from_openfst("0 0 a 0\n0\n", acceptor=True).accepts("aa")
    assert from_openfst("0 0 a a 0\n0\n").accepts("aa")
    machine = MooreMachine([[1, 0], [0, 1]], [True, False], alphabet=["z", "a"])
    write_file(machine, tmp_path / "m.fst.txt")
    assert (tmp_path / "m.syms").read_text() == "<eps>\t0\nz\t1\na\t2\n"
    assert read_source(tmp_path / "m.fst.txt") == machine
    (tmp_path / "m.syms").rename(tmp_path / "other")
    assert read_source(tmp_path / "m.fst.txt").alphabet == ("a", "z")
    assert read_source(tmp_path / "m.fst.txt", isymbols=str(tmp_path / "other")) == machine
    with pytest.raises(MissingFile, match=r"no such file: .*nowhere"):
        read_source(tmp_path / "m.fst.txt", isymbols=tmp_path / "nowhere")


def from_words(word: str) -> MooreMachine:
    """(ab)* over the two letters of `word`."""
    machine = from_regex("(ab)*")
    return MooreMachine(machine.delta, machine.outputs, machine.start, word.split())


@pytest.mark.parametrize(("text", "options", "message"), [
    ("0 1 a\n1 2.5\n", {}, "line 2: weight '2.5': a machine accepts or not, without weights"),
    ("0 1 a b 0.5\n", {}, "line 1: weight '0.5'"),
    ("0 1 a b 0 7\n", {}, "line 1: 6 fields, an arc has three to five and a final state one or two"),
    ("0 1 a\n0 1 b x\n", {}, "line 2: weight 'x'"),
    ("0 1 a\n", {"acceptor": False}, "line 1: an arc of a transducer has no output"),
    ("0 0 a x\n0 0 a y\n", {}, "line 2: two edges leave '0' on 'a'"),
    ("0 0 a <eps>\n", {}, "an arc writes no output .0 is epsilon unless a table names it.: a Mealy machine"),
    ("0 0 <eps> x\n", {}, "line 1: an edge of a Mealy machine reads no letter"),
    ("0 1 a x\n1 0 a x\n0\n", {}, "line 1: state 1 is not final, others are: a Mealy machine answers every word"),
    ("0 1 c\n1\n", {"isymbols": SYMBOLS_AB}, "line 1: letter 'c' is not in the symbol table: add it there"),
    ("0 1 a x\n", {"osymbols": SYMBOLS_AB}, "line 1: output 'x' is not in the symbol table"),
    ("0 1 a\n", {"isymbols": "a\n"}, "line 1 of the letter table is 'a': expected a symbol and its number"),
    ("0 1 a\n", {"isymbols": "a 1\na 2\n"}, "line 2 of the letter table repeats 'a' or its number"),
])  # fmt: skip
def test_faults_of_openfst_are_named_with_their_line(text, options, message):
    with pytest.raises(InvalidMachine, match=message):
        from_openfst(text, **options)


BITS = ".i 2\n.o 1\n"
CIRCUIT = BITS + ".p 5\n.s 3\n.r b # reset\n0- a b 1\n11 a c 1\n10 a a 0\n-- b a 1\n-- * a 1\n.e\n# end"


def test_the_machine_does_what_the_rows_say():
    text = CIRCUIT.replace("-- * a 1", "-- c b 0")
    rows = [line.split() for line in text.split("\n") if line.count(" ") == 3]
    machine, rng = from_kiss2(text), random.Random(0)
    assert machine.alphabet == ("00", "01", "10", "11")
    for _ in range(50):
        word, state, expected = [rng.choice(machine.alphabet) for _ in range(20)], "b", []
        for letter in word:
            _, _, state, output = next(row for row in rows if row[1] == state and
                                       all(bit in ("-", x) for bit, x in zip(row[0], letter, strict=True)))  # fmt: skip
            expected.append(output)
        assert machine.transduce(word) == expected


@pytest.mark.long
def test_kiss2_rows_any_state_and_bounded_sizes(tmp_path):
    machine = from_kiss2(BITS + "-- * a 1\n")
    assert machine.transduce(["00", "11"]) == ["1", "1"]
    (tmp_path / "m.kiss").write_text(BITS + "0- a b 1\n1- a * 0\n-- b a 0\n")
    with pytest.raises(InvalidMachine, match="transition"):
        read_source(tmp_path / "m.kiss")
    assert read_source(tmp_path / "m.kiss", completion="ignore").transduce(["10", "01", "00"]) == [None, "1", "0"]
    with pytest.raises(BudgetExceeded, match=r"99 input bits make 2\^99 letters, the limit is 2\^16"):
        from_kiss2(f".i 99\n.o 1\n{'-' * 99} a a 1\n")
    rows = "".join(f"{'-' * 16} {q} {q} 1\n" for q in range(4))  # 262,144
    with pytest.raises(BudgetExceeded, match="more than 250,000 transitions"):
        from_kiss2(".i 16\n.o 1\n" + rows)


@pytest.mark.parametrize(("text", "message"), [
    (CIRCUIT, "two edges leave 'a' on '00'"),
    (BITS + ".p 2\n-- a a 1\n", r"\.p says 2 rows, the file has 1: was it cut off"),
    (BITS + ".s 2\n-- a a 1\n", r"\.s says 2 states, the file has 1"),
    (BITS + "-- a a 1\n0 a a 1\n", "line 4: input '0' is not 2 of the characters"),
    (BITS + "-- a a 12\n", "line 3: output '12' is not 1 of the characters"),
    (BITS + ".r z\n-- a a 1\n", "line 3: the start 'z' is not a state of the file"),
    (BITS + "-- a a\n", "line 3: 3 fields, a row has input"),
    (BITS + ".gate\n-- a a 1\n", r"line 3: '\.gate' is not known: remove the line"),
    (BITS, "there are no rows"),
    (".i x\n0 a a 1\n", r"line 1: \.i takes one whole number"),
    ("0 a a 1\n", r"add '\.i N' and '\.o N'"),
    (BITS + "-- * * 1\n", "there are no states"),
    (BITS + "-- a a -\n", "line 3: output '-' has '-', any value: write 0 or 1 there"),
    (BITS + "-- a a 1\n.e\n-- b a 1\n", "line 5: stands after the end of the rows in line 4"),
    (BITS + ".o 1\n-- a a 1\n", r"line 3: a second \.o: keep one"),
    (BITS + ".r a\n.r b\n-- a b 1\n-- b b 1\n", r"line 4: a second \.r: keep one"),
])  # fmt: skip
def test_faults_of_kiss2_are_named_with_their_line(text, message):
    with pytest.raises(InvalidMachine, match=message):
        from_kiss2(text)


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


GOOD = json.loads(to_json(MooreMachine([[1, 0], [0, 1]], [True, False], alphabet="ab")))


def broken(**changes) -> str:
    return json.dumps({name: value for name, value in {**GOOD, **changes}.items() if value != "remove"})


@pytest.mark.parametrize(("text", "message"), [
    (broken(delta="remove"), '"delta" is missing: add it'),
    (broken(colour="red"), "'colour' is not known: remove it"),
    (broken(delta=[[1, 2], [0, 1]]), r"delta\[0, 1\] = 2, but states run 0..1"),
    (broken(delta=[[1, [0, 1]], [0, 1]]), "is not one state|rows of delta have the lengths"),
    (broken(delta=[[1], [0, 1]]), r"the rows of delta have the lengths \[1, 2\]"),
    (broken(delta=7), '"delta" is not a list of lists'),
    (broken(alphabet="ab"), '"alphabet" is not a list'),
    (broken(alphabet=["a", {"set": []}]), r"\"alphabet\"\[1\]: {'set': \[\]} is not a symbol"),
    (broken(alphabet=[], delta=[]), "the alphabet is empty"),
    (broken(alphabet=["a", "a"]), "letter 'a' stands twice in the alphabet"),
    (broken(start="0"), "start = '0', but states run 0..1: name one of them"),
    (broken(labels=["x"]), "1 labels for 2 states"),
    (to_json(MooreMachine([[0]], [True]))[:-20], "line 7, column .*: the file is truncated or not JSON"),
    (broken(start=int("9" * 4300)), "but states run 0..1"),
    (broken().replace(" 0,", " " + "9" * 5000 + ","), "holds a number of more than 4,300 digits"),
    (broken(alphabet=["a", float("nan")]), "the JSON text: it holds NaN, which is not a number"),
    (broken(delta=[[1, 0], [0, True]]), r"\"delta\"\[1\] holds true or false: give the number of a state"),
    (broken(delta=[[1, 0], [0, 1.0]]), "1.0 is not one state"),
])  # fmt: skip
def test_faults_of_json_name_value_and_remedy(text, message):
    with pytest.raises(InvalidMachine, match=message):
        from_json(text)


@pytest.mark.parametrize(("text", "message"), [
    *((broken(version=version), r'"version" is .*, expected 1') for version in (None, "1", 0, True)),
    (broken(version=2), "has format version 2, this fsa2lrnn reads up to 1: install a newer"),
    *((text, "is JSON, but not a machine of ours") for text in ("[]", "{}", '"fsa2lrnn-machine"', "null")),
])  # fmt: skip
def test_other_versions_and_other_json_are_refused(text, message):
    with pytest.raises(UnsupportedFormat, match=message):
        from_json(text)


def test_deep_nesting_entities_and_large_tables_end_with_a_message(monkeypatch):
    with pytest.raises(InvalidMachine, match="nested deeper than 100"):
        from_json("[" * 100_000)
    monkeypatch.setattr(json_file, "MAX_TABLE_ENTRIES", 3)
    with pytest.raises(BudgetExceeded, match="the table has more than 3 entries"):
        from_json(broken())
    entities = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
    text = f'<?xml version="1.0"?>\n<!DOCTYPE x [<!ENTITY l0 "ha">{entities}]><structure>&l9;</structure>'
    with pytest.raises(InvalidMachine, match="line 2: the file declares a document type or entities, which can expand"):
        from_jflap(text)
    with pytest.raises(BudgetExceeded, match="elements are nested deeper than 50, JFLAP nests four"):
        from_jflap("<structure>" + "<a>" * 100_000)


HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="no"?><!--Created with JFLAP 6.4.--><structure>&#13;\n'
LETTERS = [" ", '"', "&amp;", "<", "]]>", "ab", "ε"]  # in natural order


@given(machines(outputs=("", "x", "<y>", "é è"), alphabet=LETTERS))
def test_moore_machines_come_back_equal(machine):
    assert from_jflap(to_jflap(machine)) == machine


@given(dfas(alphabet=LETTERS))
def test_acceptors_come_back_equal(machine):
    assume(any(trim(machine).outputs) or not any(machine.outputs))
    assert from_jflap(to_jflap(machine)) == machine


@pytest.mark.parametrize(
    ("name", "expected"), [("jflap_dfa", "a(ba)*"), ("jflap_nfa", "(0|1)*1(0|())"), ("jflap_old", "a*")]
)
def test_acceptors_in_the_layout_of_jflap(name, expected):
    assert equivalent(read_source(DATA / f"{name}.jff"), from_regex(expected)) is None


def test_acceptors_and_transducers_in_the_layout_of_jflap():
    moore = read_source(DATA / "jflap_moore.jff")
    assert (moore.labels, moore.transduce("1101")) == (("q0", "q1"), ["odd", "even", "even", "odd"])
    mealy = read_source(DATA / "jflap_mealy.jff")  # a delay by one letter
    assert mealy.transduce("1101") == ["0", "1", "1", "0"]


def jff(body: str, kind: str = "fa") -> str:
    return f"{HEAD}\t<type>{kind}</type>&#13;\n\t<automaton>&#13;\n{body}\t</automaton>&#13;\n</structure>"


STATE = '<state id="0" name="q0"><x>1.0</x><y>1.0</y><initial/></state>\n'


@pytest.mark.parametrize(("text", "message"), [
    ((DATA / "jflap_dfa.jff").read_text()[:400], "line 15: the XML is broken here .*: is the file truncated"),
    (jff(STATE.replace("<initial/>", "")), "no state is marked as start: in JFLAP choose Initial for one state"),
    (jff(STATE * 2), r"line 5: state '0' is defined twice, first in line 4"),
    (jff(STATE + STATE.replace('"0"', '"1"')), "line 5: 2 states are <initial/>, JFLAP allows one"),
    (jff(STATE + "<transition><from>0</from><to>7</to><read>a</read></transition>"), "line 5: an edge goes to '7'"),
    (jff(STATE + "<transition><from>0</from><read>a</read></transition>"), "line 5: a <transition> has no <to>"),
    (jff(STATE + "<state/>"), "line 5: a <state> has no id"),
    ("<structure><type>fa</type>", "line 1: the XML is broken here"),
    ("not XML", "line 1: the XML is broken here"),
])  # fmt: skip
def test_faults_of_jflap_are_named_with_their_line(text, message):
    with pytest.raises(InvalidMachine, match=message):
        from_jflap(text)


@pytest.mark.parametrize(("text", "message"), [
    (jff(STATE, "pda"), "a JFLAP file with type 'pda': those of finite automata"),
    ("<structure/>", "a JFLAP file with no <type>"),
    ("<html/>", "line 1: the outermost element is <html>, a JFLAP file has <structure>"),
])  # fmt: skip
def test_other_files_of_jflap_and_other_xml_are_refused(text, message):
    with pytest.raises(UnsupportedFormat, match=message):
        from_jflap(text)


@pytest.mark.parametrize(("write", "machine", "message"), [
    (to_openfst, MooreMachine([[0]], ["x"]), "a transducer writes nothing before the first letter, where this"),
    (to_openfst, MooreMachine([[0]], [True], alphabet=["a b"]), "symbol 'a b' holds white space, or has another"),
    (to_json, MooreMachine([[0]], [1j]), "symbol 1j of type complex cannot be written to JSON"),
    (to_jflap, MooreMachine([[0, 0]], [1, "1"]), "two outputs are written alike"),
    *(
        (to_jflap, machine, "has control characters or white space at its ends")
        for symbol in (" a", "a\n", "\x00", "\ud800")
        for machine in (MooreMachine([[0]], [True], alphabet=[symbol]), MooreMachine([[0]], [symbol]))
    ),
])  # fmt: skip
def test_what_a_format_cannot_hold_is_refused(write, machine, message):
    with pytest.raises(UnsupportedFormat, match=message):
        write(machine)


def test_labels_of_other_types_become_text():
    assert from_json(to_json(MooreMachine([[0]], [True], labels=[1j]))).labels == ("1j",)
    machine = MooreMachine([[1, 0]], [True, False], alphabet="a", labels=[("p", 1), 'q<">\x00'])
    assert from_jflap(to_jflap(machine)).labels == ("('p', 1)", 'q<">?')
