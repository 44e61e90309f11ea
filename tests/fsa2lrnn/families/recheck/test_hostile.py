"""Certificates made to deceive the checker, or to keep it busy for ever."""

import copy
import subprocess
import sys
from pathlib import Path

import pytest

from fsa2lrnn.families import recheck
from fsa2lrnn.families.recheck import RejectedCertificate
from tests.fsa2lrnn.families.conftest import CASES, OTHERS, accepted, at_path, leaves, rejected

FOLDER = Path(sys.modules[recheck.__module__].__file__).parent


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


def test_files_that_can_not_be_read_are_rejected_without_a_traceback(tmp_path):
    def run(*arguments):
        command = [sys.executable, "-I", "-S", FOLDER, *arguments]
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
    assert run().stderr == "usage: python -m fsa2lrnn.families.recheck certificate.json\n"


HEAD = {"format": "fsa2lrnn-family-certificate", "version": 1, "verdict": "impossible"}
BOUND = "takes more than 67,108,864 steps, its bound: .* a larger `work`"


def cycle(n):
    """A machine of n states in a cycle."""
    delta = [[(q + 1) % n for q in range(n)]]
    return {"alphabet": [0], "delta": delta, "outputs": [int(q == 0) for q in range(n)], "start": 0}


def kind_of_large_numbers(length):
    """A chain whose numbers grow by 9,000 bits a letter, for a word of so many letters."""
    commutant = {
        "polynomial": [0, 1], "irreducible": ["degree", 0], "generator": ["0", "0"], "pair": [], "squares": [],
        "prime": None,
    }  # fmt: skip
    kind = {
        "letters": [[["0", "1"], ["9" * 2_700, "9" * 2_700]]], "path": [[0, 0]], "element": [[1, [0] * length]],
        "covector": ["1", "1"], "commutant": commutant,
    }  # fmt: skip
    return {
        **HEAD, "family": "block(1)", "field": "Q", "machine": cycle(10), "states": [0, 1], "kinds": [kind],
        "copies": [], "inverse": [[0] * 9] * 9,
    }  # fmt: skip


LARGE = {
    "long words": {
        **HEAD, "family": "lti", "machine": cycle(4_000), "states": [0, 1], "separator": [[0, 10**9]] * 10_000,
        "terms": [],
    },
    "growing numbers": kind_of_large_numbers(20_000),
    "unit vectors": {
        **HEAD, "family": "householder", "verdict": "representable", "machine": cycle(8_000), "keys": [[]],
        "shifts": [[0] * 8_000],
    },
    "a dense matrix": {
        **HEAD, "family": "lti", "verdict": "representable", "machine": cycle(300),
        "matrix": [["1/3"] * 300] * 300, "vectors": [[str(q)] + ["1"] * 299 for q in range(300)],
        "shifts": [["0"] * 300],
    },
    "large common denominators": {
        **HEAD, "family": "lti", "verdict": "representable", "machine": cycle(2), "matrix": [],
        "vectors": [["1"] * 250_000 + [f"1/{2**9_000}"], []], "shifts": [[]],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_certificates_that_ask_for_much_work_are_rejected_with_the_bound(name):
    assert len(str(LARGE[name])) < 2_000_000
    rejected(LARGE[name], BOUND)


def test_more_work_may_be_allowed():
    certificate = CASES[next(iter(CASES))]
    with pytest.raises(RejectedCertificate, match="more than 3 steps, its bound"):
        recheck(certificate, work=3)
    assert recheck(certificate)


def test_powers_of_a_letter_are_looked_up_without_walking():
    """10^9 repetitions of a letter of 2,000 states, from each of them."""
    words = [[[0, 2_000 * 10**6 + 1]], [[0, 1]]]
    term = {"coefficient": "1", "from": 0, "to": 1, "words": words, "then": []}
    certificate = {
        **HEAD, "family": "diagonal-complex", "machine": cycle(2_000), "states": [0, 1], "separator": [],
        "terms": [term],
    }  # fmt: skip
    with pytest.raises(RejectedCertificate, match="the terms do not add up"):
        recheck(certificate, work=500_000)  # 2,000 walks of 2,000 steps are many more


def test_a_value_that_is_too_large_to_be_a_known_prime_is_not_computed():
    block = {
        "polynomial": [1, *[0] * 4_000, 1], "irreducible": ["prime", 10**4_000], "functions": [], "matrices": [[]],
        "shifts": [[]],
    }  # fmt: skip
    certificate = {**HEAD, "verdict": "representable", "family": "block(2)", "field": "R", "machine": cycle(2)}
    rejected({**certificate, "blocks": [block]}, "is too large to tell whether it is a prime")


def test_long_integers_whose_hashes_collide_are_rejected():
    certificate = {**HEAD, "family": "lti", "states": [0, 0], "separator": [], "terms": []}
    rejected({**certificate, "machine": {**cycle(2), "outputs": [0, 2**61 * 8]}}, "has 64 bits or more")
