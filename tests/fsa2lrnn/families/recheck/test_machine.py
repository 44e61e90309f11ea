"""A machine is complete, minimal and has all its states reachable, or nothing is proved of it."""

import copy

import pytest
from hypothesis import given

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.language import minimise, trim
from fsa2lrnn.families import RejectedCertificate, recheck, represent
from fsa2lrnn.testing.strategies import machines
from tests.fsa2lrnn.families.certificates import certificates
from tests.fsa2lrnn.families.conftest import CASES, accepted, changed, rejected

# A witness for two states that nothing tells apart: of their one class no layer is asked for two vectors.
NOT_MINIMAL = {
    "diagonal[0,1]": {"lanes": [{"order": 1, "exponents": [None], "values": [["0"], ["1"]], "shifts": [["1"]]}]},
    "lti": {"matrix": [["0"]], "vectors": [["0"], ["1"]], "shifts": [["1"]]},
    "liquid-s4": {"A": [["-1"]], "vectors": [["0"], ["1"]], "B": [["1"]]},
    "householder": {"keys": [[[1, 0], [0, 1]]], "shifts": [[0, 1]]},
}


@given(certificates())
def test_an_unreachable_state_is_refused(certificate):
    machine = certificate["machine"]
    n = len(machine["outputs"])
    machine["delta"] = [[*row, n] for row in machine["delta"]]
    machine["outputs"].append("new")
    rejected(certificate, "some state can't be reached")


def test_a_negative_start_does_not_hide_an_unreachable_state():
    machine = {"alphabet": ["a"], "delta": [[0, 1]], "outputs": [0, 1], "start": -1}
    certificate = {**CASES["parity diagonal[0,1]"], "machine": machine}
    rejected(certificate, "the start is no state")


def test_an_output_unlike_itself_tells_nothing_apart():
    certificate = copy.deepcopy(CASES["parity diagonal[0,1]"])
    certificate["machine"]["outputs"] = [float("nan"), float("nan")]
    rejected(certificate, "an output is not equal to itself")


def test_huge_repetitions_are_no_obstacle():
    certificate = copy.deepcopy(CASES["sum_mod(3) diagonal[-1,1]"])
    certificate["separator"] = [[0, 10**300]]
    assert accepted(certificate)
    certificate["separator"] = [[0, -1]]
    rejected(certificate, "a negative number of times")


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
    with pytest.raises(RejectedCertificate) as caught:
        recheck(header | {"terms": []})
    assert ("is not minimal" in str(caught.value)) == (minimise(machine).n_states < machine.n_states)


def test_a_letter_twice_is_no_alphabet():
    rejected(changed(CASES["parity lti"], ("machine", "alphabet"), lambda _: ["a", "a"]), "a letter stands twice")
    rejected(changed(CASES["parity lti"], ("machine", "alphabet"), lambda _: [1, True]), "a letter stands twice")
