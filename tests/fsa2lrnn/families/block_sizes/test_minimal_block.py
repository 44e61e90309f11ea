"""The least block size: named machines, counterexamples to shortcuts, other decisions, optimisation, budgets."""

import copy
import json
import random
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.families import RejectedCertificate, Witness, linear, recheck, represent
from fsa2lrnn.families.block_sizes import _kinds, minimal_block
from fsa2lrnn.families.block_sizes import minimal_block as least
from fsa2lrnn.families.block_sizes import needs as needed
from fsa2lrnn.families.block_sizes.block_search import BlockSearch
from fsa2lrnn.families.block_sizes.chain import chain_certificate
from fsa2lrnn.families.block_sizes.factor_bounds import factor_bounds
from fsa2lrnn.families.block_sizes.needs import DEGREES, any_depth, degree
from tests.fsa2lrnn.families.conftest import projective_line
from tests.fsa2lrnn.families.recheck.forgeries import CERTIFICATES
from tests.fuzz.mutate import places_in

from .conftest import (
    KNOWN,
    LARGE,
    PENCILS,
    code_lock,
    machine_of,
    metacyclic,
    random_machine,
    rank_machine,
)


def proved(machine, field):
    """The bounds, after the check of both."""
    answer = least(machine, field)
    answer.check()
    return answer.lower, answer.upper


@pytest.mark.parametrize("source", KNOWN)
def test_named_machines(source):
    machine = zoo.from_task(source)
    for field, size in zip("CRQ", KNOWN[source], strict=False):
        assert proved(machine, field) == (size, size)


@pytest.mark.slow
@pytest.mark.parametrize("source", LARGE)
def test_large_named_machines(source):
    machine = zoo.from_task(source)
    for field, size in zip("CRQ", LARGE[source], strict=True):
        assert proved(machine, field) == (size, size)


@pytest.mark.parametrize(("matrix", "sizes"), [(PENCILS[0], (4, 5, 5)), (PENCILS[1], (5, 5, 6))])
def test_pencils_whose_roots_are_not_rational_are_not_overlooked(matrix, sizes):
    machine = rank_machine(matrix)
    for field, size in zip("CRQ", sizes, strict=True):
        lower, upper = proved(machine, field)
        assert lower <= size <= upper


@pytest.mark.long
def test_code_locks_single_channels_and_indices_that_are_not_seen():
    machine = code_lock([2, 1, 1, 2, 1, 0, 2, 0, 0, 2, 1], 3, 3)
    assert [proved(machine, field) for field in "CRQ"] == [(11, 11), (22, 22), (22, 22)]
    machine = metacyclic(5, 8, 2)
    for field, size in zip("CRQ", (4, 8, 16), strict=True):
        lower, upper = proved(machine, field)
        assert lower <= size <= upper
    rng = random.Random(0)
    for _ in range(40):
        machine = random_machine(rng, 7)
        for family, field in (("diagonal[-1,1]", "R"), ("diagonal-complex", "C")):
            lower, upper = proved(machine, field)
            assert (lower == 1) == (upper == 1) == isinstance(represent(machine, family, short_words=False), Witness)


@pytest.mark.slow
def test_bounds_of_random_machines_meet_but_for_a_few():
    rng, gaps = random.Random(4), 0
    for _ in range(700):
        machine = random_machine(rng)
        for field in "CRQ":
            lower, upper = proved(machine, field)
            gaps += lower < upper
    assert gaps <= 18  # of 2,100


def test_fields_and_budgets():
    rng = random.Random(5)
    for _ in range(30):
        machine = random_machine(rng, 7)
        complex_, real, rational = (least(machine, field) for field in "CRQ")
        assert complex_.lower <= real.upper
        assert real.lower <= rational.upper
        assert real.lower <= 2 * complex_.upper
    machine = zoo.group("S4")
    _kinds.clear()
    answer = least(machine, "R", budget=0)
    assert (answer.lower, answer.upper, answer.note) == (
        1,
        23,
        ("looking for smaller blocks: the limit of 0 s has passed: give more seconds (--max-seconds)"),
    )
    answer.check()
    with pytest.raises(UnsupportedFormat, match="field 'F' is not known: choose Q"):
        least(zoo.parity(), "F")


@pytest.mark.parametrize(("source", "note"), [
    ("random_dfa(1400, 2, seed=0, minimal=true)", "1400 states are more than the"),
    ("dyck(2, 8)", "512 states are more than the"),
    ("sum_mod(199)", "199 letters on 199 states are more than steps of bounded time can take in"),
])  # fmt: skip
def test_a_thousand_states_or_many_letters_end_in_an_interval_at_once(source, note):
    machine = zoo.from_task(source).minimise()
    begun = time.process_time()
    answer = least(machine, "R")
    assert time.process_time() - begun < 5
    assert (answer.lower, answer.upper) == (1, machine.n_states - 1)
    assert answer.note.startswith(note)


