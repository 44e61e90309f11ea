"""Initial systems of state-space layers: HiPPO-LegS (Gu et al. 2020) and its diagonal approximations (S4D).

A system of N real states is diagonalised: its poles come in conjugate pairs, of which only the N/2 with non-positive
imaginary parts are stored. A sum over all N states is twice the real part of the sum over the stored half.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsa2lrnn.errors import UnsupportedFormat

Real, Complex = NDArray[np.floating[Any]], NDArray[np.complexfloating[Any, Any]]

MOST_STATES = 1024  # a limit, because a small file can request any number of states
LARGEST_INPUT = 2.0  # the bound to which the published S4 code clips |Im B| of LegS


class Start(NamedTuple):
    """The stored half of a system A = diag(poles) − P P*, B: complex (N/2,) each; P is None if A is diagonal."""

    poles: Complex
    B: Complex
    P: Complex | None = None


def legs(N: int) -> tuple[Real, Real, Real]:
    """Return A (N, N), B (N,) and P (N,) of LegS: A + P Pᵀ is −½ I plus a skew-symmetric matrix.

    >>> A, B, P = legs(2)
    >>> (A + np.outer(P, P)).round(3).tolist()
    [[-0.5, 0.866], [-0.866, -0.5]]
    """
    B = np.sqrt(2 * np.arange(N) + 1.0)
    A = -np.tril(np.outer(B, B), -1) - np.diag(np.arange(N) + 1.0)
    return A, B, B / np.sqrt(2)


def basis(N: int) -> tuple[Complex, Complex]:
    """Return the poles (N,) and orthonormal eigenvectors (N, N) of the normal part A + P Pᵀ of LegS.

    The most negative frequency comes first. The phases of the eigenvectors depend on the linear algebra library.
    """
    A, _, P = legs(N)
    normal = A + np.outer(P, P)
    frequencies, vectors = np.linalg.eigh(-1j * (normal - normal.T) / 2)  # ascending
    return np.mean(np.diag(normal)) + 1j * frequencies, vectors


def normal_plus_low_rank(N: int, clipped: bool = True) -> Start:
    """Return HiPPO-LegS as a diagonal matrix minus P P*, for N states.

    With `clipped`, Im B is clipped to ±2, as in the published S4 code; then A and B together differ from LegS.
    """
    n = N // 2
    poles, V = (x[..., :n] for x in basis(N))
    _, B, P = legs(N)
    inputs = V.conj().T @ B
    if clipped:
        inputs = inputs.real + 1j * inputs.imag.clip(-LARGEST_INPUT, LARGEST_INPUT)
    return Start(poles, inputs, V.conj().T @ P)


def diagonal_lin(N: int) -> Start:
    """Return the initial system S4D-Lin: poles −½ − iπk for k < N/2, and B = 1."""
    n = N // 2
    return Start(-0.5 - 1j * np.pi * np.arange(n), np.ones(n, np.complex128))


def diagonal_inv(N: int) -> Start:
    """Return the initial system S4D-Inv: poles −½ − i(N/π)(N/(2k + 1) − 1) for k < N/2, and B = 1."""
    n = N // 2
    return Start(-0.5 - 1j * N / np.pi * (N / (2 * np.arange(n) + 1) - 1), np.ones(n, np.complex128))


def diagonal_legs(N: int) -> Start:
    """Return the initial system S4D-LegS: LegS without its rank-one part, with Im B clipped to ±2."""
    return normal_plus_low_rank(N)._replace(P=None)


def check_even(N: int, name: str) -> None:
    """Raise `UnsupportedFormat` unless N is even, positive and at most `MOST_STATES`."""
    if N < 2 or N % 2:
        raise UnsupportedFormat(f"{name} = {N}: states come in conjugate pairs, give an even number of at least 2")
    check_size(N, name)


def check_size(N: int, name: str) -> None:
    """Raise `UnsupportedFormat` for more than `MOST_STATES` states, because matrices of N² entries are built."""
    if N > MOST_STATES:
        raise UnsupportedFormat(f"{name} = {N:,}: at most {MOST_STATES:,} states make a system")
