"""The words in which every format says what is wrong with a graph."""

import pytest

from fsa2lrnn.automata.formats import graph as graph_module
from fsa2lrnn.automata.formats.assemble import to_machine
from fsa2lrnn.automata.formats.graph import EPSILON, Edge, LabelledGraph, Problem, State, in_natural_order
from fsa2lrnn.errors import InvalidMachine


def acceptor(states, starts, edges, **more) -> LabelledGraph:
    """An acceptor with states "p", "q+" (accepting) and edges "p a q", numbered as lines from 1."""
    lines = iter(range(1, 100))
    return LabelledGraph(
        more.pop("kind", "acceptor"),
        tuple(State(s.rstrip("+"), s.rstrip("+"), s.endswith("+"), line=next(lines)) for s in states),
        tuple((s, next(lines)) for s in starts),
        tuple(Edge(*e.split()[:3], *e.split()[3:], line=next(lines)) for e in edges),
        **more,
    )


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (acceptor(["p"], [], ["p a p"]), "the graph: no state is marked as start: mark one state as start"),
        (acceptor([], [], []), "the graph: there are no states"),
        (acceptor(["p", "p"], ["p"], ["p a p"]), "line 2: state 'p' is defined twice, first in line 1: rename"),
        (acceptor(["p"], ["q"], ["p a p"]), "line 2: the start 'q' is not a state of the file"),
        (acceptor(["p"], ["p"], ["p a q"]), "line 3: an edge goes to 'q', which is not a state"),
        (acceptor(["p"], ["p"], ["q a p"]), "line 3: an edge goes from 'q', which is not a state"),
        (acceptor(["p"], ["p"], []), "the alphabet is empty: a machine needs at least one transition or declared"),
        (acceptor(["p"], ["p"], ["p a p"], alphabet=("b",)), "line 3: letter 'a' is not in the declared alphabet"),
        (acceptor(["p"], ["p"], [], alphabet=("b", "b")), "letter 'b' stands twice in the alphabet"),
        (
            acceptor(["p", "q+"], ["p"], ["p a p"]),
            r"line 2: accepting states \{q\} cannot be reached from start p: the ",
        ),
        (acceptor(["p"], ["p"], ["p a p x"]), "line 3: an edge of an acceptor has the output 'x'"),
        (acceptor(["p"], ["p"], ["p a p"], kind="moore"), "line 1: state 'p' has no output"),
        (acceptor(["p"], ["p"], ["p a p"], kind="mealy"), "line 3: the edge from 'p' on 'a' has no output"),
        (acceptor(["p"], ["p", "p"], ["p a p x"], kind="mealy"), r"line 3: 2 start states \('p', 'p'\): keep one"),
        (
            acceptor(["p", "q"], ["p"], ["p a p x", "p a q x"], kind="mealy"),
            r"line 5: two edges leave 'p' on 'a' \(the other stands in line 4\): a Mealy machine is deterministic",
        ),
    ],
)
def test_each_fault_names_value_line_and_remedy(graph, message):
    with pytest.raises(InvalidMachine, match=message):
        to_machine(graph)


def test_all_faults_come_in_one_message_in_the_order_of_lines():
    broken = acceptor(["p", "p"], [], ["p a q", "r a p"], problems=(Problem("found by the reader", 3),))
    with pytest.raises(InvalidMachine) as caught:
        to_machine(broken)
    lines = str(caught.value).split("\n")
    assert lines[0] == "the graph: 5 problems"
    assert [line.strip().split(":")[0] for line in lines[1:]] == [
        "line 2",
        "line 3",
        "line 3",
        "line 4",
        "no state is marked as start",
    ]


def test_a_file_of_another_kind_does_not_flood_the_screen(monkeypatch):
    monkeypatch.setattr(graph_module, "PROBLEMS_SHOWN", 2)
    with pytest.raises(InvalidMachine, match=r"and 2 more$"):
        to_machine(acceptor(["p"], ["p"], ["p a q", "p a r", "p a s", "p a t"]))


def test_epsilon_and_double_outputs_are_refused_in_transducers():
    states = (State("p", "p", output="x"),)
    graph = LabelledGraph("moore", states, (("p", None),), (Edge("p", EPSILON, "p"), Edge("p", "a", "p", "y")))
    with pytest.raises(InvalidMachine, match=r"reads no letter(.|\n)*and so have the states: keep outputs on states"):
        to_machine(graph)
    graph = LabelledGraph("mealy", states, (("p", None),), (Edge("p", "a", "p", "y"),))
    with pytest.raises(InvalidMachine, match="outputs stand both on states and on edges"):
        to_machine(graph)


def test_an_acceptor_without_accepting_states_rejects_all():
    assert to_machine(acceptor(["p"], ["p"], ["p a p"])).transduce("aa") == [False, False]


def test_natural_order_is_stable_for_any_letters():
    assert in_natural_order(["a10", "a9", "", "٣", 2, "2", 10, None, ("x", 1), "a09"]) == in_natural_order(
        ["2", ("x", 1), None, "a09", 10, 2, "٣", "", "a9", "a10"]
    )
    assert in_natural_order(["9" * 5000, "8" * 5000]) == ("8" * 5000, "9" * 5000)
