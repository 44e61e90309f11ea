"""automata-lib and networkx: automata of both, there and back, and drawn by hand."""

import networkx as nx
import pytest
from automata.fa.dfa import DFA
from automata.fa.gnfa import GNFA
from automata.fa.nfa import NFA
from hypothesis import assume, given

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import equivalent, trim
from fsa2lrnn.automata.formats.automata_lib import from_automata, to_automata
from fsa2lrnn.automata.formats.networkx_graph import from_networkx, to_networkx
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas, machines


@given(dfas())
def test_automata_come_back_equal(machine):
    assume(any(trim(machine).outputs) or not any(machine.outputs))
    assert from_automata(to_automata(machine)) == machine


@given(dfas(max_states=4))
def test_generalised_automata_come_back_equivalent(machine):
    dfa = to_automata(machine)
    if not dfa.isempty():
        assert equivalent(from_automata(GNFA.from_dfa(dfa)), machine) is None


def test_partial_automata_reject_what_they_lack_and_nondeterministic_ones_are_determinised():
    parts = {"states": {"p", "q"}, "input_symbols": {"a", "b"}, "initial_state": "p", "final_states": {"q"}}
    dfa = DFA(transitions={"p": {"a": "q"}, "q": {}}, allow_partial=True, **parts)
    machine = from_automata(dfa)
    assert (machine.labels, machine.accepts("a"), machine.accepts("ab")) == (("p", "q", "sink"), True, False)
    assert from_automata(dfa, alphabet="ba").alphabet == ("b", "a")
    assert from_automata(dfa, completion="ignore").accepts("abba")
    parts = {"states": {0, 1, 2}, "input_symbols": {"a", "b"}, "initial_state": 0, "final_states": {2}}
    nfa = NFA(transitions={0: {"a": {0, 1}, "b": {0}}, 1: {"": {2}}}, **parts)
    machine = from_automata(nfa)
    assert (machine.transduce("aab"), machine.labels) == ([True, True, False], ("{0}", "{0, 1, 2}"))


ONE = to_automata(MooreMachine([[0, 1]], [False, True], alphabet="a"))
EMPTY = DFA(states={0}, input_symbols=set(), transitions={0: {}}, initial_state=0, final_states={0})


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (lambda: from_automata(object()), "object is not a finite automaton of automata-lib: give a DFA, an NFA or"),
        (lambda: from_automata(ONE), r"the DFA: accepting states \{1\} cannot be reached from start 0"),
        (lambda: from_automata(ONE, alphabet="b"), r"\('b',\) is not a permutation of the input symbols \('a',\)"),
        (lambda: from_automata(EMPTY), "the DFA: the alphabet is empty"),
        (
            lambda: to_automata(MooreMachine([[0]], ["x"])),
            r"accepts or rejects, this machine has other outputs \('x'\)",
        ),
        (
            lambda: to_automata(MooreMachine([[0], [0]], [True], alphabet=(0, "0"))),
            "letters 0 and '0' are both written '0', and automata-lib holds text",
        ),
        (
            lambda: to_automata(MooreMachine([[0]], [True], alphabet=("",))),
            "letter '' is written as nothing, which automata-lib reads as epsilon",
        ),
    ],
)
def test_what_one_of_the_two_has_not_is_refused(convert, message):
    with pytest.raises((InvalidMachine, UnsupportedFormat), match=message):
        convert()


ODD = (0, None, "0", (1, "x"), frozenset({2}), 1.5)


@given(machines(outputs=(True, "x", None, ("acc", 1)), alphabet=ODD))
def test_round_trip_keeps_symbols_exactly(machine):
    again = from_networkx(to_networkx(machine))
    assert again == machine
    assert [type(letter) for letter in again.alphabet] == [type(letter) for letter in ODD]


def test_labels_travel_and_mealy_machines_have_outputs_on_edges():
    machine = MooreMachine([[1, 0]], [True, False], labels=[("even", 0), None])
    assert from_networkx(to_networkx(machine)).labels == (("even", 0), None)
    graph = drawn(("p", "p", {"letter": 0, "output": "x"}), ("p", "p", {"letter": 1, "output": "y"}))
    assert from_networkx(graph, start="p", alphabet=(1, 0)).transduce([0, 1]) == ["x", "y"]


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


def test_faults_of_graphs_are_named():
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
