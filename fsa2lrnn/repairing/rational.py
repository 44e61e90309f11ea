"""Affine images with integer functions, as exact arithmetic requires (L7 of docs/theory.md §8).

A learned affine image may be irrational for two reasons. It may belong to a family, such as registers that encode their
values by arbitrary numbers: then a rational member is near. Or it may be isolated, such as a rotation by 2π/5: then the
smallest rational image is larger, and contains its algebraic conjugates as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from flint import fmpz_mat

from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.repairing.representation import Representation, leaving_equations, orthonormal

_PRECISION = 49  # bits of precision in the search for integer relations among functions
_NEWTON, _CHOICES = 30, 8


@dataclass(frozen=True, eq=False)
class RationalImage:
    """An exact dyadic image that contains the learned functions as E φ(q) + e.

    Args:
        image: the image, with dyadic φ, B and u that are exact in float64.
        E, e: (r, r'), (r,), with r' ≥ r the rank of `image`.
    """

    image: Representation
    E: np.ndarray
    e: np.ndarray


def rational_image(image: Representation, bits: int) -> RationalImage:
    """Return the smallest dyadic image near a given one, with `bits` binary places for free parameters.

    Raises `NotExpressible` if no such member of the image's family is found.
    """
    _, first, classes = np.unique(image.phi.round(8), axis=0, return_index=True, return_inverse=True)
    classes = classes.ravel()  # functions equal on two states stay equal after any letter
    delta = classes[image.delta[:, first]]
    candidates = (_integer_functions(phi, bits) for phi in _near_rational(delta, image.phi[first], bits))
    functions = min(candidates, key=lambda functions: functions.shape[1])
    scale = 2.0 ** np.round(np.log2(np.sqrt((functions**2).mean(0))))
    values = (functions / scale)[classes]
    wide = np.hstack([values, np.ones((len(values), 1))])
    maps = np.stack([np.linalg.lstsq(wide, values[row], rcond=None)[0].T for row in image.delta])
    unit = np.append(scale, 1.0)
    maps = np.round(maps * scale[:, None] / unit) / scale[:, None] * unit  # integers in units of the functions' scale
    exact = np.array_equal(values[image.delta], wide @ maps.swapaxes(1, 2))
    if not exact:
        raise NotExpressible(
            f"no rational image of the machine was found near the {image.rank} functions of a block: of "
            f"{functions.shape[1]} integer functions some letter makes others"
        )
    back = np.linalg.lstsq(wide, image.phi, rcond=None)[0].T
    dyadic = Representation(values, maps[:, :, :-1], maps[:, :, -1], image.delta)
    return RationalImage(dyadic, back[:, :-1], back[:, -1])


def _near_rational(delta: np.ndarray, phi: np.ndarray, bits: int) -> Iterator[np.ndarray]:
    """Yield members of φ's family of images with as many dyadic coordinates as the family has dimensions.

    In the chart of r + 1 affinely independent states, every other state has barycentric coordinates. The dyadic ones
    determine the others, which may still be irrational, so several choices are tried.
    """
    n = len(phi)
    pivots = _independent_rows(np.hstack([phi, np.ones((n, 1))]))
    others = np.setdiff1d(np.arange(n), pivots)
    basis, rest = orthonormal(phi)
    J, _ = leaving_equations(delta, basis, rest)
    _, sizes, right = np.linalg.svd(J)
    free = right[int((sizes > 1e-8).sum()) :]  # (d, (n - r - 1)·r)
    if not len(free):
        yield phi
        return
    speeds = _chart(basis, rest, pivots, others)[1] @ free.T
    for _ in range(_CHOICES):
        chosen = _independent_rows(speeds)
        if len(chosen) < len(free):
            return
        yield _solve_chart(delta, basis, rest, (pivots, others), chosen, bits)
        speeds[chosen[0]] = 0


def _solve_chart(
    delta: np.ndarray,
    basis: np.ndarray,
    rest: np.ndarray,
    places: tuple[np.ndarray, np.ndarray],
    order: np.ndarray,
    bits: int,
) -> np.ndarray:
    """Return a basis (n, r) of the near invariant space whose chart entries `order` have `bits` binary places.

    Newton's method on Y, with the space spanned by basis + rest @ Y: J is the derivative of the part by which letters
    leave the space. `places` are the rows of the pivots and of the other states.
    """
    r = basis.shape[1]
    J, leaving = leaving_equations(delta, basis, rest)
    chart, moves = _chart(basis, rest, *places)
    goal = np.round(chart.ravel()[order] * 2.0**bits) / 2.0**bits
    # Newton steps: the space stays invariant under all letters, and the chosen coordinates become dyadic.
    for _ in range(_NEWTON):
        missed = np.concatenate([-leaving.ravel(), goal - chart.ravel()[order]])
        if np.abs(missed).max() < 1e-14:
            break
        step = np.linalg.lstsq(np.concatenate([J, moves[order]]), missed, rcond=1e-10)[0]
        basis, rest = orthonormal(basis + rest @ step.reshape(-1, r))
        J, leaving = leaving_equations(delta, basis, rest)
        chart, moves = _chart(basis, rest, *places)
    return basis


def _chart(
    basis: np.ndarray, rest: np.ndarray, pivots: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return barycentric coordinates of other states, and their derivative in Y of basis + rest @ Y.

    Returns:
        (n − r − 1, r + 1) and ((n − r − 1)·(r + 1), (n − r − 1)·r).
    """
    n, r = basis.shape
    wide = np.hstack([basis, np.ones((n, 1))])
    inverse = np.linalg.inv(wide[pivots])
    chart = wide[others] @ inverse
    shifts = rest[others] - chart @ rest[pivots]  # (n-r-1, n-r-1)
    return chart, np.kron(shifts, inverse[:r].T)


def _independent_rows(rows: np.ndarray) -> np.ndarray:
    """Return the numbers of well-conditioned independent rows: pivoted Gram-Schmidt, the longest remainder first."""
    left, chosen = rows.astype(float).copy(), []
    for _ in range(min(rows.shape)):
        sizes = np.linalg.norm(left, axis=1)
        i = int(sizes.argmax())
        if sizes[i] < 1e-9:
            break
        chosen.append(i)
        left -= np.outer(left @ left[i], left[i]) / sizes[i] ** 2
    return np.array(chosen)


def _integer_functions(phi: np.ndarray, bits: int) -> np.ndarray:
    """Return a basis (n, r') of the integer functions, 0 on the first state, in the smallest rational space with φ."""
    n = len(phi)
    wide = np.hstack([phi, np.ones((n, 1))])
    scaled = np.round(np.linalg.qr(wide)[0] * 2.0**_PRECISION).astype(np.int64)
    reduced = _table(fmpz_mat(np.hstack([np.eye(n, dtype=np.int64), scaled]).tolist()).lll())
    by_chance = 2.0 ** (_PRECISION * wide.shape[1] / n)  # the approximate least size of chance relations
    largest = min(2.0 ** (2 * bits + 6), by_chance / 8)
    relations = [row[:n] for row in reduced if _is_relation(row, n, largest)]
    at_first = [1] + [0] * (n - 1)
    return np.array(_kernel([*relations, at_first], n), dtype=np.float64).T


def _is_relation(row: list[int], n: int, largest: float) -> bool:
    size = sum(abs(z) for z in row[:n])
    return size < largest and max(abs(z) for z in row[n:]) <= 2 * size


def _kernel(rows: list[list[int]], n: int) -> list[list[int]]:
    heavy = 1 << 60
    wide = [[int(i == j) for j in range(n)] + [heavy * row[i] for row in rows] for i in range(n)]
    reduced = _table(fmpz_mat(wide).lll())
    return [row[:n] for row in reduced if not any(row[n:])]


def _table(matrix: fmpz_mat) -> list[list[int]]:
    return [[int(entry) for entry in row] for row in matrix.tolist()]
