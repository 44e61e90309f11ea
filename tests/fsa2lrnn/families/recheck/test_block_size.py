"""What is said of submodules, algebras, factors and blocks is refused where it is more than is so."""

from tests.fsa2lrnn.families.conftest import rejected
from tests.fsa2lrnn.families.recheck.forgeries import CERTIFICATES, with_value


def test_modules_that_are_not_irreducible_are_refused():
    certificate = CERTIFICATES["chain, a field"]
    claims = {
        "polynomial": ([-1, 0, 0, 0, 1], "a polynomial is not the|does not satisfy"),
        "irreducible": (["degree", 0], "a polynomial of this degree or size needs another reason"),
        "generator": ([1, 0, 0, 0], "does not satisfy its polynomial"),
    }
    for field, (value, fault) in claims.items():
        rejected(with_value(certificate, ("kinds", 0, field), value), fault)
    rejected(with_value(certificate, ("kinds", 0, "covector"), [0, 0, 0, 0]), "the covector does not span the dual")
    rejected(with_value(certificate, ("kinds", 0, "element"), [[1, []]]), "the element does not kill the vector")


def test_a_size_beyond_the_bound_is_refused():
    for name, fault in [
        ("chain, a field", "states 0 and 1 are told apart"),
        ("chain, several levels", r"kind \d has more copies above level \d than are listed|are told apart"),
        ("chain, simple", "states . and . are told apart"),
    ]:
        certificate = CERTIFICATES[name]
        size = int(certificate["family"][6:-1])
        rejected({**certificate, "family": f"block({size + 1})"}, fault)


def test_ranks_of_heads_and_fields_are_checked():
    rejected({**CERTIFICATES["factors, enough"], "family": "householder(1)"}, "a letter needs 2 factors in a head")
    rejected(
        {**CERTIFICATES["chain, a field"], "field": "C"}, "comes after level 1, where it may be needed|are told apart"
    )
    rejected({**CERTIFICATES["blocks, a complex field"], "field": "R"}, "a block has size 2, more than 1")
    rejected({**CERTIFICATES["blocks, a real field"], "field": "Q"}, "a block has numbers that are not rational")
    rejected(
        {**CERTIFICATES["chain, simple"], "field": "F"}, "is not a field: rational, real and complex are Q, R and C"
    )
