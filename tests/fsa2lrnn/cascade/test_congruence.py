"""Congruences against all partitions, the compiled kernels, and the labels of components against their definition."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.cascade import congruence, partition_kernels
from fsa2lrnn.cascade.congruence import Lattice, canonical, closure, lattice, meet
from fsa2lrnn.cascade.layering import index, is_identity_reset, labels
from fsa2lrnn.cascade.rows import distinct_rows, number_rows
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine
from fsa2lrnn.testing.strategies import aperiodic_machines, machines, permutation_machines


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


@given(machines(6, 3), st.data())
def test_the_closure_is_the_finest_congruence_that_merges_the_pairs(machine, data):
    n = machine.n_states
    state = st.integers(0, n - 1)
    pairs = data.draw(st.lists(st.tuples(state, state), max_size=3))
    found = closure(machine.delta, pairs)
    candidates = [p for p in every_partition(n) if respected(machine.delta, p) and all(p[r] == p[s] for r, s in pairs)]
    assert tuple(found) in as_set(np.array(candidates))
    assert all(np.array_equal(meet(found, p), found) for p in candidates)


@given(machines(6, 3))
def test_the_lattice_holds_exactly_the_partitions_that_are_respected(machine):
    maps = np.unique(machine.delta, axis=0)
    found = lattice(maps)
    expected = np.array([p for p in every_partition(machine.n_states) if respected(maps, p)])
    assert found.complete
    assert as_set(found.partitions) == as_set(expected)
    assert len(found.partitions) == len(expected)
    assert (np.diff(found.partitions.max(axis=1)) >= 0).all()


@pytest.mark.long
@given(machines(9, 2), st.integers(2, 12))
def test_a_limit_keeps_distinct_congruences_and_says_so(machine, limit):
    found, whole = lattice(machine.delta, limit), lattice(machine.delta, 50_000)
    assert len(as_set(found.partitions)) == len(found.partitions) <= limit
    assert as_set(found.partitions) <= as_set(whole.partitions)
    assert found.complete == (len(whole.partitions) <= limit)
    assert found.method.startswith(("all", f"{len(found.partitions):,} congruences of more"))


@pytest.mark.parametrize(("maps", "count"), [
    (zoo.length_mod(200).delta[:1], 12),  # the divisors of 200
    (bits(4), 67),  # the subspaces of Z₂⁴
    (bell_machine(7), 877),  # Bell(7)
    (zoo.group("S5").delta, 156),  # the subgroups of S₅
    (zoo.random_dfa(256, 4, 0).delta, 2),
])  # fmt: skip
def test_known_numbers_of_congruences(maps, count):
    found = lattice(maps)
    assert found.complete
    assert len(found.partitions) == count


@pytest.mark.long_cases("bits")
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


def test_a_sample_of_pairs_is_named(monkeypatch):
    maps = zoo.length_mod(60).delta[:1]
    monkeypatch.setattr(congruence, "_MAX_EDGES", 100)
    whole = lattice(maps)
    assert whole.complete  # words lead the pairs with state 0 to all pairs
    monkeypatch.setattr(congruence, "_SAMPLE", 200)
    found = lattice(maps)
    assert (found.complete, "some of the 1,770 pairs" in found.method) == (False, True)
    assert as_set(found.partitions) == as_set(whole.partitions)  # the pairs with state 0 would do
    monkeypatch.setattr(congruence, "_SAMPLE", 3)
    assert as_set(lattice(maps).partitions) < as_set(whole.partitions)


@pytest.mark.parametrize(("rows", "message"), [
    ([[0, 0, 0], [1, 0, 2], [0, 1, 2]], "first appearance"),
    ([[0, 0, 0], [0, 2, 1], [0, 1, 2]], "first appearance"),
    ([[0, 0, 1], [0, 1, 2]], "its first row has 2 blocks and its last 3 of 3"),
    ([[0, 0, 0], [0, 0, 1]], "its first row has 1 blocks and its last 2 of 3"),
])  # fmt: skip
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


any_machine = st.one_of(machines(7, 3), aperiodic_machines(8, 3), permutation_machines(7, 3))


@st.composite
def components(draw):
    """A machine's distinct maps and two of its congruences."""
    maps = np.unique(draw(any_machine).delta, axis=0)
    rows = lattice(maps, 40).partitions
    row = st.integers(0, len(rows) - 1)
    return maps, rows[draw(row)], rows[draw(row)]


def local_maps(maps, context, values):
    """For each letter and block of the context the set of pairs (label, label after it), free ones left out."""
    for a, f in enumerate(maps):
        for b in range(context.max() + 1):
            states = [q for q in np.flatnonzero(context == b) if values[q] >= 0 and values[f[q]] >= 0]
            yield a, {(int(values[q]), int(values[f[q]])) for q in states}


def is_function(pairs):
    return len({x for x, _ in pairs}) == len(pairs)


def is_constant(pairs):
    return len({y for _, y in pairs}) <= 1


def is_identity(pairs):
    return all(x == y for x, y in pairs)


@pytest.mark.long
@given(components())
def test_labels_tell_apart_what_they_should_and_letters_act_on_them(component):
    maps, context, partition = component
    finer, values = meet(context, partition), labels(*component)
    assert values.shape == context.shape
    for b in range(context.max() + 1):
        blocks, found = finer[context == b], values[context == b]
        if len(set(blocks)) == 1:
            assert set(found) == {-1}
        else:
            assert min(found) >= 0
            assert len(set(zip(blocks, found, strict=True))) == len(set(blocks)) == len(set(found))
    assert all(is_function(pairs) for _, pairs in local_maps(maps, context, values))
    if is_identity_reset(*component):
        assert all(is_constant(pairs) or is_identity(pairs) for _, pairs in local_maps(maps, context, values))
    else:
        assert values.max() < index(context, partition)


@pytest.mark.long
@given(components())
def test_identity_reset_by_trying_all_labels(component):
    maps, context, partition = component
    finer = meet(context, partition)
    split = [b for b in range(context.max() + 1) if len(set(finer[context == b])) > 1]
    inside = [sorted(set(finer[context == b].tolist())) for b in split]
    n_labels = sum(map(len, inside))
    if n_labels > 6:
        return
    possible = False
    for choice in itertools.product(*(itertools.permutations(range(n_labels), len(blocks)) for blocks in inside)):
        label_of = np.full(finer.max() + 1, -1)
        for blocks, chosen in zip(inside, choice, strict=True):
            label_of[blocks] = chosen
        acting = local_maps(maps, context, label_of[finer])
        if all(is_constant(pairs) or is_identity(pairs) for _, pairs in acting):
            possible = True
            break
    assert is_identity_reset(*component) == possible


@pytest.mark.parametrize("width", [8, 13, 40])
def test_rows_of_more_codes_than_fit_an_integer(width):
    rng = np.random.default_rng(0)
    rows = rng.integers(-(2**10), 2**10, (50, width))
    rows = rows[rng.integers(50, size=200)]
    assert (np.sort(rows[np.argsort(number_rows(rows))], axis=0) == np.sort(rows, axis=0)).all()
    found, number = distinct_rows(rows)
    assert found.tolist() == np.unique(rows, axis=0).tolist()
    assert (found[number] == rows).all()
