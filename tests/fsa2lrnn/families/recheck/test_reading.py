"""Numbers are exact, of their type, and don't grow without end."""

import copy

import pytest

from tests.fsa2lrnn.families.conftest import CASES, OTHERS, accepted, at_path, changed, leaves, rejected


def test_a_number_that_would_be_rounded_is_refused():
    certificate = changed(CASES["parity diagonal[-1,1]"], ("lanes", 0, "values", 1, 0), lambda text: int(text) + 0.5)
    rejected(certificate, "neither an integer nor a text")
    certificate = changed(CASES["parity diagonal[0,1]"], ("terms", 0, "coefficient"), lambda _: "1e9")
    rejected(certificate, "malformed")


def test_numbers_whose_sums_would_grow_without_end_are_refused():
    certificate = copy.deepcopy(CASES["ab_star lti"])
    (term, *_) = certificate["terms"]
    primes = [p for p in range(10**4, 10**4 + 9_000) if all(p % d for d in range(2, 140))]
    certificate["terms"] = [{**term, "coefficient": f"1/{p}"} for p in primes]
    rejected(certificate, "a common denominator has more than 10000 bits")


@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_numbers_of_another_type_are_refused(name):
    certificate = {**CASES, **OTHERS}[name]
    for path in leaves(certificate):
        old = at_path(certificate, path)
        if type(old) is not int or path[:2] in (("machine", "alphabet"), ("machine", "outputs")):
            continue
        for other in [float(old), str(old), *([bool(old)] if old in (0, 1) else [])]:
            assert not accepted(changed(certificate, path, lambda _, other=other: other)), (path, other)
