"""Exact rational matrices, modules of functions of the state, small groups by tables, and the points that they move."""

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.families import linear
from fsa2lrnn.families.groups import composition_factors, group_of, subgroups
from fsa2lrnn.families.householder import fewest_points, transpositions
from fsa2lrnn.families.modules import classes, functions_module, quotient, restricted, reverse, spin, words_of
from fsa2lrnn.testing.strategies import machines, permutation_machines

from .conftest import projective_line

numbers = st.integers(-4, 4)
matrices = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1, max_size=5)
)


@given(matrices)
def test_kernels_and_row_spaces_are_what_they_say(rows):
    matrix = linear.matrix(rows, len(rows[0]))
    reduced, kernel = linear.row_space(matrix), linear.left_kernel(matrix)
    assert reduced.nrows() == linear.rank(matrix) == np.linalg.matrix_rank(np.array(rows))
    assert kernel.nrows() == len(rows) - reduced.nrows() == linear.rank(kernel)
    assert not any((kernel * matrix).entries())
    assert linear.columns_of(reduced, linear.pivots(reduced)) == linear.identity(reduced.nrows())
    coordinates = linear.coordinates(linear.rows_of(matrix, [0]), reduced)
    assert coordinates * reduced == linear.rows_of(matrix, [0])


@given(matrices)
def test_primitive_rows_are_integers_without_a_common_divisor(rows):
    matrix = linear.matrix(rows, len(rows[0])) * fmpq(6, 35)
    for row, whole in zip(matrix.tolist(), linear.primitive(matrix).tolist(), strict=True):
        found = [int(x.p) for x in whole]
        assert all(x.q == 1 for x in whole)
        assert np.gcd.reduce(found) in (0, 1)
        assert all(x * found[j] == row[j] * found[i] for i, x in enumerate(row) for j in range(len(row)))
    together = linear.together_primitive(matrix)
    assert np.gcd.reduce([int(x.p) for x in together.entries()]) in (0, 1)


def test_what_lies_outside_of_a_space_or_a_prime_field_is_refused():
    with pytest.raises(NotExact, match="a row lies outside of the space that must hold it"):
        linear.coordinates(fmpq_mat(1, 2, [0, 1]), fmpq_mat(1, 2, [1, 0]))
    half = linear.residues(fmpq_mat(1, 2, [fmpq(1, 2), -3]))
    assert (2 * half[0, 0] % linear.PRIME, half[0, 1]) == (1, linear.PRIME - 3)
    with pytest.raises(NotExact, match="divides a denominator"):
        linear.residues(fmpq_mat(1, 1, [fmpq(1, linear.PRIME)]))


def as_row(values):
    return fmpq_mat(1, len(values) - 1, [int(v - values[0]) for v in values[1:]])


@given(machines(6, 2).filter(lambda m: m.n_states > 1), st.data())
def test_letters_act_by_composition(machine, data):
    n = machine.n_states
    f = np.array(data.draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n)))
    module = functions_module(machine.delta)
    for step, letter in zip(machine.delta, module.letters, strict=True):
        assert as_row(f) * letter == as_row(f[step])
    word = tuple(data.draw(st.lists(st.integers(0, len(machine.delta) - 1), max_size=4)))
    moved = f
    for a in word:
        moved = moved[machine.delta[a]]
    assert as_row(f) * module.word(word) == as_row(moved)
    element = ((2, word), (-3, ()))
    assert module.dual.element(reverse(element)) == module.element(element).transpose()
    assert module.nullity(element) >= module.dimension - linear.rank(module.element(element))


@given(machines(6, 2).filter(lambda m: m.n_states > 1), st.data())
def test_what_a_function_generates_and_the_quotient_by_it(machine, data):
    n, module = machine.n_states, functions_module(machine.delta)
    f = as_row(np.array(data.draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n))))
    spun = spin(module, f)
    for word, row in zip(words_of(spun.path), spun.rows.tolist(), strict=True):
        assert (f * module.word(word)).tolist()[0] == row
    letters = restricted(module, spun.rows)
    assert letters is not None
    assert all(b * spun.rows == spun.rows * a for a, b in zip(module.letters, letters, strict=True))
    below = quotient(module, linear.row_space(spun.rows))
    assert not any((spun.rows * below.down).entries())
    assert below.lift * below.down == linear.identity(below.module.dimension)
    for a, b in zip(module.letters, below.module.letters, strict=True):
        assert a * below.down == below.down * b


