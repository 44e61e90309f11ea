"""Initial systems of state-space layers: HiPPO-LegS (Gu et al. 2020) and its diagonal approximations (S4D).

A system of N real states is represented in a basis in which all entries come in conjugate pairs; the N/2 entries with
negative imaginary parts are stored. A sum over all N states is twice the real part of the sum over the stored half.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsa2lrnn.errors import UnsupportedFormat

Real, Complex = NDArray[np.floating[Any]], NDArray[np.complexfloating[Any, Any]]

MOST_STATES = 1024  # a small file can request any number
LARGEST_INPUT = 2.0  # |Im B| to which the released S4 cuts B of LegS


class Start(NamedTuple):
    """The stored half of A = diag(poles) − P P*, and B: n = N/2 entries each. P is None where A is diagonal."""

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
    """Return LegS as a diagonal matrix minus P P*.

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
    """Return S4D-Lin: frequencies 0, π, 2π, …, and B = 1."""
    n = N // 2
    return Start(-0.5 - 1j * np.pi * np.arange(n), np.ones(n, np.complex128))


def diagonal_inv(N: int) -> Start:
    """Return S4D-Inv: frequencies (N/π)(N/(2k + 1) − 1), and B = 1."""
    n = N // 2
    return Start(-0.5 - 1j * N / np.pi * (N / (2 * np.arange(n) + 1) - 1), np.ones(n, np.complex128))


def diagonal_legs(N: int) -> Start:
    """Return S4D-LegS: LegS without its rank-one part."""
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
