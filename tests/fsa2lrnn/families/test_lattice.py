"""Integer coordinates of an input-independent layer."""

import itertools

import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import given

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import represent
from fsa2lrnn.families.verdicts import Witness
from fsa2lrnn.testing.strategies import machines


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


def test_one_state_has_no_coordinates():
    form = represent(zoo.random_dfa(1, 2, seed=0), "lti").form
    assert (form.A, form.shifts, form.vectors, form.dimension) == ((), ((), ()), ((),), 0)
