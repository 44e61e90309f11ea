"""Completing, determinising and turning Mealy into Moore machines."""

import pytest
from automata.fa.dfa import DFA
from automata.fa.nfa import NFA
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import equivalent
from fsa2lrnn.automata.formats import assemble
from fsa2lrnn.automata.formats.assemble import to_machine
from fsa2lrnn.automata.formats.automata_lib import from_automata
from fsa2lrnn.automata.formats.graph import EPSILON, Edge, LabelledGraph, State
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat


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
    "acceptor",
    (State("p", "p"), State("q", "q", accepting=True)),
    (("p", None),),
    (Edge("p", "a", "q"), Edge("q", "b", "p")),
)
PARTIAL_NFA = LabelledGraph(PARTIAL.kind, PARTIAL.states, PARTIAL.starts, (*PARTIAL.edges, Edge("p", "a", "p")))


def test_a_missing_transition_of_an_acceptor_rejects_by_default():
    machine = to_machine(PARTIAL)
    assert machine == MooreMachine([[1, 2, 2], [2, 0, 2]], [False, True, False], alphabet="ab")
    assert machine.labels == ("p", "q", "sink")


@pytest.mark.parametrize("graph", [PARTIAL, PARTIAL_NFA])
def test_completion_is_the_users_choice(graph):
    assert to_machine(graph, "sink") == to_machine(graph)
    ignoring = to_machine(graph, "ignore")
    assert ignoring.accepts("ba") == ignoring.accepts("a")
    with pytest.raises(InvalidMachine, match=r"the graph: no transition for state .* on 'b'.*completion='sink'"):
        to_machine(graph, "error")
    with pytest.raises(UnsupportedFormat, match="completion 'drop' is not known: choose one of error, sink, ignore"):
        to_machine(graph, "drop")  # type: ignore[arg-type]


def test_a_partial_mealy_machine_is_an_error_until_told_otherwise():
    graph = LabelledGraph("mealy", PARTIAL.states[:1], (("p", None),), (Edge("p", "a", "p", "x"),), ("a", "b"))
    with pytest.raises(InvalidMachine, match=r"no transition for state \('p', None\) on 'b'"):
        to_machine(graph)
    assert to_machine(graph, "sink").transduce("aba") == ["x", None, None]
    assert to_machine(graph, "ignore").transduce("aba") == ["x", "x", "x"]


def test_subsets_are_labelled_by_their_members():
    assert to_machine(PARTIAL_NFA).labels == ("{p}", "{p, q}", "sink")


def test_growth_ends_with_a_message(monkeypatch):
    edges = [Edge(0, "a", 0), Edge(0, "b", 0), Edge(0, "a", 1)]
    edges += [Edge(q, letter, q + 1) for q in range(1, 12) for letter in "ab"]
    graph = LabelledGraph("acceptor", tuple(State(q, q, q == 12) for q in range(13)), ((0, None),), tuple(edges))
    assert to_machine(graph).n_states == 4096
    for limit in ("MAX_SUBSETS", "MAX_SUBSET_MEMBERS"):
        with monkeypatch.context() as patch:
            patch.setattr(assemble, limit, 1000)
            with pytest.raises(BudgetExceeded, match=r"beyond .* states .*: simplify the automaton"):
                to_machine(graph)
    monkeypatch.setattr(assemble, "MAX_TABLE_ENTRIES", 20)
    with pytest.raises(BudgetExceeded, match="the deterministic machine is beyond 35 states"):  # 25 edges, 2 letters
        to_machine(graph)
    ring = tuple(Edge(q, q, (q + 1) % 40) for q in range(40))
    graph = LabelledGraph("acceptor", tuple(State(q, q, q == 0) for q in range(40)), ((0, None),), ring)
    with pytest.raises(BudgetExceeded, match="40 states and 40 letters make a table of more than 100 entries"):
        to_machine(graph)


def test_long_names_of_subsets_are_cut_short():
    names = [letter * 300 for letter in "pq"]
    edges = (Edge(0, "a", 0), Edge(0, "a", 1))
    graph = LabelledGraph("acceptor", tuple(State(q, names[q], q == 1) for q in (0, 1)), ((0, None),), edges)
    assert to_machine(graph).labels == ("{" + "p" * 79 + "…}", "{" + "p" * 79 + "…}")
