"""Certificates made to deceive the checker, or to keep it busy for ever."""

import copy
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.language import minimise, trim
from fsa2lrnn.families import Rejected, recheck, represent
from fsa2lrnn.testing.strategies import machines

from .conftest import CASES, OTHERS, accepted, at_path, changed, leaves, rejected

FILE = sys.modules[recheck.__module__].__file__
LONGER_MAY_BE_RIGHT = ("then", "separator", "terms", "lanes")

# A witness for two states that nothing tells apart: of their one class no layer is asked for two vectors.
NOT_MINIMAL = {
    "diagonal[0,1]": {"lanes": [{"order": 1, "exponents": [None], "values": [["0"], ["1"]], "shifts": [["1"]]}]},
    "lti": {"matrix": [["0"]], "vectors": [["0"], ["1"]], "shifts": [["1"]]},
    "liquid-s4": {"A": [["-1"]], "vectors": [["0"], ["1"]], "B": [["1"]]},
    "householder": {"keys": [[[1, 0], [0, 1]]], "shifts": [[0, 1]]},
}


@pytest.mark.parametrize("family", NOT_MINIMAL)
@pytest.mark.parametrize(
    ("outputs", "is_minimal"),
    [
        (["yes", "no"], True),
        ([{"tuple": [1, 2]}, {"tuple": [2, 1]}], True),
        ([0, 0], False),
        ([1, True], False),
        ([0.0, -0.0], False),
        ([{"frozenset": [1, 2]}, {"frozenset": [2, 1]}], False),
        ([{"tuple": [{"frozenset": ["a", "b"]}]}, {"tuple": [{"frozenset": ["b", "a"]}]}], False),
    ],
)
def test_a_witness_for_a_machine_that_is_not_minimal_is_refused(family, outputs, is_minimal):
    machine = {"alphabet": ["a"], "delta": [[1, 1]], "outputs": outputs, "start": 0}
    header = {"format": "fsa2lrnn-certificate", "version": 1, "family": family, "verdict": "representable"}
    certificate = {**header, "machine": machine, **NOT_MINIMAL[family]}
    if is_minimal:
        assert accepted(certificate)
    else:
        rejected(certificate, r"the machine is not minimal: states \[0, 1\] are equivalent")


@given(machines(8, 2))
def test_minimal_is_what_the_library_calls_minimal(machine):
    machine = trim(machine)
    header = represent(zoo.parity(), "lti", short_words=False).to_json()
    header["machine"] = {
        "alphabet": list(range(len(machine.alphabet))), "delta": machine.delta.tolist(),
        "outputs": [str(output) for output in machine.outputs], "start": machine.start,
    }  # fmt: skip
    with pytest.raises(Rejected) as caught:
        recheck(header | {"terms": []})
    assert ("is not minimal" in str(caught.value)) == (minimise(machine).n_states < machine.n_states)


def test_a_letter_twice_is_no_alphabet():
    rejected(changed(CASES["parity lti"], ("machine", "alphabet"), lambda _: ["a", "a"]), "a letter stands twice")
    rejected(changed(CASES["parity lti"], ("machine", "alphabet"), lambda _: [1, True]), "a letter stands twice")


@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_whatever_is_added_is_refused(name):
    certificate = {**CASES, **OTHERS}[name]
    assert accepted(certificate)
    for path in ((), *leaves(certificate)):
        value = at_path(certificate, path)
        more = copy.deepcopy(certificate)
        if isinstance(value, dict):
            at_path(more, path)["claim"] = 1
            rejected(more, "'claim' is missing or too many")
        elif (
            isinstance(value, list) and path[-1] not in ("then", "separator", "terms", "lanes") and "words" not in path
        ):
            at_path(more, path).append(copy.deepcopy(value[-1]) if value else 0)
            assert not accepted(more), path


@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_numbers_of_another_type_are_refused(name):
    certificate = {**CASES, **OTHERS}[name]
    for path in leaves(certificate):
        old = at_path(certificate, path)
        if type(old) is not int or path[:2] in (("machine", "alphabet"), ("machine", "outputs")):
            continue
        for other in [float(old), str(old), *([bool(old)] if old in (0, 1) else [])]:
            assert not accepted(changed(certificate, path, lambda _, other=other: other)), (path, other)


def test_numbers_whose_sums_would_grow_without_end_are_refused():
    certificate = copy.deepcopy(CASES["ab_star lti"])
    (term, *_) = certificate["terms"]
    primes = [p for p in range(10**4, 10**4 + 9_000) if all(p % d for d in range(2, 140))]
    certificate["terms"] = [{**term, "coefficient": f"1/{p}"} for p in primes]
    rejected(certificate, "a common denominator has more than 10000 bits")


def test_numbers_of_a_lane_are_written_in_one_way():
    certificate = copy.deepcopy(CASES["sum_mod(3) diagonal-complex"])
    (lane,) = certificate["lanes"]
    lane["values"] = [["0"], ["1"], ["0", "0", "0", "1"]]  # ζ³ is 1
    rejected(certificate, r"a number has more than φ\(3\) = 2 coefficients")


@pytest.mark.parametrize("order", [1, 2, 3, 4, 6, 12, 30, 105])
def test_sums_of_roots_of_unity_vanish_where_the_cyclotomic_polynomial_divides_them(order):
    from flint import fmpz_poly

    module = sys.modules[recheck.__module__]
    primes = [p for p in range(2, order + 1) if order % p == 0 and all(p % d for d in range(2, p))]
    rng, cyclotomic = np.random.default_rng(order), fmpz_poly.cyclotomic(order)
    for _ in range(20):
        quotient = fmpz_poly([int(x) for x in rng.integers(-2, 3, 4)])
        for polynomial in (quotient * cyclotomic, quotient * cyclotomic + 1, quotient):
            terms: dict[int, int] = {}
            for i, x in enumerate(polynomial.coeffs()):
                terms[i % order] = terms.get(i % order, 0) + int(x)
            assert module._is_zero([(terms, 1)], order, primes) == (polynomial % cyclotomic == 0)


def test_files_that_can_not_be_read_are_rejected_without_a_traceback(tmp_path):
    def run(*arguments):
        command = [sys.executable, "-I", "-S", FILE, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    texts = {"deep": "[" * 100_000, "twice": '{"format": 1, "format": 2}', "long": "9" * 5_000, "none": "{}"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name in (*texts, "bytes", "missing"):
        done = run(name)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("rejected: ")
        assert done.stderr.count("\n") == 1
    assert run().stderr == "usage: python recheck.py certificate.json\n"
