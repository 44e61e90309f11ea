"""Forged certificates of block sizes are refused: each field changed in every way that comes to mind."""

import copy
import json
import random
from collections import Counter

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import Rejected, recheck
from fsa2lrnn.families.minimal_block import minimal_block
from fsa2lrnn.families.minimal_block.householder import factor_bounds

from .conftest import machine_of


def _certificates():
    late = machine_of([[1, 3, 1, 1], [2, 2, 2, 0]])
    for name, machine, field in (
        ("chain, a field", zoo.sum_mod(5), "Q"),
        ("chain, quaternions", zoo.group("Q8"), "R"),
        ("chain, absolutely irreducible", zoo.group("S3"), "C"),
        ("chain, late copies", late, "R"),
        ("chain, several levels", zoo.even_pair(2), "R"),
        ("simple", zoo.tomita(4), "R"),
    ):
        yield name, minimal_block(machine, field).impossible
    for name, machine, field in (
        ("blocks, rational", zoo.group("S3"), "Q"),
        ("blocks, a real field", zoo.sum_mod(5), "R"),
        ("blocks, a complex field", zoo.group("Q8"), "C"),
    ):
        yield name, minimal_block(machine, field).to_json()
    yield "factors, too few", factor_bounds(zoo.group("S3")).impossible
    yield "factors, none does", factor_bounds(zoo.cerny(3)).impossible
    yield "factors, enough", factor_bounds(zoo.sum_mod(5)).to_json()


CERTIFICATES = dict(_certificates())


def is_so(certificate):
    """Whether what a certificate says of its machine is so, by asking again."""
    parts = certificate["machine"]
    machine = machine_of(parts["delta"])
    size = int(certificate["family"].split("(")[1].rstrip(")")) if "(" in certificate["family"] else None
    if certificate["family"].startswith("block"):
        answer = minimal_block(machine, certificate["field"])
        return size < answer.upper if certificate["verdict"] == "impossible" else size >= answer.lower
    bounds = factor_bounds(machine)
    if certificate["verdict"] == "impossible":
        return bounds.lower is None or (size is not None and (bounds.upper is None or size < bounds.upper))
    return size >= (bounds.lower or 0)


def leaves(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))


def with_value(certificate, path, value):
    broken = copy.deepcopy(certificate)
    at = broken
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return broken


def at_path(certificate, path):
    for key in path:
        certificate = certificate[key]
    return certificate


def mutants(certificate, rng, count):
    """Copies with one value changed: numbers moved, lists shortened, lengthened, reversed, emptied, values retyped."""
    paths = [path for path in leaves(certificate) if path and path[0] not in ("machine", "format", "version")]
    for path in rng.sample(paths, min(count, len(paths))):
        value = at_path(certificate, path)
        if isinstance(value, bool) or value is None:
            choices = [0, [], "1"]
        elif isinstance(value, int):
            choices = [value + 1, value - 1, -value, 0, 10**30, str(value) + "/7", True, None]
        elif isinstance(value, str):
            choices = ["Q", "R", "C", "0", "1/0", "", value + "1", None, "block(1)", "householder(1)", "impossible"]
        elif isinstance(value, list):
            choices = [value[:-1], [*value, *value[-1:]], value[::-1], [], value[1:], None]
        else:
            choices = [{}, {**value, "more": 1}, dict(list(value.items())[1:]), None]
        choice = rng.choice(choices)
        if choice != value or type(choice) is not type(value):
            yield path, with_value(certificate, path, choice)


def forge(name, rng, count):
    """How many mutants were refused, said the same or something else that is so, or were accepted though it is not."""
    certificate = CERTIFICATES[name]
    outcome = Counter()
    for path, broken in mutants(certificate, rng, count):
        try:
            recheck(broken)
        except Rejected:
            outcome["refused"] += 1
            continue
        is_right = is_so(broken)
        outcome["accepted and so"] += is_right
        outcome["accepted and false"] += not is_right
        assert is_right, (name, path)
    return outcome


@pytest.mark.parametrize("name", CERTIFICATES)
def test_what_is_made_is_accepted_and_survives_json(name):
    certificate = CERTIFICATES[name]
    assert recheck(json.loads(json.dumps(certificate, allow_nan=False))) == recheck(certificate)


@pytest.mark.parametrize("name", CERTIFICATES)
def test_forgeries_are_refused_or_true(name):
    outcome = forge(name, random.Random(0), 60)
    assert outcome["refused"] > 0.7 * outcome.total()


@pytest.mark.slow
def test_many_forgeries_are_refused_or_true():
    total = Counter()
    for seed in range(20):
        for name in CERTIFICATES:
            total += forge(name, random.Random(seed), 150)
    print(dict(total))
    assert total["accepted and false"] == 0
    assert total["refused"] > 0.9 * total.total() > 10_000


def rejected(certificate, fault):
    with pytest.raises(Rejected, match=fault):
        recheck(certificate)


def test_a_size_beyond_the_bound_is_refused():
    for name, fault in [
        ("chain, a field", "states 0 and 1 are told apart"),
        ("chain, several levels", r"kind \d has more copies above level \d than are listed|are told apart"),
        ("simple", "blocks of size 3 could hold all 3 functions"),
    ]:
        certificate = CERTIFICATES[name]
        size = int(certificate["family"][6:-1])
        rejected({**certificate, "family": f"block({size + 1})"}, fault)


def test_another_field_is_refused_where_the_weights_are_less():
    rejected({**CERTIFICATES["chain, a field"], "field": "C"}, "comes after level 1 without a reason|are told apart")
    rejected(
        {**CERTIFICATES["chain, quaternions"], "field": "C"}, "comes after level . without a reason|are told apart"
    )
    rejected({**CERTIFICATES["blocks, a complex field"], "field": "R"}, "a block has size 4, more than 2")
    rejected({**CERTIFICATES["blocks, a real field"], "field": "Q"}, "a block has numbers that are not rational")
    rejected({**CERTIFICATES["simple"], "field": "F"}, "is no field: rational, real and complex are Q, R and C")


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


def test_an_inner_product_that_exists_is_not_denied():
    certificate = copy.deepcopy(CERTIFICATES["factors, too few"])
    certificate["words"] = [[[0], [1], [0, 1]]] * len(certificate["kinds"])
    rejected(certificate, "kind 0 may have an inner product")


def test_ranks_of_heads_are_counted():
    rejected({**CERTIFICATES["factors, enough"], "family": "householder(1)"}, "a letter needs 2 factors in a head")
