"""The least block size: named machines, counterexamples to shortcuts, other decisions, optimisation, budgets."""

import random
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.block_size import MAX_STATES, _analysis
from fsa2lrnn.extra.block_size import minimal_block as least
from fsa2lrnn.extra.block_size.certificates import simple_certificate
from fsa2lrnn.extra.block_size.search import BlockSearch
from fsa2lrnn.families import Witness, linear, recheck, represent

from .conftest import (
    KNOWN,
    LARGE,
    PENCILS,
    QUATERNIONIC,
    central_product,
    code_lock,
    metacyclic,
    random_machine,
    rank_machine,
)

PRIMES = (67_108_859, 67_108_837, 67_108_819, 66_999_997, 33_554_393, 16_777_213)


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


def test_code_locks_single_channels_and_indices_that_are_not_seen():
    machine = code_lock([2, 1, 1, 2, 1, 0, 2, 0, 0, 2, 1], 3, 3)
    assert [proved(machine, field) for field in "CRQ"] == [(11, 11), (22, 22), (22, 22)]
    machine = metacyclic(5, 8, 2)
    for field, size in zip("CRQ", (4, 8, 16), strict=True):
        lower, upper = proved(machine, field)
        assert lower <= size <= upper
    compare_with_channels(random.Random(0), 40)


@pytest.mark.parametrize("name", ["Dic3", "Dic4", "SL(2,3)"])
def test_quaternionic_groups(name):
    sizes = {"Dic3": (2, 2, 2), "Dic4": (2, 4, 8), "SL(2,3)": (2, 4, 4)}[name]
    assert tuple(proved(QUATERNIONIC[name](), field)[0] for field in "CRQ") == sizes


def compare_with_channels(rng, count):
    for _ in range(count):
        machine = random_machine(rng, 7)
        for family, field in (("diagonal[-1,1]", "R"), ("diagonal-complex", "C")):
            lower, upper = proved(machine, field)
            assert (lower == 1) == (upper == 1) == isinstance(represent(machine, family, short_words=False), Witness)


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
    """The least residual found of: b functions beside the constant are closed under letters, and tell p from q.

    Gauss and Newton's method, damped, on orthonormal functions; what keeps p and q apart is part of the residual.
    """
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


def test_the_prime_does_not_matter(monkeypatch):
    machines = [rank_machine([["x", "1"], ["1", "x"]]), code_lock([1, 0, 1], 2, 3), QUATERNIONIC["Dic3"]()]
    assert_equal_at_primes(monkeypatch, machines, PRIMES[:3])


def assert_equal_at_primes(monkeypatch, machines, primes=PRIMES):
    found = []
    for prime in primes:
        monkeypatch.setattr(linear, "PRIME", prime)
        linear.one.cache_clear()
        _analysis.cache_clear()
        found.append([(least(m, field).lower, least(m, field).upper) for m in machines for field in "CRQ"])
    linear.one.cache_clear()
    _analysis.cache_clear()
    assert all(bounds == found[0] for bounds in found)


@pytest.mark.slow
def test_bounds_of_random_machines_meet_but_for_a_few():
    rng, gaps = random.Random(4), 0
    for _ in range(700):
        machine = random_machine(rng)
        for field in "CRQ":
            lower, upper = proved(machine, field)
            gaps += lower < upper
    assert gaps <= 6  # of 2,100


def test_fields_and_budgets():
    rng = random.Random(5)
    for _ in range(30):
        machine = random_machine(rng, 7)
        complex_, real, rational = (least(machine, field) for field in "CRQ")
        assert complex_.lower <= real.upper
        assert real.lower <= rational.upper
        assert real.lower <= 2 * complex_.upper
    machine = zoo.group("S4")
    _analysis.cache_clear()
    answer = least(machine, "R", budget=0)
    assert (answer.lower, answer.upper, answer.note) == (
        1,
        23,
        ("looking for smaller blocks: the limit of 0 s has passed: give more seconds (--max-seconds)"),
    )
    answer.check()
    with pytest.raises(UnsupportedFormat, match="field 'F' is not known: choose Q"):
        least(zoo.parity(), "F")


@pytest.mark.parametrize("source", ["random_dfa(1400, 2, seed=0, minimal=true)", "dyck(2, 8)"])
def test_a_thousand_states_end_in_an_interval_at_once(source):
    machine = zoo.from_task(source).minimise()
    assert machine.n_states > max(MAX_STATES, 500)
    begun = time.process_time()
    answer = least(machine, "R")
    assert time.process_time() - begun < 5
    assert (answer.lower, answer.upper) == (1, machine.n_states - 1)


def test_many_letters_end_in_an_interval_and_certificates_are_of_files():
    begun = time.process_time()
    answer = least(zoo.sum_mod(199), "R")
    assert time.process_time() - begun < 5
    assert (answer.lower, answer.upper) == (1, 198)
    assert answer.note == "199 letters on 199 states are more than steps of bounded time can take in"
    answer = least(zoo.cerny(5), "C")
    assert set(answer.impossible) == {
        "format", "version", "family", "verdict", "machine", "field", "element", "function", "covector",
    }  # fmt: skip
    assert recheck(answer.impossible).startswith("impossible: no layer of complex blocks of size 3")


def test_what_the_checker_refuses_is_not_said(monkeypatch):
    """A lower bound one too high, and blocks that leave out a state."""

    def forged(*arguments):
        certificate = simple_certificate(*arguments)
        return {**certificate, "family": "block(9)"}

    monkeypatch.setattr(sys.modules[least.__module__], "simple_certificate", forged)
    answer = least(zoo.cerny(4))
    assert (answer.lower, answer.upper, answer.impossible, answer.value) == (1, 3, None, None)
    assert answer.note.startswith("the certificate of the lower bound was refused (blocks of size 9 could hold all 3")
    found = least(zoo.sum_mod(7), "R").blocks
    monkeypatch.setattr(BlockSearch, "blocks", lambda *_: [replace(block, shifts=()) for block in found])
    answer = least(zoo.sum_mod(7), "R")
    assert (answer.lower, answer.upper, answer.found, answer.value) == (2, 6, None, None)
    assert answer.note.startswith("the certificate of the upper bound was refused (a block has other letters)")


@pytest.mark.slow
def test_an_index_of_two_that_only_the_rationals_see():
    """Q8 and the binary octahedral group, their centres one, on the cosets of a Z3: 8 over the reals, 16 over Q."""
    assert [proved(central_product(), field) for field in "CRQ"] == [(8, 8), (8, 8), (16, 16)]
