"""Certificates of block sizes and of depth."""

import copy
import json
import random
from collections import Counter

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size import depth, minimal_block
from fsa2lrnn.extra.block_size.depth import DEGREES, any_depth, degree
from fsa2lrnn.extra.block_size.householder import factor_bounds
from fsa2lrnn.families import RejectedCertificate, recheck
from tests.fsa2lrnn.families.conftest import projective_line
from tests.fsa2lrnn.families.recheck.forgeries import CERTIFICATES
from tests.fuzz.mutate import places_in

from .conftest import machine_of, random_machine


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


def mutants(certificate, rng, count):
    """Copies with one value changed: numbers moved, lists shortened, lengthened, reversed, emptied, values retyped."""
    same = {name: certificate[name] for name in ("machine", "format", "version")}
    changing = {name: value for name, value in certificate.items() if name not in same}
    n = len(list(places_in(changing)))
    for i in rng.sample(range(n), min(count, n)):
        broken = copy.deepcopy(changing)
        holder, key = list(places_in(broken))[i]
        value = holder[key]
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
            holder[key] = choice
            yield {**same, **broken}


def forge(name, rng, count):
    """How many mutants were refused, said the same or something else that is so, or were accepted though it is not."""
    certificate = CERTIFICATES[name]
    outcome = Counter()
    for broken in mutants(certificate, rng, count):
        try:
            recheck(broken)
        except RejectedCertificate:
            outcome["refused"] += 1
            continue
        is_right = is_so(broken)
        outcome["accepted and so"] += is_right
        outcome["accepted and false"] += not is_right
        assert is_right, (name, broken)
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


@pytest.mark.parametrize(
    ("task", "sizes"),
    [
        ("dyck(2,3)", (1, 1, 1)),
        ("even_pair(5)", (1, 1, 1)),
        ("group(Q8)", (1, 1, 1)),
        ("sum_mod(7)", (1, 2, 6)),
        ("mod_arith(3)", (1, 2, 2)),
        ("group(S4)", (1, 2, 2)),
        ("group(A5)", (2, 3, 4)),
        ("cerny(5)", (1, 2, 4)),
    ],
)
def test_named_machines(task, sizes):
    machine = zoo.from_task(task)
    found = tuple(any_depth(machine, field) for field in "CRQ")
    assert tuple(answer.value for answer in found) == sizes


@pytest.mark.parametrize("task", ["dyck(1,4)", "contains(abaab)", "elevator(6)", "ab_star"])
def test_machines_without_groups_take_channels(task):
    found = any_depth(zoo.from_task(task), "Q")
    assert (found.factors, found.value) == ((), 1)


def test_one_layer_and_projective_lines():
    rng = random.Random(0)
    for _ in range(15):
        machine = random_machine(rng, 6)
        for field in "CRQ":
            assert any_depth(machine, field).lower <= max(1, minimal_block(machine, field).upper)
    seven = any_depth(machine_of(projective_line(7)), "R")
    assert (seven.value, seven.factors) == (6, ("PSL(2,7)",))
    eleven = any_depth(machine_of(projective_line(11)), "R")
    assert (eleven.lower, eleven.upper) == (3, 11)
    assert eleven.note == "the degrees of the simple of order 660 are not in the table"


def test_degrees_and_corners():
    for name, primes in {"A5": (3, 5), "PSL(2,7)": (3, 7), "A6": (3, 5)}.items():
        d = DEGREES[name]
        assert d["C"] <= d["R"] <= d["Q"]
        assert d["Q"] >= max(primes) - 1
    assert degree("Z2", "Q") == (1, 1)
    turn = [1, 2, 3, 4, 0, 5, 6]
    fold = [0, 1, 2, 3, 4, 0, 1]
    move = [5, 6, 2, 3, 4, 5, 6]
    found = any_depth(machine_of(np.array([turn, fold, move])), "Q")
    assert "Z5" in found.factors
    assert found.value == 4


def test_groups_beyond_the_limits_leave_an_interval(monkeypatch):
    machine = machine_of([[*range(1, 8), 0], [1, 0, *range(2, 8)]])  # S8
    found = any_depth(machine)
    assert (found.lower, found.upper) == (1, 7)
    assert found.note == "the group of an image of 8 states is too large to be listed"
    monkeypatch.setattr(depth, "MAX_SETS", 4)
    few = any_depth(zoo.cerny(6))
    assert few.lower <= 2 <= few.upper
    assert few.note
