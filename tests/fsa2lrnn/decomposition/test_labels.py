"""Labels of components against their definition, and block sizes in finer contexts."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.decomposition.congruence import is_finer, lattice, meet
from fsa2lrnn.decomposition.labels import block_size, index, is_identity_reset, labels
from fsa2lrnn.testing.strategies import aperiodic_machines, machines, permutation_machines

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


@given(components(), st.integers(0, 39))
def test_a_finer_context_raises_nothing(component, i):
    maps, context, partition = component
    rows = lattice(maps, 40).partitions
    blocks = {b: {int(c) for c in partition[context == b]} for b in context.tolist()}
    assert index(context, partition) == max(map(len, blocks.values()))
    finer = meet(context, rows[i % len(rows)])
    assert is_finer(finer, context)
    assert index(finer, partition) <= index(context, partition)
    assert block_size(maps, finer, partition) <= block_size(maps, context, partition)
    assert is_identity_reset(maps, finer, partition) or not is_identity_reset(maps, context, partition)


@given(components(), st.integers(0, 2))
def test_a_letter_named_first_is_the_identity_if_it_can_be(component, a):
    maps, context, partition = component
    a %= len(maps)
    if is_identity_reset(*component):
        return
    alone = is_identity_reset(maps[a : a + 1], context, partition)
    finer = meet(context, partition)
    sizes = {len(set(finer[context == b])) for b in range(context.max() + 1)} - {1}
    if alone and len(sizes) == 1:  # blocks of one size need no more labels than the index
        acting = [pairs for letter, pairs in local_maps(maps, context, labels(*component, [a])) if letter == a]
        assert all(is_constant(pairs) or is_identity(pairs) for pairs in acting)


def acts_as_identity(maps, context, values):
    moved = {a for a, pairs in local_maps(maps, context, values) if not is_identity(pairs)}
    return set(range(len(maps))) - moved


def test_the_letter_named_first_settles_the_gauge():
    # States (b, x) of Z₂ × Z₃, the context is b. Both letters change b; one keeps x, the other adds 1 to x if b = 0
    # and takes 1 away if b = 1. Either is the identity in the right labels, not both.
    states = [(b, x) for b in range(2) for x in range(3)]
    keep = [states.index((1 - b, x)) for b, x in states]
    turn = [states.index((1 - b, (x + 1 - 2 * b) % 3)) for b, x in states]
    maps, context = np.array([keep, turn]), np.array([b for b, _ in states])
    for first in (0, 1):
        assert acts_as_identity(maps, context, labels(maps, context, np.arange(6), [first])) == {first}
    third = np.array([states.index((b, (x + 1) % 3)) for b, x in states])  # never the identity
    maps = np.array([third, turn, keep])
    assert acts_as_identity(maps, context, labels(maps, context, np.arange(6))) == {1}
    assert acts_as_identity(maps, context, labels(maps, context, np.arange(6), [0, 2])) == {2}


def test_single_local_maps_of_a_refused_letter_become_the_identity():
    # One letter that leads {0, 1, 2} to {3, 4, 5} and back, and turns on the way back: only the first half can be 1.
    maps, context = np.array([[3, 4, 5, 1, 2, 0]]), np.array([0, 0, 0, 1, 1, 1])
    values = labels(maps, context, np.arange(6))
    assert values.tolist() == [0, 1, 2, 0, 1, 2]
    values = labels(np.array([[4, 5, 3, 0, 1, 2]]), context, np.arange(6))
    assert values.tolist() == [0, 1, 2, 2, 0, 1]
