"""DOT: files of other tools, drawings by hand, and our own round trip."""

from pathlib import Path

import pydot
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import equivalent
from fsa2lrnn.automata.formats import read_source
from fsa2lrnn.automata.formats.dot import from_dot, to_dot
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


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pydot's own, of pyparsing's old names
def test_what_we_write_is_dot_to_others():
    machine = MooreMachine([[1, 0], [0, 0]], ["x", 'say "no"'], alphabet=['"', "\\"], labels=["p\\n", "q"])
    (graph,) = pydot.graph_from_dot_data(to_dot(machine)) or []
    assert len(graph.get_nodes()) == 3
    assert len(graph.get_edges()) == 4


@given(dfas(max_states=5))
def test_our_pictures_say_the_same_as_our_exact_symbols(machine):
    picture = to_dot(machine).replace("fsa2lrnn=1", "")
    if not any(machine.outputs) or machine.outputs[machine.start]:
        assert equivalent(from_dot(picture), machine) is None


def test_an_edited_drawing_of_ours_is_checked():
    text = to_dot(MooreMachine([[1, 0]], [True, False], alphabet="a"))
    with pytest.raises(
        InvalidMachine,
        match=r"2 problems\n  line 8: .*correct it, or remove fsa2lrnn=1(.|\n)*line 10: letters= is missing: correct",
    ):
        from_dot(text.replace('letters="[\\"a\\"]"', "", 1).replace('output="false"', "output=no"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aalpy_dfa", from_regex("b*(ab*ab*)*")),
        ("learnlib_nfa", from_regex("(a|b)*ab|b")),
        ("automata_lib_dfa", from_regex("ab|ba|aab")),
        ("automata_lib_nfa", from_regex("(ab)*|a+b?")),
        ("drawn", from_regex("(0|1(01*0)*1)*")),
    ],
)
def test_acceptors_of_other_tools(name, expected):
    assert equivalent(read_source(DATA / f"{name}.dot"), expected) is None


def test_partial_acceptors_of_other_tools():
    machine = read_source(DATA / "learnlib_dfa.dot")
    assert machine.labels == ("0", "1", "sink")
    assert machine.transduce(["push", "push", "pop", "pop", "push"]) == [True, True, False, False, False]


def test_mealy_machines_of_other_tools():
    aalpy = read_source(str(DATA / "aalpy_mealy.dot"))
    assert aalpy.transduce(["button", "coin", "coin", "button"]) == ["beep", "ok", "coin back", "coffee"]
    learnlib = read_source(DATA / "learnlib_mealy.dot")
    assert learnlib.transduce(["PING", "CONNECT", "PING"]) == ["ConnectionClosed", "CONNACK", "PINGRESP"]
    assert learnlib.labels is not None
    assert learnlib.labels[learnlib.start] == ("0", None)


def test_moore_machines_of_other_tools():
    aalpy = read_source(DATA / "aalpy_moore.dot")
    assert (aalpy.labels, aalpy.transduce("011")) == (("e", "o"), ["even", "odd", "even"])
    learnlib = read_source(DATA / "learnlib_moore.dot")
    assert (learnlib.labels, learnlib.outputs) == (("0", "1"), ("low", "high"))
    assert learnlib.alphabet == ("down", "up")


@pytest.mark.parametrize(
    "start",
    [
        '"" -> p',
        '"" -> p [label="start"]',
        "__start0 -> p",
        "i [shape=point]; i -> p",
        "i [style=invis]; i -> p",
        'i [shape=none label=""]; i -> p',
        'i [shape=plaintext label="begin"]; i -> p',
        "start -> p",
        "p [start=true]",
        "p [initial=1]",
    ],
)
def test_marks_of_the_start(start):
    machine = from_dot(f"digraph {{ p -> q [label=a]; q [shape=doublecircle]; q -> p [label=a]; {start} }}")
    assert machine.labels is not None
    assert machine.labels[machine.start] == "p"
    assert machine.n_states == 2


@pytest.mark.parametrize("mark", ["shape=doublecircle", "peripheries=2", "accepting=true", "shape=doubleoctagon"])
def test_marks_of_accepting_states(mark):
    assert from_dot(f'digraph {{ "" -> p; p [{mark}]; p -> p [label=a] }}').accepts("")


@pytest.mark.parametrize(
    ("label", "letters"),
    [
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
    ],
)
def test_letters_of_one_label(label, letters):
    assert from_dot(f'digraph {{ "" -> p; p -> p [label={label}] }}').alphabet == letters


def test_the_separator_and_the_kind_can_be_told():
    text = 'digraph { "" -> p; p -> p [label="f(x,y)/1"] }'
    assert from_dot(text).alphabet == ("f(x,y)",)
    assert from_dot(text, kind="acceptor", separator=None).alphabet == ("f(x,y)/1",)
    with pytest.raises(UnsupportedFormat, match="kind 'dfa' is not known: choose one of acceptor, moore, mealy"):
        from_dot(text, kind="dfa")  # type: ignore[arg-type]


def test_doubly_drawn_states_keep_slashes_in_names_and_letters():
    text = 'digraph { "" -> p; p [label="a/b" shape=doublecircle]; p -> p [label="x/y"]; p -> p [label=z] }'
    machine = from_dot(text)
    assert (machine.labels, machine.alphabet) == (("a/b",), ("x/y", "z"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("p -> q [label=a]", "no state is marked as start: add an arrow from an invisible node, as in  __start0"),
        ('"" -> p; p -> q', r"line 1: the edge p -> q has no letter: give it label=…, or label=ε if it reads none"),
        ('"" -> p; p -> p [label="a,"]', "the edge p -> p has no letter"),
        (
            '"" -> p; p -> p [label="a/0"]; \n p -> p [label=b]',
            "line 2: the edge from 'p' on 'b' has no output, others have one",
        ),
        ('"" -> p; p -> p [label="a/0"];\n p -> p [label="a/1"]', r"line 2: two edges leave 'p' on 'a' \(the other"),
        ('"" -> p; "" -> q; p [label="p/0"]; q [label="q/1"]; p -> q [label=a]', "2 start states"),
        ('"" -> p; p [label="p/0"]; q [label="q"]; p -> q [label=a]', "state 'q' has no output: in a Moore machine"),
        (
            '"" -> p [style=dotted]; p [shape=doublecircle]; p -> p [label="a/0"]',
            "drawn as accepting, but the edges ca",
        ),
        ('"" -> p; p -> p [label=a]; q [shape=doublecircle]', r"accepting states \{q\} cannot be reached from start p"),
        ('"" -> p', "the alphabet is empty"),
        ('"" -> p; p -> q [label="a / 0"]', "no transition for state .* completion='sink'"),
    ],
)
def test_faults_of_drawings(body, message):
    with pytest.raises(InvalidMachine, match=message):
        from_dot(f"digraph {{ {body} }}")


def test_a_bar_between_name_and_output_is_read_in_any_shape():
    """Drawn by hand without `shape=record`, it was silently an acceptor that rejects every word."""
    plain = from_dot('digraph { "" -> a; a [label="a|stop"] b [label="b|go"] a -> b [label=t] b -> a [label=t] }')
    assert plain.transduce("tt") == ["go", "stop"]
    assert plain.labels == ("a", "b")
    accepting = (
        'digraph { "" -> a; a [label="a|x"] b [label="b|" shape=doublecircle] a -> b [label=t] b -> b [label=t] }'
    )
    assert from_dot(accepting).outputs == (False, True)
