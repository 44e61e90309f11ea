"""Sums of equations, channels and matrices: changed ones are refused unless they hold; the checker's arithmetic."""

import cmath
import copy
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat, fmpz_poly
from hypothesis import assume, given
from hypothesis import strategies as st

from fsa2lrnn.families import RejectedCertificate, channels
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.families.recheck.checked_machine import CheckedMachine
from fsa2lrnn.families.recheck.module_algebra import _transposed, applied, rank_of, spun, state_functions, times
from fsa2lrnn.families.recheck.polynomials import MAX_ORDER, check_irreducible, modulo, real_roots
from fsa2lrnn.testing.strategies import machines
from tests.fsa2lrnn.families.certificates import certificates
from tests.fsa2lrnn.families.conftest import CASES, accepted, changed, leaves, parent, rejected
from tests.fsa2lrnn.families.recheck.forgeries import CERTIFICATES, with_value


@given(certificates("impossible"), st.data())
def test_a_changed_coefficient_is_refused(certificate, data):
    i = data.draw(st.integers(0, len(certificate["terms"]) - 1))
    by = data.draw(st.fractions(-3, 3, max_denominator=5).filter(bool))
    broken = changed(certificate, ("terms", i, "coefficient"), lambda text: str(Fraction(text) + by))
    rejected(broken, "the terms do not add up")


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
    if len(u) == len(other) if form.letters == "input-independent" else sorted(u) == sorted(other):
        return True
    if form.eigenvalues is None or len(set(u)) != 1 or len(other) != 1 or u[0] != other[0]:
        return False
    if form.eigenvalues != "complex":
        return len(u) == {"[0,1]": 2, "[-1,1]": 3}[form.eigenvalues]
    row, lengths = delta[u[0]], []
    for q in range(len(row)):
        p, k = row[q], 1
        while p != q and k <= len(row):
            p, k = row[p], k + 1
        lengths += [k] if p == q else []
    return (len(u) - 1) % math.lcm(*lengths) == 0


@pytest.mark.parametrize(
    "words", [[[[1, 3]], [[1, 2]]], [[[1, 2]], []], [[[0, 1], [1, 1]], [[1, 1]]], [[[0, 2]], [[1, 1]]]]
)
def test_powers_are_those_of_one_letter_and_no_others(words):
    certificate = changed(CASES["parity diagonal[0,1]"], ("terms", 0, "words"), lambda _: words)
    rejected(certificate, r"may differ in the family diagonal\[0,1\]")


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
    for channel in certificate["channels"]:
        zeta = cmath.exp(2j * cmath.pi / channel["order"])
        f, v = (
            [sum(float(Fraction(c)) * zeta**i for i, c in enumerate(row)) for row in channel[name]]
            for name in ("values", "shifts")
        )
        chi = [0 if k is None else zeta ** (k % channel["order"]) for k in channel["exponents"]]
        if any(abs(chi[a] * f[q] + v[a] - f[delta[a][q]]) > 1e-9 for a in range(len(delta)) for q in range(n)):
            return False
        if FORCED[certificate["family"]].letters == "input-independent" and len(set(channel["exponents"])) > 1:
            return False
        points.append(f)
    return all(any(abs(f[p] - f[q]) > 1e-9 for f in points) for p, q in itertools.combinations(range(n), 2))


@given(certificates("representable"), st.data())
def test_a_changed_number_is_refused_unless_the_layer_still_works(certificate, data):
    numbers = [
        path
        for path in leaves(certificate)
        if path[0] in ("channels", "matrix", "vectors", "shifts")
        and isinstance(parent(certificate, path)[path[-1]], str)
    ]
    by = data.draw(st.sampled_from([Fraction(1), Fraction(-1), Fraction(2), Fraction(1, 3)]))
    broken = changed(certificate, data.draw(st.sampled_from(numbers)), lambda text: str(Fraction(text) + by))
    assert accepted(broken) == works(broken)


@given(certificates("representable").filter(lambda certificate: "channels" in certificate), st.data())
def test_a_changed_exponent_is_refused_unless_the_layer_still_works(certificate, data):
    i = data.draw(st.integers(0, len(certificate["channels"]) - 1))
    channel = certificate["channels"][i]
    a = data.draw(st.integers(0, len(channel["exponents"]) - 1))
    channel["exponents"][a] = data.draw(st.none() | st.integers(-1, channel["order"]))
    assert accepted(certificate) == works(certificate)


