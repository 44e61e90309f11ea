"""Instructions on complex states, against complex numbers of numpy."""

import numpy as np
from numba import njit

from fsa2lrnn.extra.baselines.kernels.states import States
from fsa2lrnn.lrnn.compiled.vectors import instruction

WIDTH, N = 4, 3


def _write(rows, x, at, k, h, H, n, out, to, total, j):
    """out = conj(x)·(k₀x + k₁), total = Σ Re (k₁ x), small numbers 0; k₁ of dk gets 2x."""

    def terms(i):
        own, (first, second) = rows.pair(x, at, i, n), (rows.coefficient(kind, k, h, i, H, n) for kind in (0, 1))
        found = rows.against(own, rows.product(first, own, second), (rows.constant(0.0), rows.constant(0.0)))
        bound = rows.constant(1.0)
        rows.put((rows.at_least(found[0], bound), rows.at_least(found[1], bound)), out, to, i, n)
        rows.add(rows.scaled(rows.constant(2.0), rows.conjugate(rows.conjugate(own))), 1, k, h, i, H, n)
        return [rows.real_product(second, own)]

    (found,) = rows.totals(n, terms, 1)
    rows.store(found, total, j)


_instruction = instruction(_write, States)


@njit
def _run(x, k, out, total):
    _instruction(WIDTH, (x, 0, k, 0, WIDTH, N, out, 0, total, 0))


def test_states_are_complex_numbers():
    draw = np.random.default_rng(0).standard_normal
    x, k = draw((2, N, WIDTH)), draw((2, 2, N, WIDTH))
    complex_x, first, second = (each[0] + 1j * each[1] for each in (x, k[0], k[1]))
    out, total, changed = np.empty_like(x), np.empty(WIDTH), k.copy()
    _run(x.ravel(), changed.ravel(), out.ravel(), total)
    wanted = np.conj(complex_x) * (first * complex_x + second)
    for part, found in ((wanted.real, out[0]), (wanted.imag, out[1])):
        assert np.allclose(found, np.where(np.abs(part) < 1, 0, part))
    assert np.allclose(total, (second * complex_x).real.sum(0))
    assert np.allclose(changed[1] - k[1], 2 * x)
    assert np.array_equal(changed[0], k[0])
