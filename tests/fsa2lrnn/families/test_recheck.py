"""The checker accepts every certificate that is made, and of the ones with a fault none that proves nothing."""

import cmath
import copy
import itertools
import json
import math
import shutil
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.families import Impossibility, Witness, lanes, recheck, represent
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.testing.strategies import machines

from .conftest import CASES, accepted, changed, leaves, parent, rejected

FILE = sys.modules[recheck.__module__].__file__


@st.composite
def certificates(draw, verdict=None):
    """A certificate of the verdict, as JSON: one of `CASES`, or one for a random machine if it has that verdict."""
    family = draw(st.sampled_from(list(FORCED)))
    found = represent(draw(machines(4, 2)), family, short_words=False).to_json()
    if verdict not in (None, found["verdict"]) or len(found["machine"]["outputs"]) == 1:
        names = [name for name in CASES if verdict in (None, CASES[name]["verdict"])]
        found = CASES[draw(st.sampled_from(names))]
    return copy.deepcopy(found)


def is_true(certificate):
    """Whether what a certificate says is so, asked of `represent`; its machine must be a machine."""
    parts = certificate["machine"]
    machine = MooreMachine(parts["delta"], map(json.dumps, parts["outputs"]), parts["start"])
    verdict = represent(machine, certificate["family"], short_words=False)
    return isinstance(verdict, Impossibility if certificate["verdict"] == "impossible" else Witness)


def works(certificate):
    """Whether the numbers of a witness are those of a layer, in floating point and by the definition."""
    delta = certificate["machine"]["delta"]
    n, points = len(delta[0]), []
    if "matrix" in certificate:
        A, x, v = (
            np.array([[float(Fraction(text)) for text in row] for row in certificate[name]])
            for name in ("matrix", "vectors", "shifts")
        )
        moves = all(np.allclose(A @ x[q] + v[a], x[delta[a][q]]) for a in range(len(delta)) for q in range(n))
        return moves and len(np.unique(x, axis=0)) == n
    for lane in certificate["lanes"]:
        zeta = cmath.exp(2j * cmath.pi / lane["order"])
        f, v = (
            [sum(float(Fraction(c)) * zeta**i for i, c in enumerate(row)) for row in lane[name]]
            for name in ("values", "shifts")
        )
        chi = [0 if k is None else zeta ** (k % lane["order"]) for k in lane["exponents"]]
        if any(abs(chi[a] * f[q] + v[a] - f[delta[a][q]]) > 1e-9 for a in range(len(delta)) for q in range(n)):
            return False
        if FORCED[certificate["family"]].same_length and len(set(lane["exponents"])) > 1:
            return False
        points.append(f)
    return all(any(abs(f[p] - f[q]) > 1e-9 for f in points) for p, q in itertools.combinations(range(n), 2))


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
    script = shutil.copy(FILE, tmp_path)

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


@given(certificates("impossible"), st.data())
def test_a_changed_coefficient_is_refused(certificate, data):
    i = data.draw(st.integers(0, len(certificate["terms"]) - 1))
    by = data.draw(st.fractions(-3, 3, max_denominator=5).filter(bool))
    broken = changed(certificate, ("terms", i, "coefficient"), lambda text: str(Fraction(text) + by))
    rejected(broken, "the terms do not add up")


@given(certificates("impossible"), st.data())
def test_a_dropped_term_is_refused(certificate, data):
    del certificate["terms"][data.draw(st.integers(0, len(certificate["terms"]) - 1))]
    rejected(certificate, "the terms do not add up")


@given(certificates("impossible"), st.data())
def test_other_states_are_refused(certificate, data):
    n, before = len(certificate["machine"]["outputs"]), tuple(certificate["states"])
    states = data.draw(st.tuples(st.integers(-1, n), st.integers(-1, n)).filter(lambda pair: pair != before))
    certificate["states"] = list(states)
    assert not accepted(certificate)


@given(certificates("impossible"), st.data())
def test_another_separator_is_refused_unless_it_separates(certificate, data):
    delta, outputs = certificate["machine"]["delta"], certificate["machine"]["outputs"]
    word = data.draw(st.lists(st.integers(0, len(delta) - 1), max_size=4))
    certificate["separator"] = [[a, 1] for a in word]
    p, q = certificate["states"]
    for a in word:
        p, q = delta[a][p], delta[a][q]
    assert accepted(certificate) == (outputs[p] != outputs[q])


@given(certificates("impossible"), st.data())
def test_a_changed_word_or_state_of_a_term_is_refused_unless_the_sum_stays(certificate, data):
    delta = certificate["machine"]["delta"]
    places = [path for path in leaves(certificate) if path[0] == "terms" and "coefficient" not in path]
    path = data.draw(st.sampled_from([path for path in places if isinstance(parent(certificate, path)[path[-1]], int)]))
    is_state = path[-1] in ("from", "to")
    limit = len(delta[0]) if is_state else len(delta) if path[-1] == 0 else 6
    broken = changed(certificate, path, lambda _: data.draw(st.integers(0, limit - 1)))
    assert accepted(broken) == (is_sum(broken) and all(agree(broken, term["words"]) for term in broken["terms"]))


