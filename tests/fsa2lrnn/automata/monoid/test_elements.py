"""The monoid by elements and images, permutation groups, and the compiled kernels, against plain Python."""

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid import Action, elements, enumerate_monoid, map_kernels
from fsa2lrnn.automata.monoid import subgroups as permutations
from fsa2lrnn.automata.monoid.elements import Images
from fsa2lrnn.testing.strategies import machines

compiling = settings(deadline=None)


@compiling
@given(machines(max_states=5, max_letters=3))
def test_all_elements_with_shortest_words(brute, m):
    m = m.minimise()
    action = Action.of(m)
    monoid, by_definition = enumerate_monoid(action, 10_000), brute(m)
    assert monoid.whole
    rows = [tuple(row) for row in monoid.elements.tolist()]
    assert len(set(rows)) == len(rows) == monoid.size
    assert set(rows) == by_definition.monoid
    lengths = [len(monoid.word(i)) for i in range(monoid.size)]
    assert lengths == sorted(lengths)
    layers, seen = [{by_definition.identity}], {by_definition.identity}
    while layers[-1]:
        layer = {tuple(a[x] for x in f) for f in layers[-1] for a in by_definition.letters} - seen
        layers.append(layer)
        seen |= layer
    for i, row in enumerate(rows):
        assert row in layers[lengths[i]]
        assert row == tuple(action.follow(q, monoid.numbers(i))[-1] for q in range(m.n_states))


@compiling
@given(machines(max_states=4, max_letters=2))
def test_cayley_graphs_and_l_classes(brute, m):
    m = m.minimise()
    action = Action.of(m)
    monoid, by_definition = enumerate_monoid(action, 10_000), brute(m)
    for i, f in enumerate(monoid.elements):
        for a, letter in enumerate(action.letters):
            assert (monoid.elements[monoid.right[i, a]] == letter[f]).all()
            assert (monoid.elements[monoid.left[i, a]] == f[letter]).all()
    rows = [tuple(row) for row in monoid.elements.tolist()]
    ideals = [frozenset(tuple(f[x] for x in g) for g in by_definition.monoid) for f in rows]
    number = dict(zip(ideals, monoid.l_classes.tolist(), strict=True))
    assert [number[ideal] for ideal in ideals] == monoid.l_classes.tolist()
    assert len(set(ideals)) == len(set(number.values()))


def test_a_cap_keeps_the_first_and_memory_caps_too(monkeypatch):
    action = Action.of(zoo.all_maps(5))
    whole, part = enumerate_monoid(action, 10_000), enumerate_monoid(action, 1_000)
    assert (whole.size, whole.whole, part.size, part.whole) == (3125, True, 1_000, False)
    assert (part.elements == whole.elements[:1_000]).all()
    known = part.right >= 0
    assert (part.right[known] == whole.right[:1_000][known]).all()
    assert part.method == "capped at 1,000 elements of the monoid"
    assert whole.method == "by enumeration of the monoid, 3,125 elements"
    monkeypatch.setattr(elements, "MAX_BYTES", 100 * (5 * 2 + 3 * 8))
    monoid = enumerate_monoid(Action.of(zoo.all_maps(5)), 10_000)
    assert (monoid.size, monoid.whole, monoid.cap) == (100, False, 100)
    monkeypatch.setattr(elements, "MAX_BYTES", 1)
    assert enumerate_monoid(Action.of(zoo.all_maps(5)), 10_000).size == 1


@compiling
@given(machines(max_states=5, max_letters=2))
def test_images_and_their_groups(brute, m):
    agree(m, brute)