@pytest.mark.long
def test_the_prime_does_not_matter(monkeypatch):
    machines, found = [rank_machine([["x", "1"], ["1", "x"]]), code_lock([1, 0, 1], 2, 3), metacyclic(7, 3, 2)], []
    for prime in (linear.PRIME, 67_108_859, 67_108_837, 67_108_819):
        monkeypatch.setattr(linear, "PRIME", prime)
        linear.one.cache_clear()
        _kinds.clear()
        found.append([(least(m, field).lower, least(m, field).upper) for m in machines for field in "CRQ"])
    linear.one.cache_clear()
    _kinds.clear()
    assert all(bounds == found[0] for bounds in found)


def test_what_the_checker_refuses_is_not_said(monkeypatch):
    """A lower bound one too high, and blocks that leave out a state."""

    def forged(*arguments):
        certificate = chain_certificate(*arguments)
        return {**certificate, "family": "block(9)"}

    monkeypatch.setattr(sys.modules[least.__module__], "chain_certificate", forged)
    answer = least(zoo.cerny(4))
    assert (answer.lower, answer.upper, answer.impossible, answer.value) == (1, 3, None, None)
    assert answer.note.startswith(
        "the certificate of the lower bound was refused (the two states are one, or the size is"
    )
    monkeypatch.undo()
    found = least(zoo.sum_mod(7), "R").blocks
    monkeypatch.setattr(BlockSearch, "blocks", lambda *_: [replace(block, shifts=()) for block in found])
    answer = least(zoo.sum_mod(7), "R")
    assert (answer.lower, answer.upper, answer.found, answer.value) == (2, 6, None, None)
    assert answer.note.startswith("the certificate of the upper bound was refused (a block has other letters)")


@pytest.mark.slow
def test_optimisation_finds_blocks_of_the_size_and_none_below():
    rng, best = random.Random(2), 1.0
    done = 0
    while done < 60:
        machine = random_machine(rng, 6)
        answer = least(machine, "R")
        if answer.value is None or machine.n_states < 3:
            continue
        done += 1
        p, q = answer.impossible["states"] if answer.impossible and "states" in answer.impossible else (0, 1)
        assert residual(machine, answer.value, p, q, 25) < 1e-8, machine.delta
        if answer.value > 1:
            best = min(best, residual(machine, answer.value - 1, p, q, 25))
    assert best > 1e-5


def residual(machine, b, p, q, starts):
    """The least residual found of: b functions beside the constant are closed under letters, and tell p from q. Gauss
    and Newton's method, damped, on orthonormal functions; what keeps p and q apart is part of the residual."""
    delta, n = machine.delta, machine.n_states
    rng, best = np.random.default_rng(b), np.inf

    def errors(x):
        basis, _ = np.linalg.qr(np.concatenate([np.ones((1, n)), x.reshape(b, n)]).T)
        moved = np.concatenate([basis[row] - basis @ (basis.T @ basis[row]) for row in delta], axis=0).ravel()
        apart = np.linalg.norm(basis[p] - basis[q])
        return np.append(moved, 10 * max(0.0, 0.15 - apart))

    for _ in range(starts):
        x, damping = rng.normal(size=b * n), 1e-2
        value = errors(x)
        for _ in range(120):
            steps = np.eye(b * n) * 1e-6
            slope = np.array([errors(x + step) - value for step in steps]).T / 1e-6
            change = np.linalg.solve(slope.T @ slope + damping * np.eye(b * n), slope.T @ value)
            after = errors(x - change)
            if after @ after < value @ value:
                x, value, damping = x - change, after, damping / 3
            else:
                damping *= 4
            if value @ value < 1e-18 or damping > 1e12:
                break
        best = min(best, float(np.linalg.norm(value)))
        if best < 1e-8:
            break
    return best


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
def test_certificates_survive_json_and_forgeries_are_refused_or_true(name):
    certificate = CERTIFICATES[name]
    assert recheck(json.loads(json.dumps(certificate, allow_nan=False))) == recheck(certificate)
    outcome = forge(name, random.Random(0), 60)
    assert outcome["refused"] > 0.7 * outcome.total()


@pytest.mark.parametrize(("task", "sizes"), [
    ("dyck(2,3)", (1, 1, 1)), ("even_pair(5)", (1, 1, 1)), ("group(Q8)", (1, 1, 1)), ("sum_mod(7)", (1, 2, 6)),
    ("mod_arith(3)", (1, 2, 2)), ("group(S4)", (1, 2, 2)), ("group(A5)", (2, 3, 4)), ("cerny(5)", (1, 2, 4)),
])  # fmt: skip
def test_blocks_of_named_machines(task, sizes):
    machine = zoo.from_task(task)
    found = tuple(any_depth(machine, field) for field in "CRQ")
    assert tuple(answer.value for answer in found) == sizes


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
    monkeypatch.setattr(needed, "MAX_SETS", 4)
    few = any_depth(zoo.cerny(6))
    assert few.lower <= 2 <= few.upper
    assert few.note