def is_sum(certificate):
    """Whether the terms add up, by matrices over the fractions."""
    delta = certificate["machine"]["delta"]
    n = len(delta[0])
    M = [np.array([[Fraction(int(row[q] == p)) for q in range(n)] for p in range(n)]) for row in delta]

    def matrix(word):
        product = np.array([[Fraction(int(p == q)) for q in range(n)] for p in range(n)])
        for a, repetitions in word:
            for _ in range(repetitions):
                product = M[a] @ product
        return product

    unit = np.eye(n, dtype=int).astype(object)
    total = np.zeros(n, dtype=object)
    for term in certificate["terms"]:
        u, other = term["words"]
        difference = (matrix(u) - matrix(other)) @ (unit[term["from"]] - unit[term["to"]])
        total = total + Fraction(term["coefficient"]) * (matrix(term["then"]) @ difference)
    p, q = certificate["states"]
    return (total == unit[p] - unit[q]).all()


def agree(certificate, words):
    """Whether the two words have equal linear parts in the family, one letter and a power of it in the other forms."""
    form, delta = FORCED[certificate["family"]], certificate["machine"]["delta"]
    u, other = ([a for a, repetitions in word for _ in range(repetitions)] for word in words)
    if len(u) == len(other) if form.same_length else sorted(u) == sorted(other):
        return True
    if form.power is None or len(set(u)) != 1 or len(other) != 1 or u[0] != other[0]:
        return False
    if form.power != "cycle":
        return len(u) == {"square": 2, "cube": 3}[form.power]
    row, lengths = delta[u[0]], []
    for q in range(len(row)):
        p, k = row[q], 1
        while p != q and k <= len(row):
            p, k = row[p], k + 1
        lengths += [k] if p == q else []
    return (len(u) - 1) % math.lcm(*lengths) == 0


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


@given(certificates("representable"), st.data())
def test_a_changed_number_is_refused_unless_the_layer_still_works(certificate, data):
    numbers = [
        path
        for path in leaves(certificate)
        if path[0] in ("lanes", "matrix", "vectors", "shifts") and isinstance(parent(certificate, path)[path[-1]], str)
    ]
    by = data.draw(st.sampled_from([Fraction(1), Fraction(-1), Fraction(2), Fraction(1, 3)]))
    broken = changed(certificate, data.draw(st.sampled_from(numbers)), lambda text: str(Fraction(text) + by))
    assert accepted(broken) == works(broken)


@given(certificates("representable").filter(lambda certificate: "lanes" in certificate), st.data())
def test_a_changed_exponent_is_refused_unless_the_layer_still_works(certificate, data):
    i = data.draw(st.integers(0, len(certificate["lanes"]) - 1))
    lane = certificate["lanes"][i]
    a = data.draw(st.integers(0, len(lane["exponents"]) - 1))
    lane["exponents"][a] = data.draw(st.none() | st.integers(-1, lane["order"]))
    assert accepted(certificate) == works(certificate)


@given(certificates("representable").filter(lambda certificate: "lanes" in certificate), st.data())
def test_a_changed_order_is_refused_unless_the_layer_still_works(certificate, data):
    i = data.draw(st.integers(0, len(certificate["lanes"]) - 1))
    certificate["lanes"][i]["order"] = data.draw(st.integers(1, 12))
    if accepted(certificate):
        assert works(certificate)


@given(certificates("representable").filter(lambda certificate: "lanes" in certificate), st.data())
def test_a_dropped_lane_is_refused(certificate, data):
    del certificate["lanes"][data.draw(st.integers(0, len(certificate["lanes"]) - 1))]
    rejected(certificate, "two states have the same vector")


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


@pytest.mark.parametrize("order", [0, -3, 5_001, 10**9, 10**30])
def test_an_order_beyond_reason_is_refused_at_once(order):
    certificate = changed(CASES["sum_mod(3) diagonal-complex"], ("lanes", 0, "order"), lambda _: order)
    rejected(certificate, f"{order} is no order of a root of unity, or beyond 5000")
    assert sys.modules[recheck.__module__].MAX_ORDER == lanes.MAX_ORDER


def test_a_number_that_would_be_rounded_is_refused():
    certificate = changed(CASES["parity diagonal[-1,1]"], ("lanes", 0, "values", 1, 0), lambda text: int(text) + 0.5)
    rejected(certificate, "neither an integer nor a text")
    certificate = changed(CASES["parity diagonal[0,1]"], ("terms", 0, "coefficient"), lambda _: "1e9")
    rejected(certificate, "malformed")


@pytest.mark.parametrize(
    "words", [[[[1, 3]], [[1, 2]]], [[[1, 2]], []], [[[0, 1], [1, 1]], [[1, 1]]], [[[0, 2]], [[1, 1]]]]
)
def test_powers_are_those_of_one_letter_and_no_others(words):
    certificate = changed(CASES["parity diagonal[0,1]"], ("terms", 0, "words"), lambda _: words)
    rejected(certificate, r"may differ in the family diagonal\[0,1\]")


def test_a_letter_may_be_written_in_several_runs():
    certificate = changed(CASES["parity diagonal[0,1]"], ("terms", 0, "words", 0), lambda _: [[1, 1], [0, 0], [1, 1]])
    assert accepted(certificate)


def test_huge_repetitions_are_no_obstacle():
    certificate = copy.deepcopy(CASES["sum_mod(3) diagonal[-1,1]"])
    certificate["separator"] = [[0, 10**300]]
    assert accepted(certificate)
    certificate["separator"] = [[0, -1]]
    rejected(certificate, "a negative number of times")
