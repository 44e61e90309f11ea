"""Lanes are followed by every letter and are the numbers they say; integer coordinates of fixed layers."""

import cmath
import itertools

import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import example, given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import represent
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.families.lanes import Lane, basis_zero_at
from fsa2lrnn.families.verdicts import Witness
from fsa2lrnn.testing.strategies import machines, permutation_machines

DIAGONAL = [family for family, form in FORCED.items() if form.eigenvalues]
LARGEST_ORDER = {"diagonal[0,1]": 1, "diagonal[-1,1]": 2}


def numbers(lane):
    """Multipliers, values and shifts of a lane as complex floats, by the definition."""
    zeta = cmath.exp(2j * cmath.pi / lane.order)

    def value(coefficients):
        return sum(c * zeta**i for i, c in enumerate(coefficients))

    multipliers = [0 if k is None else zeta**k for k in lane.exponents]
    return multipliers, [value(f) for f in lane.values], [value(v) for v in lane.shifts]


def check_lanes(witness):
    delta = witness.machine.delta
    for lane in witness.form:
        multipliers, f, v = numbers(lane)
        for a, q in itertools.product(range(len(delta)), range(delta.shape[1])):
            assert abs(multipliers[a] * f[q] + v[a] - f[delta[a, q]]) < 1e-9 * (1 + abs(f[q]))
        assert f[witness.machine.start] == 0
        assert lane.order <= LARGEST_ORDER.get(witness.family, lane.order)
        assert len(set(lane.exponents)) == 1 or FORCED[witness.family].letters == "commuting"
    codes = list(zip(*(lane.values for lane in witness.form), strict=True))
    assert len(set(codes)) == len(codes)


@given(machines(5, 3), st.sampled_from(DIAGONAL))
def test_every_letter_moves_a_lane_as_it_says(machine, family):
    witness = represent(machine, family, short_words=False)
    if isinstance(witness, Witness) and witness.form:
        check_lanes(witness)


@given(permutation_machines(6, 1), st.sampled_from(["lti-diagonalisable", "diagonal-complex"]))
@example(zoo.sum_mod(12), "diagonal-complex")
@example(zoo.group("Z4xZ2"), "diagonal-complex")
@example(zoo.group("Z60"), "diagonal-complex")
def test_a_permutation_turns_its_lanes(machine, family):
    witness = represent(machine, family)
    assert isinstance(witness, Witness)
    if witness.form:
        check_lanes(witness)


@given(machines(4, 3), st.sampled_from(DIAGONAL))
def test_no_lane_is_superfluous(machine, family):
    witness = represent(machine, family, short_words=False)
    if not isinstance(witness, Witness):
        return
    n = witness.machine.n_states
    for left_out in witness.form:
        rest = [lane.values for lane in witness.form if lane is not left_out]
        assert len(set(zip(*rest, strict=True))) < n
    assert len(witness.form) < n


@pytest.mark.parametrize("M", [2, 3, 4, 5, 7, 8, 9])
def test_a_sum_modulo_a_power_of_a_prime_is_kept_in_one_rotation(M):
    (lane,) = represent(zoo.sum_mod(M), "diagonal-complex").form
    assert (lane.order, lane.dimension) == (M, 1 if M == 2 else 2)
    assert sorted(lane.exponents) == list(range(M))


def test_a_flip_flop_is_one_lane_that_keeps_or_forgets():
    (lane,) = represent(zoo.flip_flop(), "diagonal[0,1]").form
    assert (lane.order, lane.exponents) == (1, (None, None, 0))
    assert lane.values[0] == lane.shifts[1] == lane.shifts[2] == (0,)
    assert lane.values[1] == lane.shifts[0] in ((1,), (-1,))


@pytest.mark.parametrize("order", range(1, 25))
def test_multipliers_are_roots_of_unity_and_exact_on_the_axes(order):
    lane = Lane(order, (None, *range(order)), (), ())
    assert lane.multiplier(0) == 0
    for k in range(order):
        found, expected = lane.multiplier(k + 1), cmath.exp(2j * cmath.pi * k / order)
        assert abs(found - expected) < 1e-15
        if 4 * k % order == 0:
            assert found == (1, 1j, -1, -1j)[4 * k // order]


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 12])
def test_numbers_are_polynomials_in_the_root(order):
    lane = Lane(order, (0,), (), ())
    degree = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 12: 4}[order]
    coefficients = (3, -7, 2, 5)[:degree]
    zeta = cmath.exp(2j * cmath.pi / order)
    assert abs(lane.number(coefficients) - sum(c * zeta**i for i, c in enumerate(coefficients))) < 1e-13
    assert lane.is_integer == (order in (1, 2, 4))
    if lane.is_integer:
        assert lane.number(coefficients) == (3 if order < 4 else 3 - 7j)


@given(st.integers(1, 4), st.integers(1, 5), st.data())
def test_a_basis_zero_at_the_start_spans_the_functions_up_to_constants(k, n, data):
    entries = data.draw(st.lists(st.integers(-3, 3), min_size=k * n, max_size=k * n))
    functions, start = np.array(entries, dtype=object).reshape(k, n), data.draw(st.integers(0, n - 1))
    basis = basis_zero_at(functions, start)
    assert not basis[:, start].any()
    shifted = (functions - functions[:, [start]]).astype(float)
    rank = np.linalg.matrix_rank(shifted)
    assert len(basis) == rank
    assert np.linalg.matrix_rank(np.concatenate([shifted, basis.astype(float)])) == rank


def check_affine(witness):
    form, machine = witness.form, witness.machine
    d, n = form.dimension, machine.n_states
    A, x = np.array(form.A, dtype=object).reshape(d, d), np.array(form.vectors, dtype=object).reshape(n, d)
    for a, q in itertools.product(range(len(machine.alphabet)), range(n)):
        assert (A @ x[q] + np.array(form.shifts[a], dtype=object) == x[machine.delta[a, q]]).all()
    assert not x[machine.start].any()
    assert len(set(form.vectors)) == n
    assert all(type(entry) is int for rows in (form.A, form.shifts, form.vectors) for row in rows for entry in row)
    if d:  # the vectors generate all integer points, so that none of them can be smaller throughout
        hermite = fmpz_mat(x.tolist()).hnf()
        assert [[int(hermite[i, j]) for j in range(d)] for i in range(d)] == np.eye(d, dtype=int).tolist()


@given(machines(6, 1))
def test_a_machine_of_one_letter_has_integer_coordinates(machine):
    witness = represent(machine, "lti")
    assert isinstance(witness, Witness)
    check_affine(witness)


@given(machines(4, 3))
def test_every_witness_has_integer_coordinates(machine):
    witness = represent(machine, "lti", short_words=False)
    if isinstance(witness, Witness):
        check_affine(witness)


@pytest.mark.parametrize(
    ("source", "dimension"),
    [(f"shift_register({n})", n) for n in range(1, 6)]
    + [(f"length_mod({n})", n - 1) for n in range(2, 8)]
    + [("remainder(8)", 3)],
)
def test_coordinates_of_the_zoo(source, dimension):
    witness = represent(zoo.from_task(source), "lti")
    check_affine(witness)
    assert (witness.dimension, witness.is_exact) == (dimension, True)
    assert witness.explain() == f"An integer matrix of {dimension} dimensions, the same for every letter."
