"""Witnesses, methods, groups inside monoids, sentences on known examples; test_classification has the definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.automata.monoid import (
    Action,
    Fact,
    FactWitness,
    classify,
    elements,
    enumerate_monoid,
    map_kernels,
)
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


def test_groups_and_commutative_machines():
    witness = classify(zoo.resettable_counter(3)).group.witness
    assert (witness.words, witness.states) == ((("0",),), (0, 1, 0))
    assert witness.says == "'0' leads states 0 and 1 both to 0"
    witness = classify(zoo.ab_star()).commutative.witness
    assert (witness.words, witness.states) == ((("a", "b"), ("b", "a")), (0, 0, 2))
    assert witness.says == "from state 0, 'ab' leads to 0 and 'ba' to 2"
    c = classify(MooreMachine([[1, 2, 2], [0, 1, 2]], range(3)))
    assert (c.group.value, c.commutative.value, c.aperiodic.value) == (False, True, True)
    assert c.aperiodic.method == "polynomial: no cycles but loops, since the monoid is R-trivial"
    n = 500
    row = [*range(1, n), 1]
    assert classify(MooreMachine([row], range(n))).group.witness.states == (0, n - 1, 1)


def test_facts_are_no_truth_values_and_words_are_spelled():
    with pytest.raises(TypeError, match="a Fact is not a truth value, it may be undecided"):
        bool(Fact(True, "by hand"))
    fact = Fact(False, "by hand", FactWitness("'ab' does it", (("a", "b"),), (0, 2)))
    assert fact.explain() == "no: 'ab' does it (by hand)"
    assert fact.to_json() == {
        "value": False,
        "method": "by hand",
        "witness": {"says": "'ab' does it", "words": [["a", "b"]], "states": [0, 2]},
    }
    assert Fact(True, "by hand").to_json()["witness"] is None
    action = action_over("a", "b")
    assert (action.spell(("a", "b")), action.spell(())) == ("'ab'", "the empty word")
    assert action.spell(tuple("ab" * 20)) == repr("ab" * 20)
    assert action.spell(tuple("a" * 60 + "b")) == f"'{'a' * 20}…b' (61 letters)"
    assert action_over(10, "x").spell((10,) * 41).endswith(" … 10' (41 letters)")
    action = action_over("a b", "a")  # 'a b' was one letter or two
    assert action.spell(("a b", "a")) == '["a b", "a"]'
    assert action.spell(("a b",) * 41).endswith(' … ["a b"] (41 letters)')
    assert action_over("a", "ab").spell(("a", "ab")) == "'a ab'"


def action_over(*alphabet):
    return Action.of(MooreMachine([[i, 1 - i] for i in range(2)][: len(alphabet)], (0, 1), alphabet=alphabet))


def test_methods_of_the_search():
    def method(source, **limit):
        return classify(zoo.from_task(source), **limit).aperiodic.method

    assert method("parity") == "polynomial: a letter turns a cycle"
    assert method("tomita(7)") == "polynomial: no cycles but loops, since the monoid is R-trivial"
    assert method("ab_star") == "by enumeration of the monoid, 6 elements"
    assert method("elevator(4)") == "by enumeration of the monoid, 18 elements"
    assert method("elevator(40)", max_monoid=1_000) == "by enumeration of the images, 820 sets of states"


@pytest.mark.long
def test_images_and_groups_beyond_the_limits(check_witness):
    m = MooreMachine([[2, 4, 2, 1, 0], [0, 3, 3, 3, 3]], range(5))
    c = classify(m, max_monoid=12)
    assert (c.aperiodic.value, c.aperiodic.method) == (False, "by enumeration of the images")
    check_witness(c, "aperiodic")
    assert classify(m).aperiodic.method == "by enumeration of the monoid, shortest word first"
    c = classify(zoo.random_dfa(100, 6, seed=1, minimal=True), max_monoid=100_000)
    assert (c.solvable.value, c.solvable.method) == (False, "by the elements found of the monoid")
    check_witness(c, "solvable")
    q = np.arange(16)
    swap, turn = q.copy(), q.copy()
    swap[:2], turn[:4] = [1, 0], [1, 2, 3, 0]
    c = classify(MooreMachine([swap, turn, np.roll(q, 4)], range(16)), max_monoid=5_000)
    assert c.solvable.value is None
    assert c.solvable.method == "capped at 5,000 elements of a group that permutes 16 states"


@settings(deadline=None)
@given(st.data())
def test_images_decide_as_the_monoid_does(brute, check_witness, data):
    n = data.draw(st.integers(2, 5))
    row = st.lists(st.integers(0, n - 1), min_size=n, max_size=n)
    m = MooreMachine([data.draw(row) for _ in range(2)], range(n))
    by_definition = brute(m)
    images = {frozenset(f) for f in by_definition.monoid}
    c = classify(m, max_monoid=max(len(images), 1))
    assert c.aperiodic.value is by_definition.aperiodic()
    assert c.solvable.value is True or n == 5
    if not c.aperiodic.value:
        check_witness(c, "aperiodic")


@pytest.mark.parametrize(("rows", "solvable"), [
    ([[1, 2, 0, 3, 4, 0], [0, 1, 3, 4, 2, 0], [5, 5, 5, 5, 5, 5]], False),  # A₅ on five of six
    ([[1, 2, 3, 4, 0, 0], [0, 2, 4, 1, 3, 0], [5, 5, 5, 5, 5, 0]], True),  # the affine group of five, order 20
    ([[1, 2, 3, 4, 5, 0], [5, 4, 3, 2, 1, 0], [0, 0, 2, 2, 4, 4]], True),  # the dihedral group of six
])  # fmt: skip
def test_solvability_against_the_definition(brute, check_witness, rows, solvable):
    m = MooreMachine(rows, range(6), start=5)
    c = classify(m)
    assert c.solvable.value is solvable is brute(m).solvable()
    if not solvable:
        check_witness(c, "solvable")


@pytest.mark.parametrize("n", [7, 9, 16])
def test_a_group_too_large_to_list(n):
    c = classify(zoo.all_maps(n), max_monoid=1_000)
    assert (c.solvable.value, c.solvable.method) == (False, "by the groups that permute the images")
    assert c.solvable.witness.words == (("c",), ("t",))
    assert c.solvable.witness.states == tuple(range(n))
