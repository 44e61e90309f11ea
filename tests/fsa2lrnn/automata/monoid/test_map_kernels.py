"""The compiled kernels against plain Python and networkx."""

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata.monoid import map_kernels

compiling = settings(deadline=None)


@st.composite
def graphs(draw, max_nodes: int = 10, max_edges: int = 3) -> np.ndarray:
    n, k = draw(st.integers(1, max_nodes)), draw(st.integers(1, max_edges))
    row = st.lists(st.integers(-1, n - 1), min_size=k, max_size=k)
    return np.array([draw(row) for _ in range(n)], np.int64)


def as_networkx(successors: np.ndarray) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(successors)))
    graph.add_edges_from((i, int(j)) for i, row in enumerate(successors) for j in row if j >= 0)
    return graph


@compiling
@given(graphs())
def test_components_agree_with_networkx(successors):
    component = map_kernels.components(successors)
    ours = {frozenset(np.flatnonzero(component == c).tolist()) for c in range(component.max() + 1)}
    assert ours == {frozenset(c) for c in nx.strongly_connected_components(as_networkx(successors))}
    assert all(component[j] <= component[i] for i, row in enumerate(successors) for j in row if j >= 0)


@compiling
@given(graphs())
def test_cycles_agree_with_networkx(successors):
    graph = as_networkx(successors)
    expected = [
        graph.has_edge(i, i) or len(next(c for c in nx.strongly_connected_components(graph) if i in c)) > 1
        for i in graph
    ]
    assert map_kernels.on_cycle(successors).tolist() == expected


@compiling
@given(graphs(), st.data())
def test_paths_are_shortest(successors, data):
    i, j = (data.draw(st.integers(0, len(successors) - 1)) for _ in range(2))
    word = map_kernels.path(successors, i, j).tolist()
    graph = as_networkx(successors)
    lengths = [nx.shortest_path_length(graph, s, j) + 1 for s in graph.successors(i) if nx.has_path(graph, s, j)]
    if word == [-1]:
        assert lengths == []
    else:
        assert len(word) == min(lengths)
        for a in word:
            i = int(successors[i, a])
        assert i == j


def test_a_long_cycle_needs_no_recursion():
    n = 200_000
    assert map_kernels.components(np.roll(np.arange(n), -1)[:, None]).max() == 0
    assert map_kernels.components(np.append(np.arange(1, n), -1)[:, None]).max() == n - 1


maps = st.integers(1, 7).flatmap(lambda n: st.lists(st.integers(0, n - 1), min_size=n, max_size=n))


@compiling
@given(maps)
def test_periodic_states(row):
    periodic = set(range(len(row)))
    for _ in row:
        periodic = {row[q] for q in periodic}
    f = np.array([row], np.uint16)
    assert set(np.flatnonzero(map_kernels.periodic_states(f)[0])) == periodic
    assert map_kernels.first_turning(f) == (0 if any(row[q] != q for q in periodic) else -1)


def test_the_first_that_turns():
    rows = np.array([[0, 1, 2], [0, 0, 1], [0, 2, 1], [1, 2, 0]], np.uint16)
    assert map_kernels.first_turning(rows) == 2
    assert map_kernels.first_turning(rows[:2]) == -1


@compiling
@given(st.data(), st.integers(1, 4))
def test_graphs_of_tuples(data, n):
    row = st.lists(st.integers(0, n - 1), min_size=n, max_size=n)
    letters = np.array([data.draw(row) for _ in range(2)], np.int64)
    pairs, triples = map_kernels.tuple_graph(letters, 2), map_kernels.tuple_graph(letters, 3)
    for code in range(n**3):
        states = (code // n**2, code // n % n, code % n)
        for a in range(2):
            x = [int(letters[a, q]) for q in states]
            distinct = len(set(states)) == len(set(x)) == 3
            assert triples[code, a] == ((x[0] * n + x[1]) * n + x[2] if distinct else -1)
            if code < n**2:
                distinct = states[1] != states[2] and x[1] != x[2]
                assert pairs[code, a] == (x[1] * n + x[2] if distinct else -1)
