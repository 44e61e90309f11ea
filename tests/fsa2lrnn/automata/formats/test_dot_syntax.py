"""The DOT reader: against pydot on what both read, and on its own where pydot gives up."""

import pydot
import pytest

from fsa2lrnn.automata.formats import dot_syntax
from fsa2lrnn.automata.formats.dot_syntax import parse
from fsa2lrnn.errors import InvalidMachine

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
    (reference,) = pydot.graph_from_dot_data(PLAIN) or []
    ours = parse(PLAIN)

    def plain(value: str) -> str:
        return (value[1:-1] if value.startswith('"') else value).replace('\\"', '"')

    edges = [(plain(e.get_source()), plain(e.get_destination()), plain(e.get("label"))) for e in reference.get_edges()]
    assert sorted(edges) == sorted((e.tail, e.head, e.attributes["label"]) for e in ours.edges)
    for node in reference.get_nodes():
        expected = {name: plain(value) for name, value in node.get_attributes().items()}
        assert ours.nodes[plain(node.get_name())].attributes == expected


def test_defaults_hold_for_nodes_named_later_and_within_their_braces():
    graph = parse("digraph { a; node [shape=box]; b; { node [color=red, shape=circle]; c a b } d; edge[label=x] a->b }")
    assert {name: node.attributes for name, node in graph.nodes.items()} == {
        "a": {},
        "b": {"shape": "box"},
        "c": {"shape": "circle", "color": "red"},
        "d": {"shape": "box"},
    }
    assert graph.edges[0].attributes == {"label": "x"}


def test_subgraphs_as_ends_ports_strings_and_lines():
    graph = parse('digraph {\n{a b} -> subgraph x {c; d}\n"a" + "b":n -> c:s:e [k="1\\\n2" "flag"]\nk=v }')
    pairs = [(edge.tail, edge.head, edge.line) for edge in graph.edges]
    assert pairs == [("a", "c", 2), ("a", "d", 2), ("b", "c", 2), ("b", "d", 2), ("ab", "c", 3)]
    assert graph.edges[-1].attributes == {"k": "12", "flag": "true"}
    assert graph.attributes == {"k": "v"}
    assert "k" not in graph.nodes


def test_html_labels_lose_their_tags():
    graph = parse("digraph { a [label=<<b>x</b><br/>&lt;y&gt;>] }")
    assert graph.nodes["a"].attributes["label"] == r"x\n&lt;y&gt;"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "digraph { a -> b",
            "the DOT text: line 1: the text ends inside the graph: a closing } is missing, or the file",
        ),
        ("digraph {\n a ->", "line 2: expected '{', found the end of the text"),
        ("\n\ngraph { a -- b }", "line 3: an undirected graph has no transitions: write digraph"),
        ("digraph { a -- b }", "'--' is an edge without direction: write ->"),
        ("hello", "expected 'digraph', found 'hello': is this a Graphviz file"),
        ('digraph {\n a [label="x] }', "line 2: a quoted string is not closed: add the quotation mark"),
        ("digraph {\n a [label=<x] }", "line 2: an HTML-like label < is not closed: add >"),
        ("digraph { \n/* a }", r"line 2: a comment /\* is not closed"),
        ("digraph { a [label=@] }", "unexpected character '@': put text with other characters in quotes"),
        ("digraph { a [=x] }", "expected a name or value, found '='"),
        ("digraph { a } digraph { b }", "'digraph' follows the end of the graph: keep one graph a file"),
    ],
)
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
