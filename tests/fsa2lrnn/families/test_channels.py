"""Channels follow every letter and are the numbers they say; integer coordinates; what hard channels compute."""

import cmath
import itertools

import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import example, given
from hypothesis import strategies as st

from fsa2lrnn import represent, zoo
from fsa2lrnn.families import Witness
from fsa2lrnn.families.channels import ScalarChannel, basis_zero_at
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.testing.strategies import machines, permutation_machines

DIAGONAL = [family for family, form in FORCED.items() if form.eigenvalues]
LARGEST_ORDER = {"diagonal[0,1]": 1, "diagonal[-1,1]": 2}


def numbers(channel):
    """Multipliers, values and shifts of a channel as complex floats, by the definition."""
    zeta = cmath.exp(2j * cmath.pi / channel.order)

    def value(coefficients):
        return sum(c * zeta**i for i, c in enumerate(coefficients))

    multipliers = [0 if k is None else zeta**k for k in channel.exponents]
    return multipliers, [value(f) for f in channel.values], [value(v) for v in channel.shifts]


def check_channels(witness):
    delta = witness.machine.delta
    for channel in witness.form:
        multipliers, f, v = numbers(channel)
        for a, q in itertools.product(range(len(delta)), range(delta.shape[1])):
            assert abs(multipliers[a] * f[q] + v[a] - f[delta[a, q]]) < 1e-9 * (1 + abs(f[q]))
        assert f[witness.machine.start] == 0
        assert channel.order <= LARGEST_ORDER.get(witness.family, channel.order)
        assert len(set(channel.exponents)) == 1 or FORCED[witness.family].letters == "commuting"
    codes = list(zip(*(channel.values for channel in witness.form), strict=True))
    assert len(set(codes)) == len(codes)


@given(machines(5, 3), st.sampled_from(DIAGONAL))
def test_every_letter_moves_a_channel_as_it_says(machine, family):
    witness = represent(machine, family, short_words=False)
    if isinstance(witness, Witness) and witness.form:
        check_channels(witness)


@given(permutation_machines(6, 1), st.sampled_from(["lti-diagonalisable", "diagonal-complex"]))
@example(zoo.sum_mod(12), "diagonal-complex")
@example(zoo.group("Z4xZ2"), "diagonal-complex")
@example(zoo.group("Z60"), "diagonal-complex")
def test_a_permutation_turns_its_channels(machine, family):
    witness = represent(machine, family)
    assert isinstance(witness, Witness)
    if witness.form:
        check_channels(witness)


@given(machines(4, 3), st.sampled_from(DIAGONAL))
def test_no_channel_is_superfluous(machine, family):
    witness = represent(machine, family, short_words=False)
    if not isinstance(witness, Witness):
        return
    n = witness.machine.n_states
    for left_out in witness.form:
        rest = [channel.values for channel in witness.form if channel is not left_out]
        assert len(set(zip(*rest, strict=True))) < n
    assert len(witness.form) < n


@pytest.mark.parametrize("order", range(1, 25))
def test_multipliers_are_roots_of_unity_and_exact_on_the_axes(order):
    channel = ScalarChannel(order, (None, *range(order)), (), ())
    assert channel.multiplier(0) == 0
    for k in range(order):
        found, expected = channel.multiplier(k + 1), cmath.exp(2j * cmath.pi * k / order)
        assert abs(found - expected) < 1e-15
        if 4 * k % order == 0:
            assert found == (1, 1j, -1, -1j)[4 * k // order]


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


@given(machines(4, 3))
def test_every_witness_has_integer_coordinates(machine):
    witness = represent(machine, "lti", short_words=False)
    if isinstance(witness, Witness):
        check_affine(witness)
