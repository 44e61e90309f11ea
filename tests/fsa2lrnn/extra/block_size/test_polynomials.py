"""Irreducible polynomials, their real roots and signs there."""

import numpy as np
import pytest
from flint import fmpq, fmpz_poly
from hypothesis import assume, given
from hypothesis import strategies as st

from fsa2lrnn.extra.block_size.polynomials import negative_at_real_roots, real_roots, why_irreducible

monic = st.lists(st.integers(-6, 6), min_size=1, max_size=6).map(lambda c: (*c, 1))


@given(monic)
def test_no_reducible_polynomial_has_a_reason(polynomial):
    is_irreducible = sum(e for _, e in fmpz_poly(list(polynomial)).factor()[1]) == 1
    reason = why_irreducible(polynomial)
    assert is_irreducible or reason is None
    assert reason is not None or not is_irreducible or len(polynomial) > 4


@pytest.mark.parametrize("m", [7, 12, 20])
def test_cyclotomic_polynomials_are_named(m):
    polynomial = tuple(int(c) for c in fmpz_poly.cyclotomic(m).coeffs())
    assert why_irreducible(polynomial)[1] in (0, m)


@given(monic, st.integers(-4, 4), st.integers(-4, 4))
def test_real_roots_and_signs_are_those_of_floating_point(polynomial, a, b):
    assume(why_irreducible(polynomial) is not None and (a or b))
    assume(len(polynomial) > 2 or a + b * -polynomial[0] != 0)
    roots = np.roots(polynomial[::-1])
    real = roots[abs(roots.imag) < 1e-9].real
    assert real_roots(polynomial) == len(real)
    assert negative_at_real_roots((fmpq(a), fmpq(b)), polynomial) == (a + b * real < 0).sum()
