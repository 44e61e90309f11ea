"""Single conditions of the checker of families at their edges."""

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import RejectedCertificate, recheck, represent
from fsa2lrnn.families.recheck.chains import _pushed, check_kind
from fsa2lrnn.families.recheck.checked_machine import read_machine
from fsa2lrnn.families.recheck.impossibilities import MatrixHypotheses, read_family

S3 = represent(zoo.group("S3"), "householder(1)").to_json()


def test_a_pushed_column_gives_the_product_of_the_composed_function():
    image, y, f = [1, 2, 0], [3, 5, 7], [0, 11, 13]
    z = _pushed(image, y)
    assert sum(f[1 + i] * x for i, x in enumerate(z)) == sum(f[image[s]] * x for s, x in enumerate(y))


def test_one_factor_without_reflections_commutes():
    assert read_family("householder(1,[0,1])") == MatrixHypotheses("commuting", "[0,1]", 1, 1)
    assert read_family("householder(1,[0,2])") == MatrixHypotheses("contracting", "[-1,1]", 2, 1)


def test_copies_of_factors_are_at_level_0_or_1():
    assert recheck(S3).startswith("impossible")
    copies = [{**copy, "level": 2} if copy["level"] == 1 else copy for copy in S3["copies"]]
    with pytest.raises(RejectedCertificate, match="neither at level 0 nor at 1"):
        recheck({**S3, "copies": copies})


def test_letters_of_a_kind_are_square():
    wide = S3["kinds"][1]
    letters = [[*wide["letters"][0], wide["letters"][0][0]], *wide["letters"][1:]]
    with pytest.raises(RejectedCertificate, match="a letter of a kind has not 2 rows"):
        recheck({**S3, "kinds": [S3["kinds"][0], {**wide, "letters": letters}]})


@pytest.mark.parametrize(("field", "weight"), [("R", 2), ("C", 2), ("Q", 2)])
def test_the_weight_of_a_kind_is_its_least_dimension(field, weight):
    """The plane of S3 is irreducible over every field; its maps are the multiples of 1, a real root of x − 1."""
    kind = check_kind(S3["kinds"][1], read_machine(S3["machine"]), field)
    assert (kind.commutant, kind.weight) == (1, weight)


def test_functions_of_the_state_have_a_value_at_every_state():
    certificate = represent(zoo.group("S3"), "block(2)").to_json()
    block = next(block for block in certificate["blocks"] if len(block["functions"]) > 1)
    block["functions"][1] = [*block["functions"][1], block["functions"][1][0]]
    with pytest.raises(RejectedCertificate, match="a function has values at other states"):
        recheck(certificate)


@pytest.mark.parametrize("sink", [-1, 3, True])
def test_the_state_at_zero_is_one_of_the_states(sink):
    certificate = represent(zoo.ab_star(), "householder").to_json()
    assert recheck(certificate).startswith("representable")
    with pytest.raises(RejectedCertificate, match="the sink is not a state"):
        recheck({**certificate, "sink": sink})
