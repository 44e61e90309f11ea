"""Graphs to machines, in words that name the fault; automata-lib and networkx, there and back."""

import networkx as nx
import pytest
from automata.fa.dfa import DFA
from automata.fa.gnfa import GNFA
from automata.fa.nfa import NFA
from hypothesis import assume, given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import equivalent, trim
from fsa2lrnn.automata.formats import graph as graphs
from fsa2lrnn.automata.formats.graph import EPSILON, Edge, LabelledGraph, State, to_machine
from fsa2lrnn.automata.formats.python_objects import from_automata, from_networkx, to_automata, to_networkx
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat
from fsa2lrnn.testing.strategies import dfas, machines


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


@pytest.mark.parametrize(("graph", "message"), [
    (acceptor(["p"], [], ["p a p"]), "the graph: no state is marked as start: mark one state as start"),
    (acceptor([], [], []), "the graph: there are no states"),
    (acceptor(["p", "p"], ["p"], ["p a p"]), "line 2: state 'p' is defined twice, first in line 1: rename"),
    (acceptor(["p"], ["q"], ["p a p"]), "line 2: the start 'q' is not a state of the file"),
    (acceptor(["p"], ["p"], ["p a q"]), "line 3: an edge goes to 'q', which is not a state"),
    (acceptor(["p"], ["p"], ["q a p"]), "line 3: an edge goes from 'q', which is not a state"),
    (acceptor(["p"], ["p"], []), "the alphabet is empty: a machine needs at least one transition or declared"),
    (acceptor(["p"], ["p"], ["p a p"], alphabet=("b",)), "line 3: letter 'a' is not in the declared alphabet"),
    (acceptor(["p"], ["p"], [], alphabet=("b", "b")), "letter 'b' stands twice in the alphabet"),
    (acceptor(["p", "q+"], ["p"], ["p a p"]), r"line 2: accepting states \{q\} cannot be reached from start p: "),
    (acceptor(["p"], ["p"], ["p a p x"]), "line 3: an edge of an acceptor has the output 'x'"),
    (acceptor(["p"], ["p"], ["p a p"], kind="moore"), "line 1: state 'p' has no output"),
    (acceptor(["p"], ["p"], ["p a p"], kind="mealy"), "line 3: the edge from 'p' on 'a' has no output"),
    (acceptor(["p"], ["p", "p"], ["p a p x"], kind="mealy"), r"line 3: 2 start states \('p', 'p'\): keep one"),
    (
        acceptor(["p", "q"], ["p"], ["p a p x", "p a q x"], kind="mealy"),
        r"line 5: two edges leave 'p' on 'a' \(the other stands in line 4\): a Mealy machine is deterministic",
    ),
])  # fmt: skip
def test_each_fault_names_value_line_and_remedy(graph, message):
    with pytest.raises(InvalidMachine, match=message):
        to_machine(graph)


def test_epsilon_and_double_outputs_are_refused_in_transducers():
    states = (State("p", "p", output="x"),)
    graph = LabelledGraph("moore", states, (("p", None),), (Edge("p", EPSILON, "p"), Edge("p", "a", "p", "y")))
    with pytest.raises(InvalidMachine, match=r"reads no letter(.|\n)*and so have the states: keep outputs on states"):
        to_machine(graph)
    graph = LabelledGraph("mealy", states, (("p", None),), (Edge("p", "a", "p", "y"),))
    with pytest.raises(InvalidMachine, match="outputs stand both on states and on edges"):
        to_machine(graph)


@st.composite
def nfas(draw, max_states=5) -> LabelledGraph:
    """Nondeterministic acceptors over {a, b} with epsilons and one or more starts; shrinks to few edges."""
    n = draw(st.integers(1, max_states))
    state = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(state, st.sampled_from(["a", "b", EPSILON]), state), max_size=12))
    accepting = draw(st.sets(state))
    return LabelledGraph(
        "acceptor",
        tuple(State(q, f"q{q}", q in accepting) for q in range(n)),
        tuple((q, None) for q in draw(st.lists(state, min_size=1, max_size=2, unique=True))),
        tuple(Edge(p, letter, q) for p, letter, q in edges),
        ("a", "b"),
        may_be_empty=True,
    )


@given(nfas())
def test_determinising_agrees_with_automata_lib(graph):
    n = len(graph.states)
    transitions: dict[int, dict[str, set[int]]] = {q: {} for q in range(n + 1)}
    transitions[n][""] = {q for q, _ in graph.starts}
    for edge in graph.edges:
        read = "" if edge.letter is EPSILON else edge.letter
        transitions[edge.source].setdefault(read, set()).add(edge.target)
    nfa = NFA(
        states=set(range(n + 1)),
        input_symbols={"a", "b"},
        transitions=transitions,
        initial_state=n,
        final_states={state.key for state in graph.states if state.accepting},
    )
    assert equivalent(to_machine(graph), from_automata(DFA.from_nfa(nfa))) is None


