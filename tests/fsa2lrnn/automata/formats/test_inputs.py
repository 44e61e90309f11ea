"""Files that people bring: what their authors mean is read, or refused by the name of the construct."""

import html
import re

import networkx as nx
import pytest

from fsa2lrnn import MooreMachine, equivalent
from fsa2lrnn.automata.formats import read_source, write_file
from fsa2lrnn.automata.formats.dot import from_dot
from fsa2lrnn.automata.formats.jflap import from_jflap, to_jflap
from fsa2lrnn.automata.formats.openfst import from_openfst
from fsa2lrnn.automata.formats.python_objects import from_networkx
from fsa2lrnn.cli import main
from fsa2lrnn.errors import Fsa2LrnnError, InvalidMachine, SourceWarning, UnsupportedFormat

START = 'i [shape=none label=""]; i -> p; '


def test_records_are_outputs_even_where_one_is_drawn_as_accepting():
    text = 'p [shape=record label="{ p | off }"]; q [shape=doublecircle label="{ q | on }"]; '
    text += "p -> q [label=t]; q -> p [label=t]"
    with pytest.warns(SourceWarning, match="state 'q' is drawn as accepting"):
        machine = from_dot(f"digraph {{ {START} {text} }}")
    assert (machine.labels, machine.outputs) == (("p", "q"), ("off", "on"))
    assert from_dot(f"digraph {{ {START} {text} }}", kind="acceptor").outputs == (False, True)


@pytest.mark.parametrize(("labels", "construct"), [
    ("a 0.5", "'0.5' is a probability"), ("a(1.0) b", "is a probability"),
    ("7 [/push([)", "an operation on a stack"), ("7 ]/pop([)", "an operation on a stack"),
    ("x Σ-{x}", "a set of letters"), ("x Σ", "a set of letters"), ("[^a] a", "a set of letters"),
    ("a ~a", "'~a' is a formula"), ("a∧b", "is a formula"), ("a true", "'true' is a formula"), ("a !a", "is a formula"),
    ("01X 110", "'01X' is a value that does not matter"),
])  # fmt: skip
def test_labels_that_are_no_letters_are_refused_by_name(labels, construct):
    edges = "".join(f'p -> p [label="{label}"]; ' for label in labels.split())
    with pytest.raises(Fsa2LrnnError, match="line 1: .*" + re.escape(construct)):
        from_dot(f"digraph {{ {START} {edges} }}")
    first, *_ = labels.split()
    machine = from_dot(f'digraph {{ {START} p -> p [label="{first}"] }}', kind="acceptor", separator=None)
    assert machine.n_states == 1


@pytest.mark.parametrize("labels", ["true false", "push pop", "AT&T", "f(x,y)", "a|b", "!coffee ?coin", "0 1", "X Y"])
def test_letters_that_look_alike_stay_letters(labels):
    edges = "".join(f'p -> p [label="{label}"]; ' for label in labels.split())
    assert set(from_dot(f"digraph {{ {START} {edges} }}").alphabet) == set(labels.split())


def test_labels_that_repeat_are_outputs():
    text = f"digraph {{ {START} p [label=OK]; q [label=BAD]; r [label=OK]; p -> q -> r -> p [label=t] }}"
    machine = from_dot(text)
    assert (machine.labels, machine.outputs) == (("p", "q", "r"), ("OK", "BAD", "OK"))
    text = text.replace("r [label=OK]", "r [label=OFF]")
    assert from_dot(text).is_acceptor
    assert from_dot(text, kind="moore").outputs == ("OK", "BAD", "OFF")


@pytest.mark.parametrize(("label", "outputs"), [
    ("a / 200 OK, token", {"a": "200 OK, token"}), ("a / x, b / y, z", {"a": "x", "b": "y, z"}),
    ("a / 200, text/html", {"a": "200, text/html"}), ("a/0,b/1", {"a": "0", "b": "1"}),
])  # fmt: skip
def test_an_output_extends_over_commas(label, outputs):
    machine = from_dot(f'digraph {{ {START} p -> p [label="{label}"] }}')
    assert {letter: machine.transduce([letter])[0] for letter in machine.alphabet} == outputs


