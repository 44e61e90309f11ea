"""The checker accepts every certificate that is made, and of the ones with a fault none that proves nothing."""

import copy
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.families import Impossibility, Witness, recheck, represent
from fsa2lrnn.families.identities import FORCED
from tests.fsa2lrnn.families.certificates import certificates
from tests.fsa2lrnn.families.conftest import CASES, accepted, leaves, parent, rejected

FOLDER = Path(sys.modules[recheck.__module__].__file__).parent


def is_true(certificate):
    """Whether what a certificate says is so, asked of `represent`; its machine must be a machine."""
    parts = certificate["machine"]
    machine = MooreMachine(parts["delta"], map(json.dumps, parts["outputs"]), parts["start"])
    verdict = represent(machine, certificate["family"], short_words=False)
    return isinstance(verdict, Impossibility if certificate["verdict"] == "impossible" else Witness)


@pytest.mark.parametrize("name", CASES)
def test_what_is_made_is_accepted_and_survives_json(name):
    certificate = CASES[name]
    again = json.loads(json.dumps(certificate, allow_nan=False))
    assert again == certificate
    assert recheck(again) == recheck(certificate)


@given(certificates())
def test_random_certificates_survive_json(certificate):
    assert json.loads(json.dumps(certificate)) == certificate
    assert accepted(certificate)


def test_the_checker_stands_alone(tmp_path):
    script = shutil.copytree(FOLDER, tmp_path / "recheck", ignore=shutil.ignore_patterns("__pycache__"))

    def run(text):
        (tmp_path / "certificate.json").write_text(text)
        command = [sys.executable, "-I", "-S", script, "certificate.json"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    for name in ("ab_star diagonal-complex", "sum_mod(3) diagonal-complex", "shift_register(2) lti"):
        done = run(json.dumps(CASES[name]))
        assert (done.returncode, done.stdout, done.stderr) == (0, recheck(CASES[name]) + "\n", "")
    done = run(json.dumps({**CASES["ab_star lti"], "terms": []}))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "rejected: the terms do not add up to x_1 − x_2\n"
    assert run("{").returncode == 1
    assert run("{").stderr.startswith("rejected: Expecting property name")


@given(certificates(), st.sampled_from(list(FORCED)))
def test_under_another_family_nothing_false_is_accepted(certificate, family):
    certificate["family"] = family
    if accepted(certificate):
        assert is_true(certificate)


@pytest.mark.parametrize(
    ("name", "family", "fault"),
    [
        ("parity diagonal[0,1]", "diagonal[-1,1]", "may differ in the family diagonal\\[-1,1\\]"),
        ("sum_mod(3) diagonal[-1,1]", "diagonal-complex", "may differ in the family diagonal-complex"),
        ("shift_register(2) lti-diagonalisable", "lti", "may differ in the family lti"),
        ("ab_star lti", "diagonal[0,1]", "may differ in the family diagonal\\[0,1\\]"),
        ("ab_star diagonal[0,1]", "mamba", "family 'mamba' is not known"),
        ("parity diagonal[-1,1]", "diagonal[0,1]", "a multiplier of order 2 is outside the family"),
        ("sum_mod(3) diagonal-complex", "diagonal[-1,1]", "a multiplier of order 3 is outside the family"),
        ("sum_mod(3) diagonal-complex", "lti-diagonalisable", "the multiplier depends on the letter"),
        ("flip_flop diagonal[0,1]", "lti", "the multiplier depends on the letter"),
        ("shift_register(2) lti", "lti-diagonalisable", "a matrix is a witness for the family lti only"),
    ],
)
def test_a_family_in_which_it_does_not_hold_is_refused(name, family, fault):
    rejected({**CASES[name], "family": family}, fault)


@given(certificates(), st.data())
def test_a_changed_machine_is_refused_unless_the_claim_holds_of_it_too(certificate, data):
    machine = certificate["machine"]
    a = data.draw(st.integers(0, len(machine["delta"]) - 1))
    q = data.draw(st.integers(0, len(machine["outputs"]) - 1))
    machine["delta"][a][q] = data.draw(st.integers(0, len(machine["outputs"]) - 1))
    if accepted(certificate):
        assert is_true(certificate)


ODDITIES = st.sampled_from(
    [None, True, -1, 0, 1, 7, 10**30, 1.5, float("nan"), float("inf"), "", "x", "1/0", "1/2", "1e9", "9" * 5000, [], {},
     [[]], [0], {"tuple": []}, "lti", "impossible", "representable"]
)  # fmt: skip


@given(certificates(), st.data())
def test_a_malformed_certificate_is_refused_and_nothing_worse(certificate, data):
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(leaves(certificate))))
        at = parent(certificate, path)
        if data.draw(st.booleans()):
            del at[path[-1]]
        else:
            at[path[-1]] = copy.deepcopy(data.draw(ODDITIES))
    if accepted(certificate):
        assert is_true(certificate)


def test_a_document_nested_beyond_reason_is_refused():
    certificate = copy.deepcopy(CASES["parity lti"])
    for _ in range(sys.getrecursionlimit()):
        certificate["machine"]["outputs"][0] = {"tuple": [certificate["machine"]["outputs"][0]]}
    rejected(certificate, "malformed .RecursionError")


HEADERS = [{"format": f"fsa2lrnn-{kind}certificate", "version": 1} for kind in ("", "family-")]


@pytest.mark.parametrize("document", [None, [], {}, 3, "text", *HEADERS])
def test_what_is_no_certificate_is_refused(document):
    rejected(document, "the certificate is malformed|is no certificate")


@pytest.mark.parametrize(
    ("key", "value"),
    [("format", "other"), ("format", "fsa2lrnn-horizon-certificate"), ("version", 2), ("version", "1")],
)
def test_a_certificate_of_another_kind_is_refused(key, value):
    rejected({**CASES["parity lti"], key: value}, "is no certificate that this file can read")


def test_a_certificate_with_the_header_of_before_is_read():
    new = CASES["parity lti"]
    assert new["format"] == "fsa2lrnn-family-certificate"
    assert recheck({**new, "format": "fsa2lrnn-certificate"}) == recheck(new)