@given(certificates("representable").filter(lambda certificate: "channels" in certificate), st.data())
def test_a_changed_order_is_refused_unless_the_layer_still_works(certificate, data):
    i = data.draw(st.integers(0, len(certificate["channels"]) - 1))
    certificate["channels"][i]["order"] = data.draw(st.integers(1, 12))
    if accepted(certificate):
        assert works(certificate)


@given(certificates("representable").filter(lambda certificate: "channels" in certificate), st.data())
def test_a_dropped_channel_is_refused(certificate, data):
    del certificate["channels"][data.draw(st.integers(0, len(certificate["channels"]) - 1))]
    rejected(certificate, "two states have the same vector")


def test_orders_are_bounded_and_numbers_of_a_channel_are_written_in_one_way():
    certificate = copy.deepcopy(CASES["sum_mod(3) diagonal-complex"])
    for order in (0, -3, 5_001, 10**9, 10**30):
        broken = changed(certificate, ("channels", 0, "order"), lambda _, order=order: order)
        rejected(broken, f"{order} is not the order of a root of unity up to 5000")
    assert MAX_ORDER == channels.MAX_ORDER
    (channel,) = certificate["channels"]
    channel["values"] = [["0"], ["1"], ["0", "0", "0", "1"]]  # ζ³ is 1
    rejected(certificate, r"a number has more than φ\(3\) = 2 coefficients")


def test_a_letter_may_be_written_in_several_runs():
    certificate = changed(CASES["parity diagonal[0,1]"], ("terms", 0, "words", 0), lambda _: [[1, 1], [0, 0], [1, 1]])
    assert accepted(certificate)


monic = st.lists(st.integers(-6, 6), min_size=1, max_size=6).map(lambda c: [*c, 1])
REASONS = [["degree", 0], *(["cyclotomic", m] for m in (1, 3, 4, 5, 7, 8, 12))]
REASONS += [["eisenstein", p] for p in (1, 2, 3, 4, 5, 6, 11)]


def is_irreducible(polynomial):
    return sum(exponent for _, exponent in fmpz_poly(polynomial).factor()[1]) == 1


@given(monic, st.sampled_from(REASONS))
def test_no_reason_is_taken_for_a_reducible_polynomial(polynomial, reason):
    try:
        check_irreducible(polynomial, reason)
    except RejectedCertificate:
        return
    assert is_irreducible(polynomial)


def test_reasons_of_irreducible_polynomials():
    check_irreducible([-2, 0, 0, 1], ["degree", 0])
    check_irreducible([1, 1, 1, 1, 1], ["cyclotomic", 5])
    check_irreducible([1, 3, -3, -4, 1, 1], ["eisenstein", 11])  # of 2 cos(2π/11)
    for reason in (["degree", 0], ["cyclotomic", 4], ["prime", 4], *(["eisenstein", m] for m in (2, 4, 10**9 + 7))):
        with pytest.raises(RejectedCertificate):
            check_irreducible([4, 0, 0, 0, 1], reason)  # (x² + 2x + 2)(x² − 2x + 2)


@given(monic)
def test_real_roots_are_those_of_floating_point(polynomial):
    assume(is_irreducible(polynomial))
    assert real_roots(polynomial) == (abs(np.roots(polynomial[::-1]).imag) < 1e-9).sum()


@given(
    monic, st.lists(st.integers(-9, 9), min_size=6, max_size=6), st.lists(st.integers(-9, 9), min_size=6, max_size=6)
)
def test_products_are_taken_modulo_the_polynomial(polynomial, x, y):
    k = len(polynomial) - 1
    product = modulo([0] * (2 * k - 1), [(x[:k], y[:k])], polynomial)
    expected = (fmpz_poly(x[:k]) * fmpz_poly(y[:k])) % fmpz_poly(polynomial)
    assert fmpz_poly(product) == expected


small = st.integers(-2, 2)


