"""DOT: files of other tools, drawings by hand, our own round trip; the parser against pydot."""

from pathlib import Path

import pydot
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, equivalent
from fsa2lrnn.automata.formats import dot_syntax, read_source
from fsa2lrnn.automata.formats.dot import from_dot, to_dot
from fsa2lrnn.automata.formats.dot_syntax import parse
from fsa2lrnn.automata.formats.regex import from_regex
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas, machines

DATA = Path(__file__).parent / "data"
SYMBOLS = st.one_of(
    st.text(max_size=4),
    st.sampled_from([",", "/", "ε", '"', "\\", "\\n", "\n", "&", "<b>", " ", "", None, True, 7, 1.5, (1, ("x", None))]),
)
# 1 and True are equal, and so can't both be letters.
ALPHABETS = st.lists(SYMBOLS, min_size=1, max_size=4, unique=True)


@given(st.data())
def test_round_trip_keeps_every_symbol_and_label(data):
    outputs = data.draw(st.lists(SYMBOLS, min_size=1, max_size=3))
    machine = data.draw(machines(max_states=5, outputs=outputs, alphabet=data.draw(ALPHABETS)))
    labels = data.draw(st.none() | st.lists(SYMBOLS, min_size=machine.n_states, max_size=machine.n_states))
    machine = MooreMachine(machine.delta, machine.outputs, machine.start, machine.alphabet, labels)
    again = from_dot(to_dot(machine))
    assert again == machine
    assert list(map(type, (*again.alphabet, *again.outputs))) == list(map(type, (*machine.alphabet, *machine.outputs)))
    if labels is not None:
        assert again.labels == tuple(labels)


@given(dfas(max_states=5))
def test_our_pictures_say_the_same_as_our_exact_symbols(machine):
    picture = to_dot(machine).replace("fsa2lrnn=1", "")
    if not any(machine.outputs) or machine.outputs[machine.start]:
        assert equivalent(from_dot(picture), machine) is None


def test_an_edited_drawing_of_ours_is_checked():
    text = to_dot(MooreMachine([[1, 0]], [True, False], alphabet="a"))
    with pytest.raises(InvalidMachine, match=r"line 8: .*or remove fsa2lrnn=1(.|\n)*line 10: letters= is missing"):
        from_dot(text.replace('letters="[\\"a\\"]"', "", 1).replace('output="false"', "output=no"))


@pytest.mark.parametrize(("name", "expected"), [
    ("aalpy_dfa", from_regex("b*(ab*ab*)*")), ("learnlib_nfa", from_regex("(a|b)*ab|b")),
    ("automata_lib_dfa", from_regex("ab|ba|aab")), ("automata_lib_nfa", from_regex("(ab)*|a+b?")),
    ("drawn", from_regex("(0|1(01*0)*1)*")),
])  # fmt: skip
def test_acceptors_of_other_tools(name, expected):
    assert equivalent(read_source(DATA / f"{name}.dot"), expected) is None


def test_partial_acceptors_and_transducers_of_other_tools():
    partial = read_source(DATA / "learnlib_dfa.dot")
    assert partial.labels == ("0", "1", "sink")
    assert partial.transduce(["push", "push", "pop", "pop", "push"]) == [True, True, False, False, False]
    mealy = read_source(str(DATA / "aalpy_mealy.dot"))
    assert mealy.transduce(["button", "coin", "coin", "button"]) == ["beep", "ok", "coin back", "coffee"]
    mealy = read_source(DATA / "learnlib_mealy.dot")
    assert mealy.transduce(["PING", "CONNECT", "PING"]) == ["ConnectionClosed", "CONNACK", "PINGRESP"]
    assert mealy.labels[mealy.start] == ("0", None)
    moore = read_source(DATA / "aalpy_moore.dot")
    assert (moore.labels, moore.transduce("011")) == (("e", "o"), ["even", "odd", "even"])
    moore = read_source(DATA / "learnlib_moore.dot")
    assert (moore.labels, moore.outputs, moore.alphabet) == (("0", "1"), ("low", "high"), ("down", "up"))


STARTS = """"" -> p | "" -> p [label="start"] | __start0 -> p | i [shape=point]; i -> p | i [style=invis]; i -> p
    | i [shape=none label=""]; i -> p | i [shape=plaintext label="begin"]; i -> p | start -> p | p [start=true]
    | p [initial=1]"""


