"""Lanes and matrices: a changed one is refused unless the layer still works."""

import cmath
import copy
import itertools
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpz_poly
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.families import lanes
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.families.recheck.polynomials import MAX_ORDER
from fsa2lrnn.families.recheck.witnesses import _is_zero
from tests.fsa2lrnn.families.certificates import certificates
from tests.fsa2lrnn.families.conftest import CASES, accepted, changed, leaves, parent, rejected


def works(certificate):
    """Whether the numbers of a witness are those of a layer, in floating point and by the definition."""
    delta = certificate["machine"]["delta"]
    n, points = len(delta[0]), []
    if "matrix" in certificate:
        A, x, v = (
            np.array([[float(Fraction(text)) for text in row] for row in certificate[name]])
            for name in ("matrix", "vectors", "shifts")
        )
        moves = all(np.allclose(A @ x[q] + v[a], x[delta[a][q]]) for a in range(len(delta)) for q in range(n))
        return moves and len(np.unique(x, axis=0)) == n
    for lane in certificate["lanes"]:
        zeta = cmath.exp(2j * cmath.pi / lane["order"])
        f, v = (
            [sum(float(Fraction(c)) * zeta**i for i, c in enumerate(row)) for row in lane[name]]
            for name in ("values", "shifts")
        )
        chi = [0 if k is None else zeta ** (k % lane["order"]) for k in lane["exponents"]]
        if any(abs(chi[a] * f[q] + v[a] - f[delta[a][q]]) > 1e-9 for a in range(len(delta)) for q in range(n)):
            return False
        if FORCED[certificate["family"]].letters == "input-independent" and len(set(lane["exponents"])) > 1:
            return False
        points.append(f)
    return all(any(abs(f[p] - f[q]) > 1e-9 for f in points) for p, q in itertools.combinations(range(n), 2))


@given(certificates("representable"), st.data())
def test_a_changed_number_is_refused_unless_the_layer_still_works(certificate, data):
    numbers = [
        path
        for path in leaves(certificate)
        if path[0] in ("lanes", "matrix", "vectors", "shifts") and isinstance(parent(certificate, path)[path[-1]], str)
    ]
    by = data.draw(st.sampled_from([Fraction(1), Fraction(-1), Fraction(2), Fraction(1, 3)]))
    broken = changed(certificate, data.draw(st.sampled_from(numbers)), lambda text: str(Fraction(text) + by))
    assert accepted(broken) == works(broken)


@given(certificates("representable").filter(lambda certificate: "lanes" in certificate), st.data())
def test_a_changed_exponent_is_refused_unless_the_layer_still_works(certificate, data):
    i = data.draw(st.integers(0, len(certificate["lanes"]) - 1))
    lane = certificate["lanes"][i]
    a = data.draw(st.integers(0, len(lane["exponents"]) - 1))
    lane["exponents"][a] = data.draw(st.none() | st.integers(-1, lane["order"]))
    assert accepted(certificate) == works(certificate)


@given(certificates("representable").filter(lambda certificate: "lanes" in certificate), st.data())
def test_a_changed_order_is_refused_unless_the_layer_still_works(certificate, data):
    i = data.draw(st.integers(0, len(certificate["lanes"]) - 1))
    certificate["lanes"][i]["order"] = data.draw(st.integers(1, 12))
    if accepted(certificate):
        assert works(certificate)


@given(certificates("representable").filter(lambda certificate: "lanes" in certificate), st.data())
def test_a_dropped_lane_is_refused(certificate, data):
    del certificate["lanes"][data.draw(st.integers(0, len(certificate["lanes"]) - 1))]
    rejected(certificate, "two states have the same vector")


@pytest.mark.parametrize("order", [0, -3, 5_001, 10**9, 10**30])
def test_an_order_beyond_reason_is_refused_at_once(order):
    certificate = changed(CASES["sum_mod(3) diagonal-complex"], ("lanes", 0, "order"), lambda _: order)
    rejected(certificate, f"{order} is no order of a root of unity, or beyond 5000")
    assert MAX_ORDER == lanes.MAX_ORDER


def test_numbers_of_a_lane_are_written_in_one_way():
    certificate = copy.deepcopy(CASES["sum_mod(3) diagonal-complex"])
    (lane,) = certificate["lanes"]
    lane["values"] = [["0"], ["1"], ["0", "0", "0", "1"]]  # ζ³ is 1
    rejected(certificate, r"a number has more than φ\(3\) = 2 coefficients")


@pytest.mark.parametrize("order", [1, 2, 3, 4, 6, 12, 30, 105])
def test_sums_of_roots_of_unity_vanish_where_the_cyclotomic_polynomial_divides_them(order):

    primes = [p for p in range(2, order + 1) if order % p == 0 and all(p % d for d in range(2, p))]
    rng, cyclotomic = np.random.default_rng(order), fmpz_poly.cyclotomic(order)
    for _ in range(20):
        quotient = fmpz_poly([int(x) for x in rng.integers(-2, 3, 4)])
        for polynomial in (quotient * cyclotomic, quotient * cyclotomic + 1, quotient):
            terms: dict[int, int] = {}
            for i, x in enumerate(polynomial.coeffs()):
                terms[i % order] = terms.get(i % order, 0) + int(x)
            assert _is_zero([(terms, 1)], order, primes) == (polynomial % cyclotomic == 0)
