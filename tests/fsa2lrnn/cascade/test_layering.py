"""Layers of congruences: as far as they can, no fewer, and within their bounds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.cascade.congruence import lattice, meet
from fsa2lrnn.cascade.layering import block_size, index, layering, thin
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.testing.strategies import aperiodic_machines, machines, permutation_machines

minimal_maps = st.one_of(machines(8, 3), aperiodic_machines(8, 3), permutation_machines(8, 3)).map(
    lambda machine: np.unique(machine.minimise().delta, axis=0)
)


def sizes(maps, layers):
    """Block sizes by layer, large ones first; a check that every layer is irredundant on the way."""
    context, found = np.zeros(maps.shape[1], np.int64), []
    for layer in layers:
        found.append(sorted((block_size(maps, context, p) for p in layer), reverse=True))
        full = meet_of(context, layer)
        for i in range(len(layer)):
            assert meet_of(context, layer[:i] + layer[i + 1 :]).max() < full.max()
        context = full
    assert context.max() + 1 == maps.shape[1]
    return found


def meet_of(context, layer):
    for p in layer:
        context = meet(context, p)
    return context


def advance(maps, context, found, largest):
    """The meet of all congruences that are small in the context, one by one."""
    for p in found.partitions:
        if block_size(maps, context, p) <= largest:
            yield p


@given(minimal_maps, st.lists(st.integers(1, 4), max_size=4), st.integers(1, 4))
def test_layers_advance_as_far_as_they_can_within_their_bounds(maps, first, largest):
    found = lattice(maps)
    layers = layering(maps, found, largest, first)
    sizes(maps, layers)
    context = np.zeros(maps.shape[1], np.int64)
    for i, layer in enumerate(layers):
        bounds = [first[i], largest] if i < len(first) else [largest]
        for bound in bounds:
            full = meet_of(context, list(advance(maps, context, found, bound)))
            if full.max() > context.max():
                assert np.array_equal(meet_of(context, layer), full)
                assert all(block_size(maps, context, p) <= bound for p in layer)
                break
        else:
            smallest = min(i for p in found.partitions if (i := index(context, p)) > 1)
            assert [index(context, p) for p in layer] == [smallest]
        context = meet_of(context, layer)


def fewest_layers(maps, found, largest):
    """The fewest layers of small components, breadth first over all contexts that single components lead to."""
    n = maps.shape[1]
    reached, depth = {tuple([0] * n)}, 0
    while tuple(range(n)) not in reached:
        after = set()
        for context in reached:
            below = {context}
            for p in advance(maps, np.array(context), found, largest):
                below |= {tuple(meet(np.array(q), p)) for q in below}
            after |= below
        if after == reached:
            return None
        reached, depth = after, depth + 1
    return depth


@given(minimal_maps, st.integers(1, 3))
def test_no_choice_needs_fewer_layers(maps, largest):
    found = lattice(maps)
    if len(found.partitions) > 30:
        return
    fewest = fewest_layers(maps, found, largest)
    layers = layering(maps, found, largest)
    if fewest is None:
        assert max(max(layer) for layer in sizes(maps, layers)) > largest
    else:
        assert len(layers) == fewest


@given(minimal_maps, st.integers(1, 4))
def test_thin_layers_are_as_many_and_as_small(maps, largest):
    found = lattice(maps)
    layers = layering(maps, found, largest)
    before = sizes(maps, layers)
    after = sizes(maps, thinner := thin(maps, found, layers, largest))
    if any(max(layer) > largest for layer in before):
        assert thinner is layers
    else:
        assert len(after) == len(before)
        assert all(max(layer) <= largest for layer in after)


def test_one_state_needs_no_layer_and_a_largest_block_of_zero_is_refused():
    assert layering(np.array([[0]]), lattice(np.array([[0]])), 1) == []
    with pytest.raises(NotExpressible, match="blocks of at most 0 states"):
        layering(np.array([[0]]), lattice(np.array([[0]])), 0)
