"""HiPPO-LegS and the diagonal starts: what defines them, beside the numbers in ../data that test_official reads."""

import numpy as np
import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.kernels import hippo

N = 16


def doubled(x):
    """The stored half and its conjugates."""
    return np.concatenate([x, x.conj()])


def test_legs_is_normal_but_for_a_matrix_of_rank_one():
    A, _, P = hippo.legs(N)
    skew = A + np.outer(P, P) + np.eye(N) / 2
    assert np.allclose(skew, -skew.T)


def test_normal_plus_low_rank_is_legs_in_another_basis():
    A, B, P = hippo.legs(N)
    start = hippo.normal_plus_low_rank(N, clipped=False)
    whole = np.diag(doubled(start.poles)) - np.outer(doubled(start.P), doubled(start.P).conj())
    ours, theirs = doubled(start.B), B
    for _ in range(5):  # Markov parameters, with P as a read-out
        assert doubled(start.P).conj() @ ours == pytest.approx(P @ theirs, rel=1e-9)
        ours, theirs = whole @ ours, A @ theirs


def test_clipping_cuts_imaginary_parts_alone():
    cut, whole = hippo.normal_plus_low_rank(N).B, hippo.normal_plus_low_rank(N, clipped=False).B
    assert np.abs(whole.imag).max() > 2 >= np.abs(cut.imag).max()
    assert np.array_equal(cut.real, whole.real)
    assert np.array_equal(cut.imag, whole.imag.clip(-2, 2))


def test_the_basis_is_orthonormal_and_its_frequencies_ascend():
    poles, V = hippo.basis(N)
    assert np.allclose(V.conj().T @ V, np.eye(N))
    assert np.allclose(poles.real, -0.5)
    assert (np.diff(poles.imag) > 0).all()
    assert np.allclose(poles[: N // 2], poles[::-1][: N // 2].conj())


@pytest.mark.parametrize("make", [hippo.diagonal_lin, hippo.diagonal_inv, hippo.diagonal_legs])
def test_diagonal_starts_decay_and_turn_one_way(make):
    start = make(N)
    assert start.P is None
    assert len(start.poles) == len(start.B) == N // 2
    assert np.allclose(start.poles.real, -0.5)
    assert (start.poles.imag <= 0).all()


@pytest.mark.parametrize("make", [hippo.normal_plus_low_rank, hippo.diagonal_lin, hippo.diagonal_inv])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_odd_numbers_of_states_are_refused(make, n):
    with pytest.raises(UnsupportedFormat, match=f"d_state = {n}: states come in conjugate pairs, give an even number"):
        make(n)
