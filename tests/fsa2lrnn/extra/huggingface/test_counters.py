"""Counters under which letters are transpositions, and groups along normal subgroups of prime index."""

from itertools import permutations

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.decomposition.groups import regular
from fsa2lrnn.decomposition.search import decompose
from fsa2lrnn.extra.huggingface.counters import counter_cover, is_register, series_cover, with_transpositions
from fsa2lrnn.extra.huggingface.transpositions import moves_by_transpositions

S3 = [list(row) for row in permutations(range(3))]
D5 = [[1, 2, 3, 4, 0], [0, 4, 3, 2, 1]]
F20 = [[1, 2, 3, 4, 0], [0, 2, 4, 1, 3]]  # x + 1 and 2x modulo 5
A5 = [[1, 2, 0, 3, 4], [1, 3, 2, 0, 4], [1, 4, 2, 3, 0]]


def shifts(n, *numbers):
    return [[(q + k) % n for q in range(n)] for k in numbers]


def covers(cover, maps):
    """Whether the states of a cover do what the states that they stand for do."""
    return np.array_equal(cover.image[cover.delta], np.array(maps)[:, cover.image])


@pytest.mark.parametrize("start", [0, 2])
@pytest.mark.parametrize(
    ("maps", "modulus"),
    [
        (shifts(3, 1), 2),
        (S3, 2),
        ([*S3, [0, 0, 0], [1, 1, 1], [2, 2, 2]], 2),
        (shifts(5, 1, 4), 4),
        (shifts(5, 0, 1, 2, 3, 4), 8),
        ([*shifts(5, 1, 2), *([q] * 5 for q in range(5))], 8),
        (shifts(7, 1), 8),
        (A5, 2),
    ],
)
def test_above_a_counter_letters_are_transpositions(maps, modulus, start):
    cover = counter_cover(np.array(maps), start)
    assert covers(cover, maps)
    assert cover.image[0] == start
    bits, y = cover.values[:, :-1], cover.values[:, -1]
    assert 2 ** bits.shape[1] == modulus
    moved = np.full((len(maps), modulus, len(maps[0])), -1)  # y's maps, by letter and counter
    numbers = bits @ 2 ** np.arange(bits.shape[1])
    for a, row in enumerate(cover.delta):
        moved[a, numbers, y] = y[row]
    known = [row for row in moved.reshape(-1, len(maps[0])) if (row >= 0).all()]
    assert len(known) == moved.shape[0] * modulus
    assert moves_by_transpositions(np.array(known), start) is not None


@pytest.mark.parametrize("maps", [D5, F20])
def test_what_no_counter_is_found_for(maps):
    assert counter_cover(np.array(maps), 0) is None


@pytest.mark.parametrize(
    ("maps", "sizes"),
    [(D5, [2, 5]), (F20, [2, 2, 5]), ([[1, 0, 2, 3], [1, 2, 3, 0]], [2, 3, 2, 2]), (shifts(6, 1), [2, 3])],
)
def test_a_solvable_group_comes_down_to_cyclic_ones(maps, sizes):
    cover = series_cover(np.array(maps), 0)
    assert covers(cover, maps)
    assert list(cover.sizes) == sizes
    assert len(cover.image) == len(regular(np.array(maps))[0])
    for i, size in enumerate(sizes):  # each letter adds a number that depends on lower coordinates alone
        for row in cover.delta:
            added = (cover.values[row, i] - cover.values[:, i]) % size
            below = np.column_stack([cover.values[:, :i], added])
            assert len(np.unique(below, axis=0)) == len(np.unique(below[:, :i], axis=0))


@pytest.mark.parametrize("maps", [A5, shifts(5, 1), [[0, 0, 1]]])
def test_groups_without_such_a_series(maps):
    assert series_cover(np.array(maps), 0) is None


@pytest.mark.parametrize(
    "machine",
    [
        zoo.group("S4"), zoo.group("A4"), zoo.group("D5"), zoo.group("A5"), zoo.all_maps(3), zoo.sum_mod(9),
        MooreMachine(F20, range(5)), zoo.mod_arith(3),
    ],
    ids=str,
)  # fmt: skip
def test_cascades(machine):
    cascade = with_transpositions(decompose(machine, max_block=5).cascade)
    assert all(
        is_register(component) or moves_by_transpositions(component.maps, component.start) is not None
        for component in cascade.components
    )
    word = np.random.default_rng(0).integers(len(machine.alphabet), size=50)
    letters = [machine.alphabet[a] for a in word]
    assert cascade.transduce(letters) == machine.transduce(letters)


def test_no_cascade_of_transpositions():
    cascade = decompose(zoo.length_mod(29), max_block=29).cascade
    assert with_transpositions(cascade) is None
