"""The monoid element by element, against plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid import Action, elements, enumerate_monoid
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
def test_both_cayley_graphs(m):
    action = Action.of(m.minimise())
    monoid = enumerate_monoid(action, 10_000)
    for i, f in enumerate(monoid.elements):
        for a, letter in enumerate(action.letters):
            assert (monoid.elements[monoid.right[i, a]] == letter[f]).all()
            assert (monoid.elements[monoid.left[i, a]] == f[letter]).all()


@compiling
@given(machines(max_states=4, max_letters=2))
def test_l_classes(brute, m):
    monoid, by_definition = enumerate_monoid(Action.of(m.minimise()), 10_000), brute(m)
    rows = [tuple(row) for row in monoid.elements.tolist()]
    ideals = [frozenset(tuple(f[x] for x in g) for g in by_definition.monoid) for f in rows]
    number = dict(zip(ideals, monoid.l_classes.tolist(), strict=True))
    assert [number[ideal] for ideal in ideals] == monoid.l_classes.tolist()
    assert len(set(ideals)) == len(set(number.values()))


def test_a_cap_keeps_the_first():
    action = Action.of(zoo.all_maps(5))
    whole, part = enumerate_monoid(action, 10_000), enumerate_monoid(action, 1_000)
    assert (whole.size, whole.whole, part.size, part.whole) == (3125, True, 1_000, False)
    assert (part.elements == whole.elements[:1_000]).all()
    known = part.right >= 0
    assert (part.right[known] == whole.right[:1_000][known]).all()
    assert part.method == "capped at 1,000 elements of the monoid"
    assert whole.method == "by enumeration of the monoid, 3,125 elements"


def test_memory_caps_too(monkeypatch):
    monkeypatch.setattr(elements, "MAX_BYTES", 100 * (5 * 2 + 3 * 8))
    monoid = enumerate_monoid(Action.of(zoo.all_maps(5)), 10_000)
    assert (monoid.size, monoid.whole, monoid.cap) == (100, False, 100)
    monkeypatch.setattr(elements, "MAX_BYTES", 1)
    assert enumerate_monoid(Action.of(zoo.all_maps(5)), 10_000).size == 1


@pytest.mark.parametrize(
    ("source", "size"), [("all_maps(6)", 6**6), ("shift_register(10)", 2047), ("dyck(3, 3)", None)]
)
def test_larger_monoids(source, size):
    monoid = enumerate_monoid(Action.of(zoo.from_task(source).minimise()), 100_000)
    assert size in (None, monoid.size)
    assert monoid.whole
    assert len(np.unique(monoid.elements, axis=0)) == monoid.size
