"""The checker accepts every certificate that is made, and none that proves nothing, deceives or asks for much work."""

import copy
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, minimise, trim, zoo
from fsa2lrnn.families import Impossibility, RejectedCertificate, Witness, recheck, represent
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.testing.strategies import machines
from tests.fsa2lrnn.families.certificates import certificates
from tests.fsa2lrnn.families.conftest import CASES, OTHERS, accepted, at_path, changed, leaves, parent, rejected

FOLDER = Path(sys.modules[recheck.__module__].__file__).parent


def is_true(certificate):
    """Whether what a certificate says is so, asked of `represent`; its machine must be a machine."""
    parts = certificate["machine"]
    machine = MooreMachine(parts["delta"], map(json.dumps, parts["outputs"]), parts["start"])
    verdict = represent(machine, certificate["family"], short_words=False)
    return isinstance(verdict, Impossibility if certificate["verdict"] == "impossible" else Witness)


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


@pytest.mark.parametrize(("name", "family", "fault"), [
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
])  # fmt: skip
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


def test_what_is_no_certificate_is_refused():
    for document in (None, [], {}, 3, "text", *HEADERS):
        rejected(document, "the certificate is malformed|is not a certificate")
    for change in ({"format": "other"}, {"format": "fsa2lrnn-horizon-certificate"}, {"version": 2}, {"version": "1"}):
        rejected({**CASES["parity lti"], **change}, "is not a certificate that this file can read")


@pytest.mark.parametrize(("name", "path", "value", "fault"), [
    ("parity diagonal[0,1]", ("machine", "start"), -1, "the start is not a state"),
    ("parity diagonal[0,1]", ("machine", "outputs"), [float("nan")] * 2, "an output is not equal to itself"),
    ("parity lti", ("machine", "alphabet"), ["a", "a"], "a letter stands twice"),
    ("parity lti", ("machine", "alphabet"), [1, True], "a letter stands twice"),
    ("parity diagonal[-1,1]", ("channels", 0, "values", 1, 0), 0.5, "neither an integer nor a text"),
    ("parity diagonal[0,1]", ("terms", 0, "coefficient"), "1e9", "malformed"),
])  # fmt: skip
def test_what_is_no_machine_or_no_number_is_refused(name, path, value, fault):
    rejected(changed(CASES[name], path, lambda _: value), fault)


# A witness for two states that nothing tells apart: of their one class no layer is asked for two vectors.
NOT_MINIMAL = {
    "diagonal[0,1]": {"channels": [{"order": 1, "exponents": [None], "values": [["0"], ["1"]], "shifts": [["1"]]}]},
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
    rejected(certificate, "some state cannot be reached")


def test_huge_repetitions_cost_nothing_and_numbers_do_not_grow_without_end():
    certificate = copy.deepcopy(CASES["sum_mod(3) diagonal[-1,1]"])
    certificate["separator"] = [[0, 10**300]]
    assert accepted(certificate)
    certificate["separator"] = [[0, -1]]
    rejected(certificate, "a negative number of times")
    words = [[[0, 2_000 * 10**6 + 1]], [[0, 1]]]
    term = {"coefficient": "1", "from": 0, "to": 1, "words": words, "then": []}
    certificate = {
        **HEAD, "family": "diagonal-complex", "machine": cycle(2_000), "states": [0, 1], "separator": [],
        "terms": [term],
    }  # fmt: skip
    with pytest.raises(RejectedCertificate, match="the terms do not add up"):
        recheck(certificate, work=500_000)  # 2,000 walks of 2,000 steps are many more
    certificate = copy.deepcopy(CASES["ab_star lti"])
    (term, *_) = certificate["terms"]
    primes = [p for p in range(10**4, 10**4 + 9_000) if all(p % d for d in range(2, 140))]
    certificate["terms"] = [{**term, "coefficient": f"1/{p}"} for p in primes]
    rejected(certificate, "a common denominator has more than 10000 bits")
    block = {
        "polynomial": [1, *[0] * 4_000, 1], "irreducible": ["cyclotomic", 10**4_000], "functions": [], "matrices": [[]],
        "shifts": [[]],
    }  # fmt: skip
    certificate = {**HEAD, "verdict": "representable", "family": "block(2)", "field": "R", "machine": cycle(2)}
    rejected({**certificate, "blocks": [block]}, "is not the order of a root of unity up to 5000")
    certificate = {**HEAD, "family": "lti", "states": [0, 0], "separator": [], "terms": []}
    rejected({**certificate, "machine": {**cycle(2), "outputs": [0, 2**61 * 8]}}, "has 64 bits or more")


@pytest.mark.parametrize("family", NOT_MINIMAL)
@pytest.mark.parametrize(("outputs", "is_minimal"), [
    (["yes", "no"], True),
    ([{"tuple": [1, 2]}, {"tuple": [2, 1]}], True),
    ([0, 0], False),
    ([1, True], False),
    ([0.0, -0.0], False),
    ([{"frozenset": [1, 2]}, {"frozenset": [2, 1]}], False),
    ([{"tuple": [{"frozenset": ["a", "b"]}]}, {"tuple": [{"frozenset": ["b", "a"]}]}], False),
])  # fmt: skip
def test_a_witness_for_a_machine_that_is_not_minimal_is_refused(family, outputs, is_minimal):
    machine = {"alphabet": ["a"], "delta": [[1, 1]], "outputs": outputs, "start": 0}
    header = {"format": "fsa2lrnn-family-certificate", "version": 1, "family": family, "verdict": "representable"}
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


@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_numbers_of_another_type_are_refused(name):
    certificate = {**CASES, **OTHERS}[name]
    for path in leaves(certificate):
        old = at_path(certificate, path)
        if type(old) is not int or path[:2] in (("machine", "alphabet"), ("machine", "outputs")):
            continue
        for other in [float(old), str(old), *([bool(old)] if old in (0, 1) else [])]:
            assert not accepted(changed(certificate, path, lambda _, other=other: other)), (path, other)


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
            isinstance(value, list)
            and path[-1] not in ("then", "separator", "terms", "channels")
            and "words" not in path
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
    kind = {
        "letters": [[["0", "1"], ["9" * 2_700, "9" * 2_700]]], "path": [[0, 0]], "element": [[1, [0] * length]],
        "covector": ["1", "1"], "polynomial": [0, 1], "irreducible": ["degree", 0], "generator": ["0", "0"],
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


@pytest.mark.long_cases("a dense matrix")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "long words" else name for name in LARGE]
)
def test_certificates_that_ask_for_much_work_are_rejected_with_the_bound(name):
    assert len(str(LARGE[name])) < 2_000_000
    rejected(LARGE[name], BOUND)


def test_more_work_may_be_allowed():
    certificate = CASES[next(iter(CASES))]
    with pytest.raises(RejectedCertificate, match="more than 3 steps, its bound"):
        recheck(certificate, work=3)
    assert recheck(certificate)
