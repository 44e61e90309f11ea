"""OpenFst text: files that OpenFst wrote, tables, and faults."""

from pathlib import Path

import pytest
from hypothesis import assume, given

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import equivalent, trim
from fsa2lrnn.automata.formats import read_source, write_file
from fsa2lrnn.automata.formats.openfst import from_openfst, to_openfst
from fsa2lrnn.automata.formats.regex import from_regex
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas

DATA = Path(__file__).parent / "data"
TABLE = "<eps> 0\na 1\nb 2\n"


@given(dfas(alphabet=["b", "a10", "a9", "0"]))
def test_round_trip(machine):
    assume(any(trim(machine).outputs) or not any(machine.outputs))
    text, table = to_openfst(machine)
    assert from_openfst(text, isymbols=table) == machine


def test_files_that_openfst_wrote():
    assert equivalent(read_source(DATA / "pynini_bytes.fst.txt"), from_words("97 98")) is None
    nfa = read_source(DATA / "pynini_nfa.fst.txt")
    assert nfa.alphabet == ("zero", "one")
    assert [nfa.accepts(w) for w in ("one zero", "zero one zero", "one one zero", "one", "zero")] == [True] * 3 + [
        False
    ] * 2
    mealy = read_source(DATA / "pynini_mealy.fst.txt")
    assert mealy.transduce("zero one one zero one") == ["even", "odd", "even", "even", "odd"]
    assert mealy.outputs[mealy.start] is None


def from_words(word: str) -> MooreMachine:
    """(ab)* over the two letters of `word`."""
    machine = from_regex("(ab)*")
    return MooreMachine(machine.delta, machine.outputs, machine.start, word.split())


def test_tables_name_numbers_and_order_letters():
    numbers = from_openfst("0 1 2\n1 0 1\n1\n", isymbols="a 1\nb 2\n<eps> 0\n")
    assert (numbers.alphabet, numbers.accepts("b"), numbers.accepts("bab")) == (("a", "b"), True, True)
    assert from_openfst("0 0 b\n0\n", isymbols=TABLE).alphabet == ("a", "b")
    assert from_openfst("0 1 0\n1 1 5\n1\n").accepts([])  # without a table 0 is epsilon, as in OpenFst
    assert from_openfst("0 1 @0@\n1 1 a\n1\n").accepts("")  # foma's epsilon
    assert from_openfst("0 1 <eps>\n1 1 a\n1 0.0\n2 Infinity\n").accepts("")


def test_the_fourth_field_is_an_output_or_a_weight():
    assert from_openfst("0 0 a x\n").outputs[0] is None
    assert from_openfst("0 0 a 0\n0\n", acceptor=True).accepts("aa")
    assert from_openfst("0 0 a a 0\n0\n").accepts("aa")


def test_tables_beside_the_file_and_by_option(tmp_path):
    machine = MooreMachine([[1, 0], [0, 1]], [True, False], alphabet=["z", "a"])
    write_file(machine, tmp_path / "m.fst.txt")
    assert (tmp_path / "m.syms").read_text() == "<eps>\t0\nz\t1\na\t2\n"
    assert read_source(tmp_path / "m.fst.txt") == machine
    (tmp_path / "m.syms").rename(tmp_path / "other")
    assert read_source(tmp_path / "m.fst.txt").alphabet == ("a", "z")
    assert read_source(tmp_path / "m.fst.txt", isymbols=str(tmp_path / "other")) == machine
    with pytest.raises(UnsupportedFormat, match=r"no such file: .*nowhere"):
        read_source(tmp_path / "m.fst.txt", isymbols=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("0 1 a\n1 2.5\n", {}, "line 2: weight '2.5': a machine accepts or not, without weights"),
        ("0 1 a b 0.5\n", {}, "line 1: weight '0.5'"),
        ("0 1 a b 0 7\n", {}, "line 1: 6 fields, an arc has three to five and a final state one or two"),
        ("0 1 a\n0 1 b x\n", {}, "line 2: weight 'x'"),
        ("0 1 a\n", {"acceptor": False}, "line 1: an arc of a transducer has no output"),
        ("0 0 a x\n0 0 a y\n", {}, "line 2: two edges leave '0' on 'a'"),
        (
            "0 0 a <eps>\n",
            {},
            "an arc writes no output .0 is epsilon unless a table names it.: a Mealy machine writes one a letter",
        ),
        ("0 0 <eps> x\n", {}, "line 1: an edge of a Mealy machine reads no letter"),
        ("0 1 a x\n1 0 a x\n0\n", {}, "line 1: state 1 is not final, others are: a Mealy machine answers every word"),
        ("0 1 c\n1\n", {"isymbols": TABLE}, "line 1: letter 'c' is not in the symbol table: add it there"),
        ("0 1 a x\n", {"osymbols": TABLE}, "line 1: output 'x' is not in the symbol table"),
        ("0 1 a\n", {"isymbols": "a\n"}, "line 1 of the letter table is 'a': expected a symbol and its number"),
        ("0 1 a\n", {"isymbols": "a 1\na 2\n"}, "line 2 of the letter table repeats 'a' or its number"),
        ("0\n", {}, "the alphabet is empty"),
        ("\n", {}, "there are no states"),
        ("0 0 a\n1\n", {}, r"line 2: accepting states \{1\} cannot be reached from start 0"),
        ("0 1 a x\n1 0 b x\n", {}, "no transition for state"),
    ],
)
def test_faults_are_named_with_their_line(text, options, message):
    with pytest.raises(InvalidMachine, match=message):
        from_openfst(text, **options)


def test_machines_that_openfst_has_not_are_refused():
    with pytest.raises(
        UnsupportedFormat, match="a transducer writes nothing before the first letter, where this machin"
    ):
        to_openfst(MooreMachine([[0]], ["x"]))
    with pytest.raises(UnsupportedFormat, match="letter 'a b' holds white space, or means epsilon in OpenFst"):
        to_openfst(MooreMachine([[0]], [True], alphabet=["a b"]))