@given(st.data())
def test_a_mealy_machine_answers_as_its_moore_machine(data):
    n = data.draw(st.integers(1, 4))
    table = {
        (q, a): (data.draw(st.integers(0, n - 1)), data.draw(st.sampled_from([None, "x", 0])))
        for q in range(n)
        for a in "ab"
    }
    edges = tuple(Edge(q, a, target, output) for (q, a), (target, output) in table.items())
    machine = to_machine(LabelledGraph("mealy", tuple(State(q, q) for q in range(n)), ((0, None),), edges))
    word, state, expected = data.draw(st.text("ab", max_size=8)), 0, []
    for letter in word:
        state, output = table[state, letter]
        expected.append(output)
    assert machine.transduce(word) == expected
    assert machine.outputs[machine.start] is None
    assert machine.labels is not None
    assert machine.labels[machine.run(word)] == (state, expected[-1] if expected else None)


PARTIAL = LabelledGraph(
    "acceptor", (State("p", "p"), State("q", "q", accepting=True)), (("p", None),),
    (Edge("p", "a", "q"), Edge("q", "b", "p")),
)  # fmt: skip
PARTIAL_NFA = LabelledGraph(PARTIAL.kind, PARTIAL.states, PARTIAL.starts, (*PARTIAL.edges, Edge("p", "a", "p")))


def test_what_is_missing_rejects_or_is_an_error():
    machine = to_machine(PARTIAL)
    assert machine == MooreMachine([[1, 2, 2], [2, 0, 2]], [False, True, False], alphabet="ab")
    assert machine.labels == ("p", "q", "sink")
    assert to_machine(acceptor(["p"], ["p"], ["p a p"])).transduce("aa") == [False, False]
    assert to_machine(PARTIAL_NFA).labels == ("{p}", "{p, q}", "sink")
    names = [letter * 300 for letter in "pq"]
    edges = (Edge(0, "a", 0), Edge(0, "a", 1))
    graph = LabelledGraph("acceptor", tuple(State(q, names[q], q == 1) for q in (0, 1)), ((0, None),), edges)
    assert to_machine(graph).labels == ("{" + "p" * 79 + "…}", "{" + "p" * 79 + "…}")
    graph = LabelledGraph("mealy", PARTIAL.states[:1], (("p", None),), (Edge("p", "a", "p", "x"),), ("a", "b"))
    with pytest.raises(InvalidMachine, match=r"no transition for state \('p', None\) on 'b'"):
        to_machine(graph)
    assert to_machine(graph, "sink").transduce("aba") == ["x", None, None]
    assert to_machine(graph, "ignore").transduce("aba") == ["x", "x", "x"]


@pytest.mark.parametrize("graph", [PARTIAL, PARTIAL_NFA])
def test_completion_is_the_users_choice(graph):
    assert to_machine(graph, "sink") == to_machine(graph)
    ignoring = to_machine(graph, "ignore")
    assert ignoring.accepts("ba") == ignoring.accepts("a")
    with pytest.raises(InvalidMachine, match=r"the graph: no transition for state .* on 'b'.*completion='sink'"):
        to_machine(graph, "error")
    with pytest.raises(UnsupportedFormat, match="completion 'drop' is not known: choose one of error, sink, ignore"):
        to_machine(graph, "drop")  # type: ignore[arg-type]


def test_growth_ends_with_a_message(monkeypatch):
    edges = [Edge(0, "a", 0), Edge(0, "b", 0), Edge(0, "a", 1)]
    edges += [Edge(q, letter, q + 1) for q in range(1, 12) for letter in "ab"]
    graph = LabelledGraph("acceptor", tuple(State(q, q, q == 12) for q in range(13)), ((0, None),), tuple(edges))
    assert to_machine(graph).n_states == 4096
    for limit in ("MAX_SUBSETS", "MAX_SUBSET_MEMBERS"):
        with monkeypatch.context() as patch:
            patch.setattr(graphs, limit, 1000)
            with pytest.raises(BudgetExceeded, match=r"beyond .* states .*: simplify the automaton"):
                to_machine(graph)
    monkeypatch.setattr(graphs, "MAX_TABLE_ENTRIES", 20)
    with pytest.raises(BudgetExceeded, match="the deterministic machine is beyond 35 states"):  # 25 edges, 2 letters
        to_machine(graph)
    ring = tuple(Edge(q, q, (q + 1) % 40) for q in range(40))
    graph = LabelledGraph("acceptor", tuple(State(q, q, q == 0) for q in range(40)), ((0, None),), ring)
    with pytest.raises(BudgetExceeded, match="40 states and 40 letters make a table of more than 100 entries"):
        to_machine(graph)


