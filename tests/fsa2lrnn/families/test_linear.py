"""Exact rational matrices."""

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.errors import NotExact
from fsa2lrnn.families import linear

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


def test_a_row_outside_of_a_space_has_no_coordinates_there():
    with pytest.raises(NotExact, match="a row lies outside of the space that must hold it"):
        linear.coordinates(fmpq_mat(1, 2, [0, 1]), fmpq_mat(1, 2, [1, 0]))


def test_residues_are_residues_and_refuse_the_prime_in_a_denominator():
    half = linear.residues(fmpq_mat(1, 2, [fmpq(1, 2), -3]))
    assert (2 * half[0, 0] % linear.PRIME, half[0, 1]) == (1, linear.PRIME - 3)
    with pytest.raises(NotExact, match="divides a denominator"):
        linear.residues(fmpq_mat(1, 1, [fmpq(1, linear.PRIME)]))
