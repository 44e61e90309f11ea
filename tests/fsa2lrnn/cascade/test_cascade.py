"""Cascades and their coordinates: what they say, what they refuse; the largest prime of a group in a machine."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, equivalent, zoo
from fsa2lrnn.cascade import bound
from fsa2lrnn.cascade import cascade as module
from fsa2lrnn.cascade import coordinates as module_of_coordinates
from fsa2lrnn.cascade.bound import prime_bound
from fsa2lrnn.cascade.cascade import Cascade, Component, kind_of
from fsa2lrnn.cascade.coordinates import FREE, Cover, assemble
from fsa2lrnn.cascade.holonomy import holonomy
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, InvalidWord
from fsa2lrnn.testing.strategies import aperiodic_machines, machines, permutation_machines


def mod4():
    """Z₄ as a low bit and a high one that reads it."""
    machine = MooreMachine([[0, 1, 2, 3], [1, 2, 3, 0]], range(4))
    low = Component(2, 0, (), 0, np.array([[0], [1]]), np.array([[0, 1], [1, 0]]))
    keys = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    high = Component(2, 0, (0,), 1, keys, np.array([[0, 1], [0, 1], [0, 1], [1, 0]]))
    return Cascade(machine, (low, high))


def slow_run(cascade, word):
    """The joint states by looking every key up, one by one."""
    state, states = [component.start for component in cascade.components], []
    for letter in word:
        a = cascade.machine.alphabet.index(letter)
        after = list(state)
        for i, component in enumerate(cascade.components):
            seen = after if cascade.reads_now else state
            key = [a, *(seen[j] for j in component.reads)]
            (row,) = [r for r, candidate in enumerate(component.keys.tolist()) if candidate == key]
            after[i] = int(component.maps[row, state[i]])
        state = after
        states.append(state)
    return states


def test_what_a_cascade_says_of_itself():
    cascade = mod4()
    assert cascade.transduce([1, 1, 0, 1, 1, 1]) == [1, 2, 2, 3, 0, 1]
    assert cascade.simulate([1, 1]).tolist() == [[1, 0], [0, 1]]
    assert (cascade.n_layers, cascade.block_sizes, cascade.max_block) == (2, ((1,), (1,)), 1)
    assert [component.kind for component in cascade.components] == ["permutation", "permutation"]
    assert (sorted(cascade.image.tolist()), cascade.transduce([])) == ([0, 1, 2, 3], [])
    for word in itertools.product((0, 1), repeat=6):
        assert cascade.simulate(word).tolist() == slow_run(cascade, word)


@given(machines(max_states=5), st.data())
def test_the_morphism_leads_the_joint_states_to_the_machine(machine, data):
    cascade = assemble(machine, holonomy(machine.delta, machine.start))
    joint = cascade.to_machine()
    assert equivalent(joint, machine) is None
    word = data.draw(st.lists(st.sampled_from(machine.alphabet), max_size=8))
    assert cascade.simulate(word).tolist() == slow_run(cascade, word)
    assert cascade.transduce(word) == machine.transduce(word)
    for a in range(len(machine.alphabet)):
        assert (cascade.image[cascade.delta[a]] == machine.delta[a][cascade.image]).all()


def test_every_single_change_of_a_used_entry_is_refused():
    """A cascade in which every entry matters: each one changed must be found out."""
    good = mod4()
    for i, component in enumerate(good.components):
        assert good.used(i).all()
        for r, q in np.ndindex(component.maps.shape):
            maps = component.maps.copy()
            maps[r, q] = 1 - maps[r, q]
            components = list(good.components)
            components[i] = replace(component, maps=maps)
            with pytest.raises(InvalidMachine, match=r"from joint state .* the letter .* leads to a joint state which"):
                Cascade(good.machine, tuple(components))


LOW, HIGH = mod4().components


@pytest.mark.parametrize(("components", "says"), [
    ((LOW, replace(HIGH, keys=HIGH.keys[:3], maps=HIGH.maps[:3])), r"where component 1 has no map"),
    (
        (replace(LOW, keys=np.array([[0], [1], [1]]), maps=np.array([[0, 1], [1, 0], [0, 1]])), HIGH),
        "two maps for one key",
    ),
    ((LOW, replace(HIGH, layer=0)), "component 1 reads component 0: it may read earlier ones in lower layers"),
    ((), "at least one component"),
])  # fmt: skip
def test_components_that_make_no_cascade_are_refused(components, says):
    with pytest.raises(InvalidMachine, match=says):
        Cascade(mod4().machine, components)


@pytest.mark.parametrize(("changes", "says"), [
    ({"maps": np.array([[0, 2], [1, 0]])}, r"states run 0\.\.1"),
    ({"start": 2}, r"states run 0\.\.1"),
    ({"keys": np.array([[0, 0], [1, 0]])}, r"keys \(2, 2\) .* give \(R, 1\)"),
    ({"maps": np.array([[0, 1, 2], [1, 0, 2]])}, r"maps \(2, 3\): give .* \(R, 2\)"),
])  # fmt: skip
def test_a_component_of_wrong_shape_is_refused(changes, says):
    with pytest.raises(InvalidMachine, match=says):
        replace(mod4().components[0], **changes)


def test_unknown_letters_too_many_states_and_covers_that_do_not_follow_are_refused(monkeypatch):
    with pytest.raises(InvalidWord, match="letter 7"):
        mod4().simulate([7])
    monkeypatch.setattr(module, "MAX_JOINT_STATES", 3)
    with pytest.raises(BudgetExceeded, match="more than 3 joint states"):
        mod4()
    counter, q = MooreMachine([[1, 2, 3, 0]], range(4)), np.arange(4)
    with pytest.raises(InvalidMachine, match="coordinate 1 of level 0 does not follow from the letter"):
        assemble(counter, Cover(counter.delta, q, np.stack([q % 2, q // 2], axis=1), (0, 0)))
    with pytest.raises(InvalidMachine, match="does not run the machine"):
        assemble(counter, Cover(counter.delta, q, (q % 2)[:, None], (0,)))


@pytest.mark.parametrize(("maps", "kind", "blocks"), [
    ([[0]], "trivial", (1,)), ([[0, 1], [1, 1]], "reset", (1,)), ([[1, 0]], "permutation", (1,)),
    ([[0, 1, 2], [2, 2, 2]], "reset", (1, 1)), ([[1, 2, 0], [0, 0, 0]], "permutation-reset", (3,)),
    ([[1, 2, 0]], "permutation", (3,)), ([[0, 0, 1]], "general", (3,)),
])  # fmt: skip
def test_kinds_and_their_blocks(maps, kind, blocks):
    maps = np.array(maps)
    component = Component(maps.shape[1], 0, (), 0, np.arange(len(maps))[:, None], maps)
    assert (kind_of(maps), component.kind, component.block_sizes) == (kind, kind, blocks)


def multiplication(M=5):
    """t ← d·t modulo M: whether t is 0, and which unit it is where it is not."""
    machine = MooreMachine([[d * t % M for t in range(M)] for d in range(M)], range(M), start=1)
    values = np.array([[int(t != 0), t - 1 if t else FREE] for t in range(M)])
    order = [1, 0, *range(2, M)]  # a cover starts in state 0
    place = np.argsort(order)
    return machine, Cover(place[machine.delta[:, order]], np.array(order), values[order], (0, 1))


def test_what_is_free_needs_not_be_read(monkeypatch):
    """The unit may go on turning while t is 0, so that it need not know: both stand in one layer."""
    machine, cover = multiplication()
    cascade = assemble(machine, cover)
    assert [(c.reads, c.layer) for c in cascade.components] == [((), 0), ((), 0)]
    assert [c.kind for c in cascade.components] == ["reset", "permutation"]
    assert len(cascade.states) == 8  # 4 units, with or without the zero
    assert len(assemble(machine, cover.pinned()).components[1].reads) == 1
    monkeypatch.setattr(module_of_coordinates, "_MAX_ROWS", 5)  # what would blow the tables up is pinned
    assert assemble(machine, cover).components[1].reads == (0,)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image": np.arange(3)}, r"ask for image \(5,\)"),
        ({"delta": np.zeros((2, 4), int)}, r"delta \(k, 5\), not \(5,\) and \(2, 4\)"),
        ({"levels": (0,)}, "2 coordinates have 1 levels"),
    ],
)
def test_a_cover_of_wrong_shape_is_refused(changes, says):
    with pytest.raises(InvalidMachine, match=says):
        replace(multiplication()[1], **changes)


@given(machines(max_states=6))
def test_reads_are_needed(machine):
    """Without one of its reads, a component has two moves for one state, or is of a worse kind."""
    cascade = assemble(machine, holonomy(machine.delta, machine.start).pinned())
    for i, component in enumerate(cascade.components):
        asked = np.where(cascade.used(i), component.maps, FREE)
        for column in range(1, 1 + len(component.reads)):
            merged = merge(np.delete(component.keys, column, axis=1), asked)
            assert merged is None or not module_of_coordinates._virtues(asked) <= module_of_coordinates._virtues(merged)


def merge(keys, maps):
    """Partial maps with equal keys as one, or None if they contradict each other."""
    rows = {}
    for key, f in zip(map(tuple, keys.tolist()), maps.tolist(), strict=True):
        row = rows.setdefault(key, [FREE] * len(f))
        for x, y in enumerate(f):
            if FREE not in (y, row[x]) and y != row[x]:
                return None
            row[x] = max(y, row[x])
    return np.array(list(rows.values()))


def orders(m):
    """The orders of the maximal subgroups of the minimal machine's monoid, with the sizes of their images. A map is in
    the group of an idempotent if it has its image and identifies the same states."""
    m = m.minimise()
    monoid = {tuple(range(m.n_states))}
    while more := {tuple(a[q] for q in f) for f in monoid for a in m.delta.tolist()} - monoid:
        monoid |= more
    idempotents = [e for e in monoid if all(e[q] == q for q in e)]
    return [
        (sum(set(f) == set(e) and len(set(zip(e, f, strict=True))) == len(set(e)) for f in monoid), len(set(e)))
        for e in idempotents
    ]


def largest_prime(number):
    return max((p for p in range(2, number + 1) if number % p == 0 and all(p % d for d in range(2, p))), default=1)


@given(machines(max_states=5, max_letters=2) | permutation_machines(max_states=6))
def test_the_largest_prime_of_all_groups_in_the_monoid(m):
    found, expected = prime_bound(m), orders(m)
    assert found.complete
    assert found.prime == max(largest_prime(order) for order, _ in expected)
    sizes = [size for order, size in expected if largest_prime(order) == found.prime > 1]
    assert found.image_size == max(sizes, default=1)


@given(aperiodic_machines())
def test_aperiodic_machines_are_not_bounded(m):
    found = prime_bound(m)
    assert (found.prime, found.image_size, found.complete) == (1, 1, True)


def test_groups_too_large_to_list_are_bounded_before_the_limit():
    assert prime_bound(zoo.all_maps(12)).prime == 11
    swaps = np.array([[*range(2 * i), 2 * i + 1, 2 * i, *range(2 * i + 2, 10)] for i in range(5)], np.uint32)
    cycle = np.array([*range(2, 10), 0, 1], np.uint32)
    generators = np.concatenate([swaps, cycle[None]])
    assert bound._largest_prime_of_group(generators, cap=10) == 5
    assert bound._largest_prime_of_group(generators, cap=1_000) == 5
    assert bound._largest_prime_of_group(swaps, cap=10) == 2
    found = prime_bound(zoo.all_maps(6), max_sets=1)
    assert (found.prime, found.image_size, found.complete) == (5, 6, False)


@given(permutation_machines(max_states=6))
def test_by_sims_as_by_listing(m):
    permutations = m.delta.astype(np.uint32)
    assert bound._largest_prime_of_group(permutations, cap=1) == bound._largest_prime_of_group(permutations, cap=1_000)