@given(dfas())
def test_automata_come_back_equal(machine):
    assume(any(trim(machine).outputs) or not any(machine.outputs))
    assert from_automata(to_automata(machine)) == machine


@given(dfas(max_states=4))
def test_generalised_automata_come_back_equivalent(machine):
    dfa = to_automata(machine)
    if not dfa.isempty():
        assert equivalent(from_automata(GNFA.from_dfa(dfa)), machine) is None
    dot = to_automata(MooreMachine([[1, 0], [0, 1]], [True, False], alphabet=".a"))
    with pytest.raises(InvalidMachine, match=r"letter '\.' is a sign of regular expressions"):
        from_automata(GNFA.from_dfa(dot))


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


@pytest.mark.parametrize(("convert", "message"), [
    (lambda: from_automata(object()), "object is not a finite automaton of automata-lib: give a DFA, an NFA or"),
    (lambda: from_automata(ONE), r"the DFA: accepting states \{1\} cannot be reached from start 0"),
    (lambda: from_automata(ONE, alphabet="b"), r"\('b',\) is not a permutation of the input symbols \('a',\)"),
    (lambda: from_automata(EMPTY), "the DFA: the alphabet is empty"),
    (lambda: to_automata(MooreMachine([[0]], ["x"])), r"accepts or rejects, this machine has other outputs"),
    (lambda: to_automata(MooreMachine([[0], [0]], [True], alphabet=(0, "0"))), "are both written '0', and"),
    (lambda: to_automata(MooreMachine([[0]], [True], alphabet=("",))), "written as nothing, .* reads as epsilon"),
])  # fmt: skip
def test_what_one_of_the_two_has_not_is_refused(convert, message):
    with pytest.raises((InvalidMachine, UnsupportedFormat), match=message):
        convert()


ODD = (0, None, "0", (1, "x"), frozenset({2}), 1.5)


@given(machines(outputs=(True, "x", None, ("acc", 1)), alphabet=ODD))
def test_round_trip_keeps_symbols_exactly(machine):
    again = from_networkx(to_networkx(machine))
    assert again == machine
    assert [type(letter) for letter in again.alphabet] == [type(letter) for letter in ODD]


def test_acceptors_of_networkx_mealy_machines_and_faults():
    machine = MooreMachine([[1, 0]], [True, False], labels=[("even", 0), None])
    assert from_networkx(to_networkx(machine)).labels == (("even", 0), None)
    graph = drawn(("p", "p", {"letter": 0, "output": "x"}), ("p", "p", {"letter": 1, "output": "y"}))
    assert from_networkx(graph, start="p", alphabet=(1, 0)).transduce([0, 1]) == ["x", "y"]
    graph = drawn(("p", "q", {"letters": "ab"}), ("q", "p", {"label": "a"}), p={"start": True}, q={"accepting": True})
    machine = from_networkx(graph)
    assert (machine.labels, machine.transduce("aab")) == (("p", "q", "sink"), [True, False, True])
    with pytest.raises(InvalidMachine, match="no transition for state 'q' on 'b'"):
        from_networkx(graph, completion="error")
    graph.add_edge("p", "p", letter="a")
    assert from_networkx(graph).transduce("aa") == [True, True]
    with pytest.raises(InvalidMachine, match=r"the networkx graph: 2 problems\n.*no letter: give it the attribute"):
        from_networkx(drawn(("p", "q", {}), ("p", "q", {"letter": 0})))
    with pytest.raises(InvalidMachine, match="letter '\"a\"' is in quotes, which networkx leaves"):  # networkx#2832
        from_networkx(drawn(("p", "p", {"label": '"a"'}), p={"start": True}))
    with pytest.raises(InvalidMachine, match="no state is marked as start: give one node the attribute start=True, or"):
        from_networkx(drawn(("p", "q", {"letter": 0})))
    with pytest.raises(InvalidMachine, match="the start 'r' is not a state"):
        from_networkx(drawn(("p", "q", {"letter": 0})), start="r")
    with pytest.raises(UnsupportedFormat, match="Graph is not a directed graph of networkx: give a MultiDiGraph"):
        from_networkx(nx.Graph())  # type: ignore[arg-type]


def drawn(*edges: tuple, **attributes: dict) -> nx.MultiDiGraph:
    """A graph from (tail, head, attributes) and attributes of nodes by name."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(attributes.items())
    graph.add_edges_from(edges)
    return graph
