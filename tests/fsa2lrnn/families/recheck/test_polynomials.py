"""The checker's own arithmetic of number fields, beside flint's and floating point."""

import numpy as np
import pytest
from flint import fmpz, fmpz_poly
from hypothesis import assume, given
from hypothesis import strategies as st

from fsa2lrnn.families.recheck.polynomials import _cyclotomic, check_irreducible, is_prime, modulo, sum_of_signs
from fsa2lrnn.families.recheck.reading import RejectedCertificate

monic = st.lists(st.integers(-6, 6), min_size=1, max_size=6).map(lambda c: [*c, 1])
six = st.lists(st.integers(-9, 9), min_size=6, max_size=6)
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
