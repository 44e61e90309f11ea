"""The checker's own arithmetic of number fields and linear algebra, beside flint's, numpy's and floating point."""

import numpy as np
import pytest
from flint import fmpq, fmpq_mat, fmpz, fmpz_poly
from hypothesis import assume, given
from hypothesis import strategies as st

from fsa2lrnn.families.recheck.machine import CheckedMachine
from fsa2lrnn.families.recheck.modules import _transposed, applied, rank_of, spun, state_functions, times
from fsa2lrnn.families.recheck.polynomials import _cyclotomic, check_irreducible, is_prime, modulo, sum_of_signs
from fsa2lrnn.families.recheck.reading import RejectedCertificate
from fsa2lrnn.testing.strategies import machines

monic = st.lists(st.integers(-6, 6), min_size=1, max_size=6).map(lambda c: [*c, 1])
REASONS = [["degree", 0], *(["cyclotomic", m] for m in (1, 3, 4, 5, 7, 8, 12)), *(["prime", m] for m in range(9, 40))]


def is_irreducible(polynomial):
    return sum(exponent for _, exponent in fmpz_poly(polynomial).factor()[1]) == 1


@pytest.mark.parametrize("m", [*range(1, 40), 105, 210, 385])
def test_cyclotomic_polynomials_are_flints(m):
    assert fmpz_poly(_cyclotomic(m)) == fmpz_poly.cyclotomic(m)


@given(monic, st.sampled_from(REASONS))
def test_no_reason_is_taken_for_a_reducible_polynomial(polynomial, reason):
    try:
        check_irreducible(polynomial, reason)
    except RejectedCertificate:
        return
    assert is_irreducible(polynomial)


def test_reasons_are_taken_where_they_hold():
    check_irreducible([-2, 0, 0, 1], ["degree", 0])
    check_irreducible([1, 1, 1, 1, 1], ["cyclotomic", 5])
    check_irreducible([1, 0, 1], ["prime", 4])  # 17
    for reason in (["degree", 0], ["cyclotomic", 4], ["prime", 10], ["prime", 1]):
        with pytest.raises(RejectedCertificate):
            check_irreducible([4, 0, 0, 0, 1], reason)  # (x² + 2x + 2)(x² − 2x + 2)


@given(st.integers(-10, 10**6) | st.integers(10**15, 10**24))
def test_primes_are_flints(number):
    assert is_prime(number) == (number > 1 and fmpz(number).is_prime())


def test_strong_pseudoprimes_are_no_primes_and_beyond_the_bound_nothing_is():
    for composite in (3_215_031_751, 3_474_749_660_383, 341_550_071_728_321, 3_825_123_056_546_413_051):
        assert not is_prime(composite)  # to the first 4, 6, 7 and 9 primes as bases
    assert is_prime(2**61 - 1)
    assert not is_prime(2**89 - 1)  # a prime, too large to tell


@given(monic, st.integers(-4, 4), st.integers(-4, 4))
def test_signs_at_real_roots_are_those_of_floating_point(polynomial, a, b):
    assume(is_irreducible(polynomial) and (a or b))
    assume(len(polynomial) > 2 or a - b * polynomial[0] != 0)
    roots = np.roots(polynomial[::-1])
    real = roots[abs(roots.imag) < 1e-9].real
    assert sum_of_signs(polynomial, [a, b]) == np.sign(a + b * real).sum()


@given(
    monic, st.lists(st.integers(-9, 9), min_size=6, max_size=6), st.lists(st.integers(-9, 9), min_size=6, max_size=6)
)
def test_products_are_taken_modulo_the_polynomial(polynomial, x, y):
    k = len(polynomial) - 1
    product = modulo([0] * (2 * k - 1), [(x[:k], y[:k])], polynomial)
    expected = (fmpz_poly(x[:k]) * fmpz_poly(y[:k])) % fmpz_poly(polynomial)
    assert fmpz_poly(product) == expected


small = st.integers(-2, 2)


def exactly(elements, n):
    return st.lists(elements, min_size=n, max_size=n)


square = st.integers(1, 5).map(lambda d: exactly(exactly(small, d), d))
tables = square.flatmap(lambda table: st.integers(1, 2).flatmap(lambda n: exactly(table, n)))


def rows_of(table):
    return [{j: x for j, x in enumerate(row) if x} for row in table]


@given(tables, st.data())
def test_words_act_from_the_right_one_letter_after_the_other(matrices, data):
    letters, d = [rows_of(table) for table in matrices], len(matrices[0])
    row = data.draw(exactly(small, d))
    word = data.draw(st.lists(st.integers(0, len(letters) - 1), max_size=4))
    expected = np.array(row)
    for a in word:
        expected = expected @ np.array(matrices[a])
    assert applied([(2, word), (-1, [])], row, letters) == (2 * expected - row).tolist()
    assert times(row, _transposed(letters[0])) == (np.array(matrices[0]) @ row).tolist()


@given(tables)
def test_ranks_are_those_over_the_rationals(matrices):
    matrix = fmpq_mat([[fmpq(x, 3) for x in row] for row in matrices[0]])
    assert rank_of(matrices[0], len(matrices[0])) == matrix.rank()


@given(tables, st.data())
def test_what_a_row_generates_has_the_dimension_of_its_images(matrices, data):
    d = len(matrices[0])
    row = data.draw(exactly(small, d))
    images, whole = [np.array(row)], np.array([row])
    for _ in range(d):
        images = [image @ np.array(matrix) for image in images for matrix in matrices]
        whole = np.vstack([whole, *images])
        images = list(np.unique(images, axis=0))
    assert spun([row], [rows_of(table) for table in matrices]) == fmpq_mat(whole.astype(object).tolist()).rank()


@given(machines(5, 2), st.data())
def test_functions_of_the_state_move_as_the_letters_do(machine, data):
    f = data.draw(exactly(small, machine.n_states))
    letters = state_functions(CheckedMachine(machine.delta.tolist(), list(machine.outputs)))
    for letter, step in zip(letters, machine.delta, strict=True):
        moved = [f[q] for q in step]
        assert times([x - f[0] for x in f[1:]], letter) == [x - moved[0] for x in moved[1:]]
