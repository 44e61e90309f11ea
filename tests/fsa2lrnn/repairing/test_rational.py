"""Images with integer functions: near where there is a choice, larger where a rotation asks for it."""

from fractions import Fraction

import numpy as np
import pytest

from fsa2lrnn.repairing.rational import rational_image
from fsa2lrnn.repairing.representation import Representation


def image_of(delta, phi):
    """The image whose functions are given, B and u by least squares."""
    wide = np.hstack([phi, np.ones((len(phi), 1))])
    maps = np.stack([np.linalg.lstsq(wide, phi[row], rcond=None)[0].T for row in delta])
    return Representation(phi, maps[:, :, :-1], maps[:, :, -1], delta)


def cycle(n, k=1):
    """Addition of 0 and 1 modulo n with a copy of 0 as initial state, and its rotation of frequency k."""
    q = np.append(np.arange(n), 0)
    angles = 2 * np.pi * k * q / n
    delta = np.stack([q, (q + 1) % n])
    return image_of(delta, np.stack([np.cos(angles), np.sin(angles)], axis=1)[:, : 1 if 2 * k == n else 2])


def register(values):
    """The first letter's value, and a function of the initial state alone."""
    n = len(values)
    delta = np.stack([np.append(np.arange(n), a) for a in range(n)])
    return image_of(delta, np.stack([[*values, 0.0], [0.0] * n + [1.0]], axis=1))


def check_exactly(found, delta):
    phi, B, u = (
        np.vectorize(Fraction, otypes=[object])(part) for part in (found.image.phi, found.image.B, found.image.u)
    )
    for a, row in enumerate(delta):
        assert (phi[row] == phi @ B[a].T + u[a]).all()


@pytest.mark.parametrize(
    ("n", "k", "rank"),
    [(2, 1, 1), (3, 1, 2), (4, 1, 2), (6, 1, 2), (6, 3, 1), (5, 2, 4), (7, 1, 6), (8, 3, 4), (12, 1, 4)],
)
def test_a_rotation_of_order_m_needs_phi_of_m_functions(n, k, rank):
    image = cycle(n, k)
    found = rational_image(image, 5)
    assert found.image.rank == rank
    check_exactly(found, image.delta)
    assert np.allclose(found.image.phi @ found.E.T + found.e, image.phi)


def test_values_of_a_register_are_rounded():
    image = register([0.123, -0.77, 0.5001, 1.0])
    errors = []
    for bits in (3, 6, 9):
        found = rational_image(image, bits)
        assert found.image.rank == 2
        check_exactly(found, image.delta)
        errors.append(np.abs(found.image.phi @ found.E.T + found.e - image.phi).max())
    assert errors[0] < 0.1
    assert errors[2] < errors[0]
    assert errors[2] < 2e-3


def test_registers_of_like_values_stay_alike():
    found = rational_image(register([0.3, 0.3, -0.9, 0.1]), 6)
    assert (found.image.phi[0] == found.image.phi[1]).all()


def test_a_member_of_a_family_near_the_one_learned():
    """The plane of S₃ in its regular representation, turned by an angle of chance: one parameter, no rational value."""
    from fsa2lrnn.automata import zoo

    machine = zoo.group("S3")
    turn = np.array([[-0.5, -np.sqrt(3) / 2], [np.sqrt(3) / 2, -0.5]])
    flip = np.diag([1.0, -1.0])
    vector = {machine.start: np.array([np.cos(0.7), np.sin(0.7)])}
    # Any assignment of matrices to letters that the group respects will do: look for one.
    elements = [np.linalg.matrix_power(turn, i) @ np.linalg.matrix_power(flip, j) for i in range(3) for j in range(2)]
    for matrices in ([elements[i] for i in choice] for choice in np.ndindex(*(6,) * len(machine.alphabet))):
        values, consistent = dict(vector), True
        waiting = [machine.start]
        for q in waiting:
            for a, matrix in enumerate(matrices):
                target, value = int(machine.delta[a, q]), matrix @ values[q]
                if target not in values:
                    values[target] = value
                    waiting.append(target)
                consistent = consistent and np.allclose(values[target], value)
        phi = np.stack([values[q] for q in range(6)])
        if consistent and len(np.unique(phi.round(6), axis=0)) == 6:
            break
    delta = np.hstack([machine.delta, machine.delta[:, machine.start : machine.start + 1]])
    image = image_of(delta, np.vstack([phi, phi[machine.start]]))
    found = rational_image(image, 6)
    assert found.image.rank in (2, 4)
    check_exactly(found, delta)
    assert np.abs(found.image.phi @ found.E.T + found.e - image.phi).max() < 0.1