SPELLINGS = ["ɛ", "ε", "ϵ", "λ", "Λ", "<eps>", "<Epsilon>", "epsilon", "eps", "&epsilon;", "@0@"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_epsilon_is_no_letter(spelling):
    text = f'digraph {{ {START} p -> q [label="{spelling}"]; q -> r [label=a]; r [is_final=True peripheries=2] }}'
    machine = from_dot(text)
    assert (machine.alphabet, machine.accepts("a")) == (("a",), True)


@pytest.mark.parametrize(("edge", "fault"), [
    ("label=a dir=back", "line 1: an edge with dir=back is not drawn as an arrow from 'p' to 'q'"),
    ("label=a dir=none", "an edge with dir=none"),
    ("label=a style=invis", "an edge with a letter is drawn invisibly"),
    ('label="a|b"', "'a|b' is a list of other letters"),
    ('label="a + b"', "'a + b' is a list of other letters"),
])  # fmt: skip
def test_edges_that_are_drawn_otherwise_are_refused(edge, fault):
    with pytest.raises(UnsupportedFormat, match=re.escape(fault)):
        from_dot(f'digraph {{ {START} p [shape=doublecircle]; q -> p [label="a,b"]; p -> q [{edge}] }}')


def test_numbers_beyond_the_floats_are_refused(tmp_path):
    """Python reads 1e400 as infinity."""
    path = tmp_path / "machine.json"
    write_file(MooreMachine([[1, 0]], [2.5, 0], alphabet="a"), path)
    path.write_text(path.read_text().replace("2.5", "1e400"))
    with pytest.raises(InvalidMachine, match="1e400, which is beyond the largest float"):
        read_source(str(path))


def test_modal_edges_are_refused_and_dashed_ones_are_named():
    with pytest.raises(Fsa2LrnnError, match="an edge of modality 'may'"):
        from_dot(f"digraph {{ {START} p -> p [label=a modality=MAY] }}")
    with pytest.warns(SourceWarning, match="dashed edges are read like the others"):
        from_dot(f"digraph {{ {START} p -> p [label=a]; p -> p [label=b style=dashed] }}")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_epsilon_in_graphs_and_jflap(spelling):
    graph = nx.MultiDiGraph()
    graph.add_node("starting_p", label="")
    graph.add_node("p", is_start=True, is_final=False)
    graph.add_node("q", is_start="False", is_final="True")
    graph.add_edge("starting_p", "p")
    graph.add_edge("p", "q", label=spelling)
    graph.add_edge("q", "p", label="a")
    machine = from_networkx(graph)
    assert (machine.alphabet, machine.accepts(""), machine.accepts("a")) == (("a",), True, True)
    assert from_networkx(graph, alphabet=["a", spelling]).alphabet == ("a", spelling)
    machine = from_jflap(jflap((0, 1, html.escape(spelling)), (1, 1, "a")))
    assert (machine.alphabet, machine.accepts("")) == (("a",), True)


def test_formulas_in_graphs_are_refused():
    graph = nx.DiGraph([("p", "q", {"label": "a & !b"})])
    with pytest.raises(UnsupportedFormat, match="'a & !b' is a formula"):
        from_networkx(graph, start="p")


def jflap(*transitions, kind="fa"):
    arcs = "".join(
        f"<transition><from>{p}</from><to>{q}</to><read>{label}</read></transition>" for p, q, label in transitions
    )
    states = '<state id="0" name="q0"><initial/></state><state id="1" name="q1"><final/></state>'
    return f"<structure><type>{kind}</type>{states}{arcs}</structure>"


def test_labels_of_jflap_are_words():
    text = jflap((0, 0, "ab"), (0, 1, "c"), (0, 1, "aa"))
    machine = from_jflap(text)
    assert machine.alphabet == ("a", "b", "c")
    assert [w for w in ("c", "abc", "aa", "abaa", "ab", "a", "ac", "bc", "aaa") if machine.accepts(w)] == [
        "c", "abc", "aa", "abaa",
    ]  # fmt: skip
    assert from_jflap(text, whole_labels=True).alphabet == ("aa", "ab", "c")
    ours = MooreMachine([[1, 0], [0, 1]], [True, False], alphabet=("up", "ε"))
    assert from_jflap(to_jflap(ours)) == ours
    with pytest.raises(InvalidMachine, match="JFLAP reads the label 'ab' as a word: pass whole_labels=True"):
        from_jflap(jflap((0, 1, "ab"), kind="mealy"))
    with pytest.raises(InvalidMachine, match="a range of letters"):
        from_jflap(jflap((0, 1, "[a-c]")))


def test_tabs_separate_fields_so_that_a_letter_can_be_a_blank():
    machine = from_openfst("0\t1\ta\ta\n1\t0\t \t \n0\n")
    assert (machine.alphabet, machine.accepts("a "), machine.accepts("a")) == ((" ", "a"), True, False)
    table = "<eps>\t0\n \t1\na\t2\n"
    assert from_openfst("0\t1\ta\n1\t0\t \n0\n", isymbols=table).accepts("a ")


def test_names_of_characters_and_epsilon_of_hfst():
    machine = from_openfst(
        "0\t1\t@_SPACE_@\t@_SPACE_@\t0.0\n1\t2\t@_EPSILON_SYMBOL_@\t@_EPSILON_SYMBOL_@\n2\t0.0\n--\n"
    )
    assert (machine.alphabet, machine.accepts(" ")) == ((" ",), True)


def test_a_mealy_machine_is_written_in_its_own_format(tmp_path):
    machine = from_openfst("0 1 a x\n0 0 b y\n1 0 a y\n1 1 b x\n")
    write_file(machine, tmp_path / "m.fst.txt")
    assert equivalent(read_source(tmp_path / "m.fst.txt"), machine) is None
    echo = from_openfst("0 0 a a\n0 0 b b\n", acceptor=False)
    write_file(echo, tmp_path / "m.fst.txt")
    assert read_source(tmp_path / "m.fst.txt").transduce("ab") == ["a", "b"]
    with pytest.raises(UnsupportedFormat, match="a transducer writes nothing before the first letter"):
        write_file(MooreMachine([[0]], ["x"], alphabet="a"), tmp_path / "n.fst.txt")


BAD = {
    "mealy.dot": f'digraph {{ {START} p -> q [label="a / 0"] }}',
    "chain.dot": f'digraph {{ {START} p -> p [label="a:0.5"] }}',
    "marks.dot": f'digraph {{ {START} p [shape=doublecircle]; p -> p [label="a/0"] }}',
    "words.jff": jflap((0, 1, "ab"), kind="moore"),
    "short.fst.txt": "0 1 a x\n1 0 b\n0 0 c y\n",
    "weights.fst.txt": "0\t1\ta\t0.5\n1\t0\tb\t0.25\n1\n",
    "partial.fst.txt": "0 1 a x\n",
}


@pytest.mark.parametrize("verb", [("compile",), ("convert", "-o", "out.json"), ("explain",), ("run", "a")])
@pytest.mark.parametrize("name", BAD)
def test_errors_on_the_command_line_name_options(name, verb, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(BAD[name])
    verb, *rest = verb
    with pytest.raises(SystemExit) as ended:
        main([verb, name, *rest])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("error:")
    assert not re.search(r"\b(completion|alphabet|kind|separator|whole_labels|acceptor|n_states|seconds)=", said), said


def test_options_of_convert_read_what_is_ambiguous(tmp_path, capsys):
    (tmp_path / "chain.dot").write_text(BAD["chain.dot"])
    with pytest.raises(SystemExit) as ended:
        main(["convert", str(tmp_path / "chain.dot"), "-o", str(tmp_path / "m.json"), "--kind", "acceptor"])
    assert (ended.value.code, read_source(tmp_path / "m.json").alphabet) == (0, ("a:0.5",))
    with pytest.raises(SystemExit):
        main(["compile", str(tmp_path / "chain.dot")])
    assert "pass `fsa2lrnn convert --kind acceptor`" in capsys.readouterr().err