def exactly(elements, n):
    return st.lists(elements, min_size=n, max_size=n)


square = st.integers(1, 5).map(lambda d: exactly(exactly(small, d), d))
tables = square.flatmap(lambda table: st.integers(1, 2).flatmap(lambda n: exactly(table, n)))


def rows_of(table):
    return [{j: x for j, x in enumerate(row) if x} for row in table]


@given(tables, st.data())
def test_words_act_from_the_right_one_letter_after_the_other(matrices, data):
    letters, d = [rows_of(table) for table in matrices], len(matrices[0])
    row = data.draw(exactly(small, d))
    word = data.draw(st.lists(st.integers(0, len(letters) - 1), max_size=4))
    expected = np.array(row)
    for a in word:
        expected = expected @ np.array(matrices[a])
    assert applied([(2, word), (-1, [])], row, letters) == (2 * expected - row).tolist()
    assert times(row, _transposed(letters[0])) == (np.array(matrices[0]) @ row).tolist()


@given(tables)
def test_ranks_are_those_over_the_rationals(matrices):
    matrix = fmpq_mat([[fmpq(x, 3) for x in row] for row in matrices[0]])
    assert rank_of(matrices[0], len(matrices[0])) == matrix.rank()


@given(tables, st.data())
def test_what_a_row_generates_has_the_dimension_of_its_images(matrices, data):
    d = len(matrices[0])
    row = data.draw(exactly(small, d))
    images, whole = [np.array(row)], np.array([row])
    for _ in range(d):
        images = [image @ np.array(matrix) for image in images for matrix in matrices]
        whole = np.vstack([whole, *images])
        images = list(np.unique(images, axis=0))
    assert spun([row], [rows_of(table) for table in matrices]) == fmpq_mat(whole.astype(object).tolist()).rank()


@given(machines(5, 2), st.data())
def test_functions_of_the_state_move_as_the_letters_do(machine, data):
    f = data.draw(exactly(small, machine.n_states))
    letters = state_functions(CheckedMachine(machine.delta.tolist(), list(machine.outputs)))
    for letter, step in zip(letters, machine.delta, strict=True):
        moved = [f[q] for q in step]
        assert times([x - f[0] for x in f[1:]], letter) == [x - moved[0] for x in moved[1:]]


def test_modules_that_are_not_irreducible_are_refused():
    certificate = CERTIFICATES["chain, a field"]
    claims = {
        "polynomial": ([-1, 0, 0, 0, 1], "a polynomial is not the|does not satisfy"),
        "irreducible": (["degree", 0], "a polynomial of this degree or size needs another reason"),
        "generator": ([1, 0, 0, 0], "does not satisfy its polynomial"),
    }
    for field, (value, fault) in claims.items():
        rejected(with_value(certificate, ("kinds", 0, field), value), fault)
    rejected(with_value(certificate, ("kinds", 0, "covector"), [0, 0, 0, 0]), "the covector does not span the dual")
    rejected(with_value(certificate, ("kinds", 0, "element"), [[1, []]]), "the element does not kill the vector")


def test_a_size_beyond_the_bound_is_refused():
    for name, fault in [
        ("chain, a field", "states 0 and 1 are told apart"),
        ("chain, several levels", r"kind \d has more copies above level \d than are listed|are told apart"),
        ("chain, simple", "states . and . are told apart"),
    ]:
        certificate = CERTIFICATES[name]
        size = int(certificate["family"][6:-1])
        rejected({**certificate, "family": f"block({size + 1})"}, fault)


def test_ranks_of_heads_and_fields_are_checked():
    rejected({**CERTIFICATES["factors, enough"], "family": "householder(1)"}, "a letter needs 2 factors in a head")
    rejected(
        {**CERTIFICATES["chain, a field"], "field": "C"}, "comes after level 1, where it may be needed|are told apart"
    )
    rejected({**CERTIFICATES["blocks, a complex field"], "field": "R"}, "a block has size 2, more than 1")
    rejected({**CERTIFICATES["blocks, a real field"], "field": "Q"}, "a block has numbers that are not rational")
    rejected(
        {**CERTIFICATES["chain, simple"], "field": "F"}, "is not a field: rational, real and complex are Q, R and C"
    )