@pytest.mark.parametrize("start", STARTS.split(" | "))
def test_marks_of_the_start(start):
    machine = from_dot(f"digraph {{ p -> q [label=a]; q [shape=doublecircle]; q -> p [label=a]; {start} }}")
    assert (machine.labels[machine.start], machine.n_states) == ("p", 2)


@pytest.mark.parametrize(("label", "letters"), [
    ('"a,b"', ("a", "b")),
    ('"a, b ,c"', ("a", "b", "c")),
    (r'"a\nb\lc"', ("a", "b", "c")),
    ('","', (",",)),
    ('"a,,,b"', (",", "a", "b")),
    ('",,a"', (",", "a")),
    ('"/"', ("/",)),
    ('" "', (" ",)),
    ('"&lt;&amp;&#120;"', ("<&x",)),
    (r'"\\"', ("\\",)),
    ('"10,9"', ("9", "10")),
    ("<<i>a</i>>", ("a",)),
    ('"(,)"', ("(", ")")),
    ('"f(x,y),(1,2),g"', ("(1,2)", "f(x,y)", "g")),
])  # fmt: skip
def test_letters_of_one_label(label, letters):
    assert from_dot(f'digraph {{ "" -> p; p -> p [label={label}] }}').alphabet == letters


def test_separators_kinds_slashes_and_bars_in_names():
    text = 'digraph { "" -> p; p -> p [label="f(x,y)/1"] }'
    assert from_dot(text).alphabet == ("f(x,y)",)
    assert from_dot(text, kind="acceptor", separator=None).alphabet == ("f(x,y)/1",)
    with pytest.raises(UnsupportedFormat, match="kind 'dfa' is not known: choose one of acceptor, moore, mealy"):
        from_dot(text, kind="dfa")  # type: ignore[arg-type]
    text = 'digraph { "" -> p; p [label="a/b" shape=doublecircle]; p -> p [label="x/y"]; p -> p [label=z] }'
    machine = from_dot(text)
    assert (machine.labels, machine.alphabet) == (("a/b",), ("x/y", "z"))
    # Drawn by hand without `shape=record`, a bar was silently an acceptor that rejects every word.
    plain = from_dot('digraph { "" -> a; a [label="a|stop"] b [label="b|go"] a -> b [label=t] b -> a [label=t] }')
    assert plain.transduce("tt") == ["go", "stop"]
    assert plain.labels == ("a", "b")
    accepting = (
        'digraph { "" -> a; a [label="a|x"] b [label="b|" shape=doublecircle] a -> b [label=t] b -> b [label=t] }'
    )
    assert from_dot(accepting).outputs == (False, True)


@pytest.mark.parametrize(("body", "message"), [
    ("p -> q [label=a]", "no state is marked as start: add an arrow from an invisible node, as in  __start0"),
    ('"" -> p; p -> q', r"line 1: the edge p -> q has no letter: give it label=…, or label=ε if it reads none"),
    ('"" -> p; p -> p [label="a,"]', "the edge p -> p has no letter"),
    ('"" -> p; p -> p [label="a/0"]; \n p -> p [label=b]', "line 2: the edge from 'p' on 'b' has no output,"),
    ('"" -> p; p -> p [label="a/0"];\n p -> p [label="a/1"]', r"line 2: two edges leave 'p' on 'a' \(the other"),
    ('"" -> p; "" -> q; p [label="p/0"]; q [label="q/1"]; p -> q [label=a]', "2 start states"),
    ('"" -> p; p [label="p/0"]; q [label="q"]; p -> q [label=a]', "state 'q' has no output: in a Moore machine"),
    ('"" -> p [style=dotted]; p [shape=doublecircle]; p -> p [label="a/0"]', "drawn as accepting, but the edges"),
    ('"" -> p; p -> q [label="a / 0"]', "no transition for state .* completion='sink'"),
])  # fmt: skip
def test_faults_of_drawings(body, message):
    with pytest.raises(InvalidMachine, match=message):
        from_dot(f"digraph {{ {body} }}")