def agree(m, brute):
    """The group of a root holds exactly the permutations that elements of the monoid make of it."""
    images, by_definition = Images(Action.of(m.minimise()), 1_000), brute(m)
    assert {tuple(images.members(i)) for i in range(len(images.sets))} == {
        tuple(sorted(set(f))) for f in by_definition.monoid
    }
    assert images.whole
    seen = set()
    for root in images.roots():
        members = images.members(root).tolist()
        generators, edges = images.generators(root)
        group = permutations.elements(generators, 1_000)
        expected = {
            tuple(members.index(f[q]) for q in members)
            for f in by_definition.monoid
            if {f[q] for q in members} == set(members)
        }
        assert {tuple(g) for g in group.tolist()} == expected
        assert len(expected) > 1
        seen.add(images.component[root])
        made = [permutation(images, members, word) for i, a in edges for word in images.words(root, i, a)]
        assert {tuple(g) for g in permutations.elements(np.array(made, np.uint32), 1_000).tolist()} == expected
    for i in range(len(images.sets)):
        members = images.members(i).tolist()
        moved = {
            f for f in by_definition.monoid
            if {f[q] for q in members} == set(members) and any(f[q] != q for q in members)
        }  # fmt: skip
        assert (images.component[i] in seen) == bool(moved)


def permutation(images, members, word):
    return [members.index(images.action.follow(q, word)[-1]) for q in members]


def test_caps_and_long_cycles():
    images = Images(Action.of(zoo.elevator(60)), 100_000)
    assert (len(images.sets), images.whole, images.roots()) == (60 * 61 // 2, True, [])
    assert images.method == "by enumeration of the images, 1,830 sets of states"
    images = Images(Action.of(zoo.elevator(60)), 100)
    assert (len(images.sets), images.whole) == (100, False)
    assert images.method == "capped at 100 sets of states"
    assert permutations.is_solvable_group(symmetric(30), 1_000) is False
    assert permutations.is_solvable_group(wreath_of_symmetric_4(), 1_000) is None
    assert permutations.is_solvable_group(affine(101), 1_000) is None
    n = 200_000
    assert map_kernels.components(np.roll(np.arange(n), -1)[:, None]).max() == 0
    assert map_kernels.components(np.append(np.arange(1, n), -1)[:, None]).max() == n - 1


def symmetric(n: int) -> np.ndarray:
    return np.array([[1, 0, *range(2, n)], [*range(1, n), 0]], np.uint32)


def affine(p: int) -> np.ndarray:
    """x ↦ x + 1 and x ↦ g x modulo p, g = 2 or 3 a generator: solvable, of order p (p − 1)."""
    x = np.arange(p)
    return np.array([(x + 1) % p, (x * {5: 2, 7: 3, 11: 2, 13: 2, 101: 2}[p]) % p], np.uint32)


def wreath_of_symmetric_4() -> np.ndarray:
    """S₄ on each of four blocks of four, and on the blocks: order 24⁵, solvable."""
    q = np.arange(16)
    rows = [q.copy() for _ in range(4)]
    rows[0][:2], rows[1][:4] = [1, 0], [1, 2, 3, 0]
    rows[2][:8] = np.roll(rows[2][:8], 4)
    return np.array([*rows[:3], np.roll(q, 4)], np.uint32)


@compiling
@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.permutations(range(n)), min_size=1, max_size=3)))
def test_small_groups(rows):
    generators = np.array(rows, np.uint32)
    group = permutations.elements(generators, 1_000)
    chosen = permutations.generating_set(group, 1_000)
    assert len(permutations.elements(group[chosen], 1_000) if chosen else group[:1]) == len(group)
    assert 2 ** len(chosen) <= len(group)
    nonsolvable = len(rows[0]) == 5 and len(group) in (60, 120)  # the only ones on five points: A₅, S₅
    assert permutations.is_solvable_group(generators, 1_000) is not nonsolvable
    if not nonsolvable:
        assert not permutations.nested_commutators_survive(generators)


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
def test_components_and_cycles_agree_with_networkx(successors):
    component, graph = map_kernels.components(successors), as_networkx(successors)
    theirs = list(nx.strongly_connected_components(graph))
    ours = {frozenset(np.flatnonzero(component == c).tolist()) for c in range(component.max() + 1)}
    assert ours == {frozenset(c) for c in theirs}
    assert all(component[j] <= component[i] for i, row in enumerate(successors) for j in row if j >= 0)
    cyclic = [graph.has_edge(i, i) or len(next(c for c in theirs if i in c)) > 1 for i in graph]
    assert map_kernels.on_cycle(successors).tolist() == cyclic


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
