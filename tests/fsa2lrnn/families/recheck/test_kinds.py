"""Modules that are not irreducible, and algebras that are not what they are said to be, are refused."""

from fractions import Fraction
from itertools import product

import pytest
from flint import fmpq

from fsa2lrnn.extra.block_size.commutant import hilbert_symbol
from fsa2lrnn.families.recheck.kinds import _hilbert_symbol
from tests.fsa2lrnn.families.conftest import rejected
from tests.fsa2lrnn.families.forgeries import CERTIFICATES, with_value


def test_kinds_that_are_not_irreducible_are_refused():
    certificate = CERTIFICATES["chain, a field"]
    kind = certificate["kinds"][0]
    claims = {
        "polynomial": ([-1, 0, 0, 0, 1], "a polynomial is not the|does not satisfy"),
        "irreducible": (["degree", 0], "a polynomial of this degree or size needs another reason"),
        "generator": ([1, 0, 0, 0], "does not satisfy its polynomial"),
        "pair": ([kind["commutant"]["generator"]] * 2, "there are not two quaternions|a root that is not real"),
    }
    for field, (value, fault) in claims.items():
        rejected(with_value(certificate, ("kinds", 0, "commutant", field), value), fault)
    rejected(with_value(certificate, ("kinds", 0, "covector"), [0, 0, 0, 0]), "the covector does not span the dual")
    rejected(with_value(certificate, ("kinds", 0, "element"), [[1, []]]), "the element does not kill the vector")


def test_quaternions_with_zero_divisors_are_refused():
    certificate = CERTIFICATES["chain, quaternions"]
    (i,) = [i for i, kind in enumerate(certificate["kinds"]) if kind["commutant"]["pair"]]
    rejected(with_value(certificate, ("kinds", i, "commutant", "squares", 0), [1]), "a square of a quaternion is wrong")
    rejected(with_value(certificate, ("kinds", i, "commutant", "prime"), 3), "the quaternions may have zero divisors")
    rejected(with_value(certificate, ("kinds", i, "commutant", "prime"), 4), "a prime for quaternions .* is none")


@pytest.mark.parametrize("p", [2, 3, 5, 7])
def test_hilbert_symbols_are_those_of_the_library(p):
    for a, b in product([-7, -3, -2, -1, 2, 3, 5, 6], repeat=2):
        assert _hilbert_symbol(Fraction(a), Fraction(b, 4), p) == hilbert_symbol(fmpq(a), fmpq(b, 4), p)
