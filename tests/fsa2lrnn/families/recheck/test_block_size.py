"""What is said of submodules, algebras, factors and blocks is refused where it is more than is so."""

import copy
from fractions import Fraction
from itertools import product

import pytest
from flint import fmpq

from fsa2lrnn.extra.block_size.commutant import hilbert_symbol
from fsa2lrnn.families.recheck.kinds import _hilbert_symbol
from tests.fsa2lrnn.families.conftest import rejected
from tests.fsa2lrnn.families.recheck.forgeries import CERTIFICATES, with_value


def test_modules_and_quaternions_that_are_not_irreducible_are_refused():
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
    certificate = CERTIFICATES["chain, quaternions"]
    (i,) = [i for i, kind in enumerate(certificate["kinds"]) if kind["commutant"]["pair"]]
    rejected(with_value(certificate, ("kinds", i, "commutant", "squares", 0), [1]), "a square of a quaternion is wrong")
    rejected(with_value(certificate, ("kinds", i, "commutant", "prime"), 3), "the quaternions may have zero divisors")
    rejected(with_value(certificate, ("kinds", i, "commutant", "prime"), 4), "a prime for quaternions .* is none")


@pytest.mark.parametrize("p", [2, 3, 5, 7])
def test_hilbert_symbols_are_those_of_the_library(p):
    for a, b in product([-7, -3, -2, -1, 2, 3, 5, 6], repeat=2):
        assert _hilbert_symbol(Fraction(a), Fraction(b, 4), p) == hilbert_symbol(fmpq(a), fmpq(b, 4), p)


def test_a_size_beyond_the_bound_is_refused():
    for name, fault in [
        ("chain, a field", "states 0 and 1 are told apart"),
        ("chain, several levels", r"kind \d has more copies above level \d than are listed|are told apart"),
        ("simple", "blocks of size 3 could hold all 3 functions"),
    ]:
        certificate = CERTIFICATES[name]
        size = int(certificate["family"][6:-1])
        rejected({**certificate, "family": f"block({size + 1})"}, fault)


def test_a_copy_that_comes_late_needs_its_reason():
    certificate = CERTIFICATES["chain, late copies"]
    (i,) = [i for i, copy_ in enumerate(certificate["copies"]) if copy_["late"] and copy_["late"]["parameters"]]
    late = certificate["copies"][i]["late"]
    for field, value, fault in [
        ("moves", [], "a copy comes after level"),
        ("moves", [[[1, []]]], "a move does not kill the parameters"),
        ("parameters", [], "there are other parameters than copies of the kind below"),
        ("element", [[1, []]], "no power of the element kills|kills more than a line"),
        ("function", late["parameters"][0], "a function is not in the submodule with its copy"),
    ]:
        rejected(with_value(certificate, ("copies", i, "late", field), value), fault)
    rejected(with_value(certificate, ("copies", i, "late"), None), "a copy comes after level . without a reason")
    for j, other in enumerate(certificate["copies"]):
        if not other["late"]:
            rejected(with_value(certificate, ("copies", j, "late"), late), "is not in the submodule|has a reason to be")


def test_inner_products_ranks_of_heads_and_fields_are_checked():
    certificate = copy.deepcopy(CERTIFICATES["factors, too few"])
    certificate["words"] = [[[0], [1], [0, 1]]] * len(certificate["kinds"])
    rejected(certificate, "kind 0 may have an inner product")
    rejected({**CERTIFICATES["factors, enough"], "family": "householder(1)"}, "a letter needs 2 factors in a head")
    rejected({**CERTIFICATES["chain, a field"], "field": "C"}, "comes after level 1 without a reason|are told apart")
    rejected(
        {**CERTIFICATES["chain, quaternions"], "field": "C"}, "comes after level . without a reason|are told apart"
    )
    rejected({**CERTIFICATES["blocks, a complex field"], "field": "R"}, "a block has size 4, more than 2")
    rejected({**CERTIFICATES["blocks, a real field"], "field": "Q"}, "a block has numbers that are not rational")
    rejected({**CERTIFICATES["simple"], "field": "F"}, "is not a field: rational, real and complex are Q, R and C")
