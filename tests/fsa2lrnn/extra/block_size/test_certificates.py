"""Forged certificates of block sizes are refused: each field changed in every way that comes to mind."""

import json
import random
from collections import Counter

import pytest

from fsa2lrnn.extra.block_size import minimal_block
from fsa2lrnn.extra.block_size.householder import factor_bounds
from fsa2lrnn.families import RejectedCertificate, recheck
from tests.fsa2lrnn.families.forgeries import CERTIFICATES, with_value

from .conftest import machine_of


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
        except RejectedCertificate:
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