PLAIN = """
strict digraph "a b" {
  a -> b [label="x", color=red];  // two
  b -> c -> "d e" [label=3];
  # a whole line
  c [shape=doublecircle]; "d e" [label="q\\"1\\""]
}
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pydot's own, of pyparsing's old names
def test_nodes_and_edges_agree_with_pydot():
    machine = MooreMachine([[1, 0], [0, 0]], ["x", 'say "no"'], alphabet=['"', "\\"], labels=["p\\n", "q"])
    (written,) = pydot.graph_from_dot_data(to_dot(machine)) or []
    assert (len(written.get_nodes()), len(written.get_edges())) == (3, 4)
    (reference,) = pydot.graph_from_dot_data(PLAIN) or []
    ours = parse(PLAIN)

    def plain(value: str) -> str:
        return (value[1:-1] if value.startswith('"') else value).replace('\\"', '"')

    edges = [(plain(e.get_source()), plain(e.get_destination()), plain(e.get("label"))) for e in reference.get_edges()]
    assert sorted(edges) == sorted((e.tail, e.head, e.attributes["label"]) for e in ours.edges)
    for node in reference.get_nodes():
        expected = {name: plain(value) for name, value in node.get_attributes().items()}
        assert ours.nodes[plain(node.get_name())].attributes == expected


def test_defaults_subgraphs_ports_strings_and_html_labels():
    graph = parse("digraph { a; node [shape=box]; b; { node [color=red, shape=circle]; c a b } d; edge[label=x] a->b }")
    assert {name: node.attributes for name, node in graph.nodes.items()} == {
        "a": {}, "b": {"shape": "box"}, "c": {"shape": "circle", "color": "red"}, "d": {"shape": "box"},
    }  # fmt: skip
    assert graph.edges[0].attributes == {"label": "x"}
    graph = parse('digraph {\n{a b} -> subgraph x {c; d}\n"a" + "b":n -> c:s:e [k="1\\\n2" "flag"]\nk=v }')
    pairs = [(edge.tail, edge.head, edge.line) for edge in graph.edges]
    assert pairs == [("a", "c", 2), ("a", "d", 2), ("b", "c", 2), ("b", "d", 2), ("ab", "c", 3)]
    assert (graph.edges[-1].attributes, graph.attributes) == ({"k": "12", "flag": "true"}, {"k": "v"})
    assert "k" not in graph.nodes
    graph = parse("digraph { a [label=<<b>x</b><br/>&lt;y&gt;>] }")
    assert graph.nodes["a"].attributes["label"] == r"x\n&lt;y&gt;"


@pytest.mark.parametrize(("text", "message"), [
    ("digraph { a -> b", "the DOT text: line 1: the text ends inside the graph: a closing } is missing, or"),
    ("digraph {\n a ->", "line 2: expected '{', found the end of the text"),
    ("\n\ngraph { a -- b }", "line 3: an undirected graph has no transitions: write digraph"),
    ("digraph { a -- b }", "'--' is an edge without direction: write ->"),
    ("hello", "expected 'digraph', found 'hello': is this a Graphviz file"),
    ('digraph {\n a [label="x] }', "line 2: a quoted string is not closed: add the quotation mark"),
    ("digraph {\n a [label=<x] }", "line 2: an HTML-like label < is not closed: add >"),
    ("digraph { \n/* a }", r"line 2: a comment /\* is not closed"),
    ("digraph { a [label=@] }", "unexpected character '@': put text with other characters in quotes"),
    ("digraph { a [=x] }", "expected a name or value, found '='"),
    ("digraph { a } digraph { b }", "another graph begins here: keep one graph a file"),
])  # fmt: skip
def test_broken_text_is_named_with_its_line(text, message):
    with pytest.raises(InvalidMachine, match=message):
        parse(text)


def test_hostile_text_ends_with_a_message(monkeypatch):
    with pytest.raises(InvalidMachine, match="subgraphs are nested deeper than 50: flatten them"):
        parse("digraph {" + "{" * 100_000 + "}" * 100_000 + "}")
    deep = "digraph { a [label=<" + "<b>" * 100_000 + "</b>" * 100_000 + ">] }"
    assert parse(deep).nodes["a"].attributes["label"] == ""
    assert len(parse("digraph { " + '"a" + ' * 100_000 + '"a" }').nodes) == 1
    with pytest.raises(InvalidMachine, match="more than 200 default attributes"):
        parse("digraph { edge [" + " ".join(f"a{i}=1" for i in range(201)) + "] }")
    monkeypatch.setattr(dot_syntax, "MAX_EDGES", 8)
    with pytest.raises(InvalidMachine, match="more than 29 edges"):  # 8, and one for two characters
        parse("digraph { {a b c d e f} -> {g h i j k l} }")
