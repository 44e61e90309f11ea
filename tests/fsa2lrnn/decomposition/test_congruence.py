"""Congruences against all partitions, one by one; what is left where there are too many; the compiled kernels."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid.map_kernels import components
from fsa2lrnn.decomposition import congruence, partition_kernels
from fsa2lrnn.decomposition.congruence import Lattice, canonical, closure, is_finer, lattice, meet
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine
from fsa2lrnn.testing.strategies import machines


def every_partition(n):
    """All Bell(n) partitions, blocks numbered by first appearance."""
    rows = [[0]]
    for _ in range(n - 1):
        rows = [[*row, b] for row in rows for b in range(max(row) + 2)]
    return np.array(rows)


def respected(maps, p):
    """Whether the maps send blocks of p into blocks, pair by pair."""
    n = len(p)
    together = [(r, s) for r, s in itertools.combinations(range(n), 2) if p[r] == p[s]]
    return all(p[f[r]] == p[f[s]] for f in maps for r, s in together)


def all_respected(maps, rows):
    """Whether states of one block have images in one block, each compared with the first of its block."""
    for p in rows:
        _, head = np.unique(p, return_index=True)
        if (p[maps] != p[maps[:, head[p]]]).any():
            return False
    return True


def bell_machine(n):
    """The constants and the identity: every partition is a congruence."""
    return np.concatenate([np.repeat(np.arange(n)[:, None], n, axis=1), np.arange(n)[None]])


def bits(d):
    """Z₂^d by its generators: congruences are subspaces."""
    return np.array([np.arange(2**d) ^ (1 << i) for i in range(d)])


def as_set(rows):
    return {tuple(row) for row in rows.tolist()}


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_blocks_are_numbered_by_first_appearance(values):
    p = canonical(values)
    assert p.dtype == np.int64
    assert [values[p.tolist().index(b)] for b in p] == values
    assert list(dict.fromkeys(p.tolist())) == list(range(p.max() + 1))


@given(st.data(), st.integers(1, 7))
def test_finer(data, n):
    labels = st.lists(st.integers(0, n - 1), min_size=n, max_size=n).map(canonical)
    p, q = data.draw(labels), data.draw(labels)
    states = range(n)
    assert is_finer(p, q) == all(q[r] == q[s] for r, s in itertools.product(states, states) if p[r] == p[s])
    assert is_finer(meet(p, q), p)
    assert is_finer(p, p)


@given(machines(6, 3), st.data())
def test_the_closure_is_the_finest_congruence_that_merges_the_pairs(machine, data):
    n = machine.n_states
    state = st.integers(0, n - 1)
    pairs = data.draw(st.lists(st.tuples(state, state), max_size=3))
    found = closure(machine.delta, pairs)
    candidates = [p for p in every_partition(n) if respected(machine.delta, p) and all(p[r] == p[s] for r, s in pairs)]
    assert tuple(found) in as_set(np.array(candidates))
    assert all(is_finer(found, p) for p in candidates)


@given(machines(6, 3))
def test_the_lattice_holds_exactly_the_partitions_that_are_respected(machine):
    maps = np.unique(machine.delta, axis=0)
    found = lattice(maps)
    expected = np.array([p for p in every_partition(machine.n_states) if respected(maps, p)])
    assert found.complete
    assert as_set(found.partitions) == as_set(expected)
    assert len(found.partitions) == len(expected)
    assert (np.diff(found.partitions.max(axis=1)) >= 0).all()


@given(machines(9, 2), st.integers(2, 12))
def test_a_limit_keeps_distinct_congruences_and_says_so(machine, limit):
    maps = machine.delta
    found, whole = lattice(maps, limit), lattice(maps, 50_000)
    assert len(found.partitions) <= limit
    assert len(as_set(found.partitions)) == len(found.partitions)
    assert as_set(found.partitions) <= as_set(whole.partitions)
    assert found.complete == (len(whole.partitions) <= limit)
    assert found.method.startswith(("all", f"{len(found.partitions):,} congruences of more"))


@pytest.mark.parametrize("source", ["even_pair(5)", "group(S4)", "resettable_counter(12)", "mod_arith(3)"])
def test_larger_lattices_are_closed(source):
    maps = np.unique(zoo.from_task(source).minimise().delta, axis=0)
    found = lattice(maps)
    assert found.complete
    rows = as_set(found.partitions)
    assert all_respected(maps, found.partitions)
    for p, q in itertools.combinations(found.partitions[:40], 2):
        assert tuple(meet(p, q)) in rows
        assert tuple(partition_kernels.join(p, q)) in rows


@pytest.mark.parametrize(
    ("maps", "count"),
    [
        (zoo.length_mod(200).delta[:1], 12),  # the divisors of 200
        (bits(4), 67),  # the subspaces of Z₂⁴
        (bell_machine(7), 877),  # Bell(7)
        (zoo.group("S5").delta, 156),  # the subgroups of S₅
        (zoo.random_dfa(256, 4, 0).delta, 2),
    ],
)
def test_known_numbers_of_congruences(maps, count):
    found = lattice(maps)
    assert found.complete
    assert len(found.partitions) == count


@pytest.mark.parametrize(
    "maps", [bits(7), bell_machine(64), zoo.shift_register(6).delta], ids=["bits", "bell", "shift"]
)
def test_of_too_many_those_kept_are_of_use(maps):
    found = lattice(maps)
    assert not found.complete
    assert "capped at 3,000" in found.method
    n = maps.shape[1]
    assert all_respected(maps, found.partitions)
    assert (found.partitions.max(axis=1) < 4).sum() > 2
    together = np.zeros(n, np.int64)
    for p in found.partitions[:-1]:
        together = meet(together, p)
    assert together.max() == n - 1


def test_what_words_of_one_length_merge_is_left_and_two_blocks_tell_all_states_apart():
    maps = zoo.shift_register(6).delta
    found = lattice(maps)
    assert not found.complete
    for length in range(6):
        after = np.arange(64)[None]
        for _ in range(length):
            after = np.concatenate([after[:, f] for f in maps])
        merged = canonical([hash(after[:, q].tobytes()) for q in range(64)])
        assert tuple(merged) in as_set(found.partitions)
    for maps in (bits(7), bell_machine(64)):
        together = np.zeros(maps.shape[1], np.int64)
        for p in lattice(maps).partitions:
            if p.max() == 1:
                together = meet(together, p)
        assert together.max() == maps.shape[1] - 1


def test_a_sample_of_pairs_is_named(monkeypatch):
    maps = zoo.length_mod(60).delta[:1]
    monkeypatch.setattr(congruence, "_MAX_EDGES", 100)
    whole = lattice(maps)
    assert whole.complete  # words lead the pairs with state 0 to all pairs
    monkeypatch.setattr(congruence, "_SAMPLE", 200)
    found = lattice(maps)
    assert not found.complete
    assert "some of the 1,770 pairs" in found.method
    assert as_set(found.partitions) == as_set(whole.partitions)  # the pairs with state 0 would do
    monkeypatch.setattr(congruence, "_SAMPLE", 3)
    assert as_set(lattice(maps).partitions) < as_set(whole.partitions)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 0, 0], [1, 0, 2], [0, 1, 2]], "first appearance"),
        ([[0, 0, 0], [0, 2, 1], [0, 1, 2]], "first appearance"),
        ([[0, 0, 1], [0, 1, 2]], "its first row has 2 blocks and its last 3 of 3"),
        ([[0, 0, 0], [0, 0, 1]], "its first row has 1 blocks and its last 2 of 3"),
    ],
)
def test_a_lattice_checks_its_rows(rows, message):
    with pytest.raises(InvalidMachine, match=message):
        Lattice(np.array(rows), True, "by hand")
    with pytest.raises(BudgetExceeded, match="limit = 1, but the all-in-one and the identity"):
        lattice(np.arange(3)[None], limit=1)


@st.composite
def partitions(draw, n: int) -> np.ndarray:
    return canonical(draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n)))


@given(st.data(), st.integers(1, 9))
def test_joins_and_meets_by_definition(data, n):
    p, q = data.draw(partitions(n)), data.draw(partitions(n))
    linked = (p[:, None] == p) | (q[:, None] == q)
    together = np.linalg.matrix_power(linked.astype(int), n) > 0
    join = partition_kernels.join(p, q)
    assert np.array_equal(join, canonical(join))
    assert np.array_equal(join[:, None] == join, together)
    rows, blocks, index = partition_kernels.meets(p, np.stack([q, p]))
    assert np.array_equal(rows, np.stack([canonical(p * n + q), p]))
    assert blocks.tolist() == [len({*zip(p, q, strict=True)}), p.max() + 1]
    assert index.tolist() == [max(len(set(q[p == b])) for b in p), 1]


@given(st.data(), st.integers(2, 6))
def test_the_graph_of_pairs(data, n):
    row = st.lists(st.integers(0, n - 1), min_size=n, max_size=n)
    maps = np.array([data.draw(row) for _ in range(2)])
    pairs = list(itertools.combinations(range(n), 2))
    for (p, q), successors in zip(pairs, partition_kernels.pair_graph(maps).tolist(), strict=True):
        images = [tuple(sorted((int(f[p]), int(f[q])))) for f in maps]
        assert successors == [pairs.index(pair) if pair[0] != pair[1] else -1 for pair in images]


def test_searches_say_where_they_stop():
    maps = np.arange(6)[None]
    pairs, graph = np.stack(np.triu_indices(6, 1), axis=1), partition_kernels.pair_graph(maps)
    arguments = maps, pairs, graph, components(graph)
    rows, source, whole = partition_kernels.principals(*arguments, 100, 1_000)
    assert len(rows) == len(source) == 15
    assert whole
    for room, budget in ((14, 1_000), (100, 20)):
        fewer, _, whole = partition_kernels.principals(*arguments, room, budget)
        assert not whole
        assert 0 < len(fewer) < 15
        assert np.array_equal(fewer, rows[: len(fewer)])
    everything, whole = partition_kernels.joins(rows, source, 202, 10**6)
    assert whole
    assert len({row.tobytes() for row in everything}) == len(everything) == 202  # Bell(6) − 1
    for room, budget in ((201, 10**6), (202, 1_000)):
        some, whole = partition_kernels.joins(rows, source, room, budget)
        assert not whole
        assert 0 < len(some) < 202
    assert len(partition_kernels.separators(rows, source, np.arange(15), 10**6)) == 15
    assert len(partition_kernels.separators(rows, source, np.arange(15), 100)) < 15


def test_local_maps_of_each_kind():
    # Blocks {0, 1, 2}, {3, 4, 5}, {6} of the context, each state for itself.
    context = np.array([0, 0, 0, 1, 1, 1, 2])
    f = np.array([[3, 3, 3, 1, 2, 0, 0], [4, 4, 5, 6, 6, 6, 6]])
    block, first, images, kind = partition_kernels.local_maps(f, context, np.arange(7))
    assert block.tolist() == list(range(7))
    assert first.tolist() == [0, 3, 6, 7]
    assert np.array_equal(images, f)
    assert kind.tolist() == [
        [partition_kernels.CONSTANT, partition_kernels.INJECTIVE, partition_kernels.FREE],
        [partition_kernels.OTHER, partition_kernels.FREE, partition_kernels.FREE],
    ]
    classes, apart = partition_kernels.identified(np.arange(7), block, first, images, kind)
    assert classes.tolist() == [0, 1, 2, 1, 2, 0, 3]
    assert apart
    turned = np.array([[3, 4, 5, 1, 2, 0, 0]])
    block, first, images, kind = partition_kernels.local_maps(turned, context, np.arange(7))
    assert not partition_kernels.identified(np.arange(7), block, first, images, kind)[1]