def test_rows_that_are_no_submodule_are_found_out_and_states_are_alike_where_functions_agree():
    module = functions_module(zoo.cerny(4).delta)
    assert restricted(module, fmpq_mat(1, 3, [1, 0, 0])) is None
    assert classes(fmpq_mat(2, 3, [1, 0, 1, 0, 0, 0])) == [0, 1, 0, 1]
    assert classes(fmpq_mat(0, 2)) == [0, 0, 0]


def group(name):
    return group_of(zoo.group(name).delta)[0]


@pytest.mark.parametrize(
    ("name", "order", "n_normal", "n_all"),
    [("S3", 6, 3, 6), ("S4", 24, 4, 30), ("A4", 12, 3, 10), ("A5", 60, 2, 59), ("Q8", 8, 6, 6), ("D4", 8, 6, 10)],
)
def test_numbers_of_subgroups(name, order, n_normal, n_all):
    found = group(name)
    every = subgroups(found, 1_000)
    assert (found.order, len(every)) == (order, n_all)
    assert all(order % int(mask.sum()) == 0 for mask in every)
    assert len(normal_subgroups(found)) == n_normal
    assert subgroups(found, n_all - 1) is None


def normal_subgroups(found):
    every = subgroups(found, 1_000)
    return [mask for mask in every if all(_conjugate(found, mask, g) for g in range(found.order))]


def _conjugate(found, mask, g):
    members = np.flatnonzero(mask)
    return bool(mask[found.table[found.table[found.inverse[g], members], g]].all())


@pytest.mark.parametrize("name", ["S4", "Q8", "A4"])
def test_tables_and_quotients_are_groups(name):
    found = group(name)
    for part in (found, *(found.quotient(mask) for mask in normal_subgroups(found))):
        t = part.table
        assert np.array_equal(t[0], np.arange(part.order))
        assert np.array_equal(t[t], t[:, t])  # (g h) k = g (h k)
        assert not t[np.arange(part.order), part.inverse].any()


@pytest.mark.parametrize(
    ("permutations", "factors"),
    [
        ([[1, 2, 3, 4, 0], [1, 0, 2, 3, 4]], {"A5": 1, "Z2": 1}),
        (projective_line(7), {"PSL(2,7)": 1}),
        (zoo.group("Z60").delta, {"Z2": 2, "Z3": 1, "Z5": 1}),
        ([[1, 2, 3, 4, 0, 5], [0, 1, 2, 4, 5, 3]], {"A6": 1}),
        (projective_line(11), {"simple of order 660": 1}),
    ],
)
def test_composition_factors(permutations, factors):
    found, elements = group_of(np.array(permutations))
    assert found.order == len(elements)
    assert composition_factors(found) == factors
    assert group_of(np.array(permutations), found.order - 1) is None


def assert_moved(points, permutations):
    assert points.tells_all_apart
    for row, moves in zip(permutations, points.moves, strict=True):
        assert sorted(moves) == list(range(len(moves)))
        assert np.array_equal(points.vectors[row][:, moves], points.vectors)


@pytest.mark.slow
@given(permutation_machines(max_states=6))
def test_vectors_move_as_states_do(machine):
    points = fewest_points(machine.delta, False)
    assert points is None or len(points.vectors) == machine.n_states
    if points is not None:
        assert_moved(points, machine.delta)
        assert points.factors.tolist() == [len(transpositions(moves)) for moves in points.moves]


def test_resets_ask_for_few_points():
    """All states at numbers on a single point, where nothing but resets moves them; large groups are not tried."""
    one, cycle = fewest_points(np.arange(5)[None], True), fewest_points(zoo.sum_mod(7).delta, True)
    assert one is not None
    assert cycle is not None
    assert one.moves.tolist() == [[0]]
    assert len(np.unique(one.vectors)) == 5
    assert cycle.moves.shape[1] == 7
    assert fewest_points(zoo.sum_mod(211).delta, False) is None
