"""Groups inside monoids: aperiodicity and solvability, where the monoid is small, large, and beyond every limit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.monoid import classify


def test_methods_of_aperiodicity():
    def method(source, **limit):
        return classify(zoo.from_task(source), **limit).aperiodic.method

    assert method("parity") == "polynomial: a letter turns a cycle"
    assert method("tomita(7)") == "polynomial: no cycles but loops, since the monoid is R-trivial"
    assert method("ab_star") == "polynomial: since the machine is locally testable"
    assert method("elevator(4)") == "by enumeration of the monoid, 18 elements"
    assert method("elevator(40)", max_monoid=1_000) == "by enumeration of the images, 820 sets of states"


def test_a_cycle_that_no_letter_turns(check_witness):
    machine = MooreMachine([[1, 1, 2], [2, 0, 2]], range(3))
    c = classify(machine)
    assert c.aperiodic.value is True
    swap = MooreMachine([[1, 1, 3, 3], [0, 2, 2, 0]], range(4))
    c = classify(swap)
    assert c.aperiodic.value is False
    assert c.aperiodic.method == "by enumeration of the monoid, shortest word first"
    assert len(c.aperiodic.witness.words[0]) == 2
    check_witness(c, "aperiodic")
    assert classify(swap, max_monoid=1).aperiodic.value is None


def test_a_cycle_found_among_the_images(check_witness):
    m = MooreMachine([[2, 4, 2, 1, 0], [0, 3, 3, 3, 3]], range(5))
    c = classify(m, max_monoid=12)
    assert (c.aperiodic.value, c.aperiodic.method) == (False, "by enumeration of the images")
    check_witness(c, "aperiodic")
    assert classify(m).aperiodic.method == "by enumeration of the monoid, shortest word first"


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


@pytest.mark.parametrize("n", [5, 6])
def test_groups_of_lower_rank(brute, check_witness, n):
    cycle, swap = [1, 2, 3, 4, 0], [1, 0, 2, 3, 4]
    rows = [[*row, *[row[0]] * (n - 5)] for row in (cycle, swap)]
    m = MooreMachine(rows, range(n), start=n - 1)
    c = classify(m)
    assert c.solvable.value is False is brute(m).solvable()
    check_witness(c, "solvable")
    assert c.group.value is (n == 5)


@pytest.mark.parametrize(
    ("rows", "solvable"),
    [
        ([[1, 2, 0, 3, 4, 0], [0, 1, 3, 4, 2, 0], [5, 5, 5, 5, 5, 5]], False),  # A₅ on five of six
        ([[1, 2, 3, 4, 0, 0], [0, 2, 4, 1, 3, 0], [5, 5, 5, 5, 5, 0]], True),  # the affine group of five, order 20
        ([[1, 2, 3, 4, 5, 0], [5, 4, 3, 2, 1, 0], [0, 0, 2, 2, 4, 4]], True),  # the dihedral group of six
    ],
)
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


def test_elements_refute_where_the_images_are_too_many(check_witness):
    c = classify(zoo.random_dfa(100, 6, seed=1, minimal=True), max_monoid=100_000)
    assert (c.solvable.value, c.solvable.method) == (False, "by the elements found of the monoid")
    check_witness(c, "solvable")


def test_a_solvable_group_too_large_to_list():
    """Four blocks of four, S₄ on each and on the blocks, is solvable; with 24⁵ elements that stays open."""
    q = np.arange(16)
    swap, turn = q.copy(), q.copy()
    swap[:2], turn[:4] = [1, 0], [1, 2, 3, 0]
    c = classify(MooreMachine([swap, turn, np.roll(q, 4)], range(16)), max_monoid=5_000)
    assert c.solvable.value is None
    assert c.solvable.method == "capped at 5,000 elements of a group that permutes 16 states"
