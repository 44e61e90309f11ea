"""networkx graphs, there and back, and drawn by hand."""

import networkx as nx
import pytest
from hypothesis import given

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata.formats.networkx_graph import from_networkx, to_networkx
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.testing.strategies import machines

ODD = (0, None, "0", (1, "x"), frozenset({2}), 1.5)


@given(machines(outputs=(True, "x", None, ("acc", 1)), alphabet=ODD))
def test_round_trip_keeps_symbols_exactly(machine):
    again = from_networkx(to_networkx(machine))
    assert again == machine
    assert [type(letter) for letter in again.alphabet] == [type(letter) for letter in ODD]


def test_labels_travel():
    machine = MooreMachine([[1, 0]], [True, False], labels=[("even", 0), None])
    assert from_networkx(to_networkx(machine)).labels == (("even", 0), None)


def drawn(*edges: tuple, **attributes: dict) -> nx.MultiDiGraph:
    """A graph from (tail, head, attributes) and attributes of nodes by name."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(attributes.items())
    graph.add_edges_from(edges)
    return graph


def test_acceptors_partial_and_nondeterministic():
    graph = drawn(("p", "q", {"letters": "ab"}), ("q", "p", {"label": "a"}), p={"start": True}, q={"accepting": True})
    machine = from_networkx(graph)
    assert (machine.labels, machine.transduce("aab")) == (("p", "q", "sink"), [True, False, True])
    with pytest.raises(InvalidMachine, match="no transition for state 'q' on 'b'"):
        from_networkx(graph, completion="error")
    graph.add_edge("p", "p", letter="a")
    assert from_networkx(graph).transduce("aa") == [True, True]


def test_mealy_machines_have_outputs_on_edges():
    graph = drawn(("p", "p", {"letter": 0, "output": "x"}), ("p", "p", {"letter": 1, "output": "y"}))
    assert from_networkx(graph, start="p", alphabet=(1, 0)).transduce([0, 1]) == ["x", "y"]


def test_faults_are_named():
    with pytest.raises(
        InvalidMachine, match=r"the networkx graph: 2 problems\n.*no letter: give it the attribute lett"
    ):
        from_networkx(drawn(("p", "q", {}), ("p", "q", {"letter": 0})))
    with pytest.raises(InvalidMachine, match="no state is marked as start: give one node the attribute start=True, or"):
        from_networkx(drawn(("p", "q", {"letter": 0})))
    with pytest.raises(InvalidMachine, match="the start 'r' is not a state"):
        from_networkx(drawn(("p", "q", {"letter": 0})), start="r")
    with pytest.raises(UnsupportedFormat, match="Graph is not a directed graph of networkx: give a MultiDiGraph"):
        from_networkx(nx.Graph())  # type: ignore[arg-type]
