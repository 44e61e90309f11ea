"""Dead-beat blocks in dyadic numbers: all operations are exact, so the reachable states are finite bit for bit.

A dead-beat block x ↦ W_a (U x + c) + w_a with U W_a = B_a and U w_a = u_a − c implements φ exactly in exact arithmetic.
U is rounded to few binary places first; then W_a, w_a and x₀ are chosen among the dyadic solutions of these equations,
near the target block. If the rational image has more functions than were learned, the additional ones are written into
the block's directions of least variance, at a moderate amplitude.

Exact arithmetic requires affine images with integer functions (L7 of docs/theory.md §8). A learned image may be
irrational for two reasons. It may belong to a family, such as registers that encode their values by arbitrary numbers:
then a rational member is near. Or it may be isolated, such as a rotation by 2π/5: then the smallest rational image is
larger, and contains its algebraic conjugates as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from flint import fmpz_mat

from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.repairing.observed import BlockObservations
from fsa2lrnn.repairing.probe import Block, ReadoutProbe
from fsa2lrnn.repairing.representation import Representation, leaving_equations, orthonormal

_OF_INITIAL = 1e-4  # weight of x₀ in the mean, so small that it matters only if other states do not determine the mean


@dataclass(frozen=True, eq=False)
class DeadbeatBlock:
    """The block x ↦ W_a (U x + c) + w_a, whose step depends only on the functions φ of the state that it represents.

    With φ(q) = U x + c exact (L6), let x₁ + R φ be the mean state for given functions, U R = 1, U x₁ + c = 0. Replacing
    the state by this mean gives tables A_a R U: a state is then W_a φ(q') + w_a, with the last letter a and the state
    q' before it, so that only finitely many states are reachable.

    Args:
        W, w: (|Σ|, b, r), (|Σ|, b); x0: (b,).
        probe: U (r, b) and c (r,).
    """

    W: np.ndarray
    w: np.ndarray
    x0: np.ndarray
    probe: ReadoutProbe

    @property
    def block(self) -> Block:
        """The block as tables A_a = W_a U, v_a = W_a c + w_a."""
        return Block(self.W @ self.probe.U, self.W @ self.probe.c + self.w, self.x0)

    def states(self, image: Representation) -> np.ndarray:
        """Return the states after each letter and each machine state before it: (|Σ|, n + 1, b)."""
        return image.phi @ self.W.swapaxes(1, 2) + self.w[:, None]


def dead_beat(block: Block, image: Representation, probe: ReadoutProbe, observed: BlockObservations) -> DeadbeatBlock:
    """Return the dead-beat version of a repaired block; `observed` are states of the repaired block."""
    phi = np.vstack([image.phi[observed.state], image.phi[-1]])
    x = np.vstack([observed.x, block.x0])
    weights = np.append(observed.weights, _OF_INITIAL)
    extended = BlockObservations(x, np.append(observed.state, len(image.phi) - 1), weights)
    # Least squares of the states by the functions and 1: the mean state is x₁ + R φ.
    mean = extended.solve(np.hstack([phi, np.ones((len(phi), 1))]), x)
    R, x1 = mean[:-1].T, mean[-1]
    # Corrected so that U R = 1 and U x₁ + c = 0: replacing a state by its mean keeps the functions read from it.
    back = np.linalg.pinv(probe.U)
    R = R + back @ (np.eye(image.rank) - probe.U @ R)
    x1 = x1 - back @ (probe.U @ x1 + probe.c)
    return DeadbeatBlock(block.A @ R, block.A @ x1 + block.v, block.x0, probe)


def forget(block: Block, observed: BlockObservations) -> Block:
    """Return a block without an image, whose state depends only on the last letter: A is 0."""
    return Block(np.zeros_like(block.A), block.v + block.A @ observed.mean, block.x0)


AMPLITUDES = (0.3, 0.15, 0.6)  # of additional functions, relative to the learned ones
_TRIES = 32


@dataclass(frozen=True)
class Places:
    """The numbers of binary places of U, of W, w and x₀, and of the free parameters of an image."""

    U: int
    W: int
    phi: int


# From many places to few: the first are exact in float64, the last in float32.
PLACES = tuple(Places(*p) for p in ((9, 18, 8), (7, 14, 7), (5, 10, 6), (4, 8, 5), (3, 7, 5), (3, 6, 4), (2, 5, 3)))


@dataclass(frozen=True, eq=False)
class DyadicBlock:
    """A dead-beat block in dyadic numbers, and the image that it implements without rounding."""

    beat: DeadbeatBlock
    image: Representation

    @property
    def block(self) -> Block:
        """The tables of the block, exact in float64."""
        return self.beat.block

    @property
    def bits(self) -> int:
        """The number of binary digits of all partial sums of A x + v at all reachable states, in any order."""
        block = self.block
        x = np.concatenate([self.beat.states(self.image).reshape(-1, len(block.x0)), block.x0[None]])
        # T26: all products and offsets are multiples of 2^−unit, and `sums` bounds every partial sum.
        unit = max(_places(block.A) + _places(x), _places(block.v))
        sums = np.einsum("aij,nj->nai", np.abs(block.A), np.abs(x)) + np.abs(block.v)
        return unit + int(np.ceil(np.log2(max(sums.max(), 1e-300))))


def round_block(beat: DeadbeatBlock, image: Representation, places: Places, amplitude: float) -> DyadicBlock:
    """Return a dead-beat block in dyadic numbers near a given one, with these numbers of binary places.

    Raises `NotExpressible` if the image is rational only in more dimensions than the block has, or no rounding of U was
    found for which the equations have solutions.
    """
    rational = rational_image(image, places.phi)
    b = beat.w.shape[1]
    if rational.image.rank > b:
        raise NotExpressible(
            f"the {image.rank} functions that a block of size {b} carries are rational only together with others, "
            f"{rational.image.rank} in all (L7): no exact arithmetic in a block this small"
        )
    wide = _widen(beat, rational, amplitude)
    return round_near(wide, rational.image, places)


def _widen(beat: DeadbeatBlock, rational: RationalImage, amplitude: float) -> DeadbeatBlock:
    """Return a dead-beat block for the functions of a rational image, near one for the learned functions E φ + e.

    Additional functions, the complement of E's rows, are written at `amplitude` into the unread directions of least
    variance. The read-out is then fitted to all of them.
    """
    image, (r, wider) = rational.image, rational.E.shape
    W, w = beat.W @ rational.E, beat.W @ rational.e + beat.w
    if wider == r:
        back = np.linalg.inv(rational.E)
        return DeadbeatBlock(W, w, beat.x0, ReadoutProbe(back @ beat.probe.U, back @ (beat.probe.c - rational.e)))
    directions = _quiet_directions(DeadbeatBlock(W, w, beat.x0, beat.probe), image, beat.probe.U, wider - r)
    # The last right singular vectors span the complement of E's rows: the functions that were not learned.
    others = np.linalg.svd(rational.E)[2][r:]  # (r' - r, r')
    values = image.phi[:-1] @ others.T
    others = others / np.sqrt(((values - values.mean(0)) ** 2).mean()) * amplitude * _size(image, W)
    written = directions @ others  # (b, r')
    W, w = W + written @ image.B, w + image.u @ written.T - written @ image.phi[:-1].mean(0)
    x = (image.phi @ W.swapaxes(1, 2) + w[:, None]).reshape(-1, w.shape[1])
    phi = image.phi[image.delta].reshape(-1, wider)
    x, phi = np.vstack([x, beat.x0]), np.vstack([phi, image.phi[-1]])
    readout = ridge(x, phi)
    return DeadbeatBlock(W, w, beat.x0, ReadoutProbe(readout[:-1].T, readout[-1]))


def _size(image: Representation, W: np.ndarray) -> float:
    spread = (image.phi[:-1] - image.phi[:-1].mean(0)) @ W.mean(0).T
    return float(np.sqrt((spread**2).sum(1).mean() / image.rank))


def _quiet_directions(beat: DeadbeatBlock, image: Representation, U: np.ndarray, k: int) -> np.ndarray:
    # The kernel of U, in which changes of the state are not read.
    unread = np.linalg.svd(U)[2][len(U) :].T  # (b, b - r)
    x = beat.states(image).reshape(-1, len(unread)) @ unread
    # Eigenvalues ascend, so the first directions have the least variance.
    _, directions = np.linalg.eigh(np.cov(x.T))
    return unread @ directions[:, :k]


def ridge(x: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Return the affine fit (b + 1, r) of phi (N, r) by x (N, b), damped least squares; the constant is last."""
    wide = np.hstack([x, np.ones((len(x), 1))])
    gram = wide.T @ wide
    damping = np.append(np.full(x.shape[1], 1e-4 * np.trace(gram) / len(gram)), 0)
    return np.linalg.solve(gram + np.diag(damping), wide.T @ phi)


def round_near(target: DeadbeatBlock, image: Representation, places: Places) -> DyadicBlock:
    """Return a dyadic block near `target` that implements a dyadic image; raise `NotExpressible` as `round_block`."""
    rng = np.random.default_rng(0)
    unit = 2.0**places.U
    for attempt in range(_TRIES):
        # U rounded to the grid must have images that generate the whole grid; random rounding finds such a U if the
        # nearest one fails.
        dither = rng.uniform(-0.5, 0.5, target.probe.U.shape) if attempt else 0.0
        U = np.round(target.probe.U * unit + dither) / unit
        coset = Coset(U, places.U, places.W)
        if coset.is_onto:
            break
    else:
        raise NotExpressible(
            f"no rounding of U to {places.U} binary places leaves equations that dyadic numbers solve: "
            "give it more places"
        )
    x = target.states(image).reshape(-1, U.shape[1])
    fine = 2.0 ** (places.U + places.W)
    c = np.round((image.phi[image.delta].reshape(-1, len(U)) - x @ U.T).mean(0) * fine) / fine
    W = np.stack(
        [
            np.stack([coset.nearest(B[:, i], near[:, i]) for i in range(len(U))], axis=1)
            for B, near in zip(image.B, target.W, strict=True)
        ]
    )
    w = np.stack([coset.nearest(u - c, near) for u, near in zip(image.u, target.w, strict=True)])
    x0 = coset.nearest(image.phi[-1] - c, target.x0)
    return DyadicBlock(replace(target, W=W, w=w, x0=x0, probe=ReadoutProbe(U, c)), image)


def _places(numbers: np.ndarray) -> int:
    """Return the number of binary places after the point that represent all numbers, at most 200.

    >>> _places(np.array([0.5, 3.0, 0.125]))
    3
    """
    for places in range(200):
        scaled = np.ldexp(numbers, places)
        if np.array_equal(scaled, np.round(scaled)):
            return places
    return 200


_HEAVY = 1 << 40


class Coset:
    """The coset of vectors z on the grid 2^−grid with U z = t, for U (r, b) on the grid 2^−coarse.

    `is_onto` holds if such a z exists for every t on the grid 2^−(grid + coarse).

    >>> half = Coset(np.array([[0.5, 1.0]]), coarse=1, grid=3)
    >>> half.is_onto, half.nearest(np.array([0.75]), np.array([0.0, 1.0])).tolist()
    (True, [0.0, 0.75])
    """

    def __init__(self, U: np.ndarray, coarse: int, grid: int) -> None:
        r, b = U.shape
        # LLL reduces the rows [e_i | heavy · U e_i]: short rows are a basis of the kernel, the others lift the images.
        whole = np.round(U * 2.0**coarse).astype(np.int64)
        wide = np.hstack([np.eye(b, dtype=np.int64), _HEAVY * whole.T])
        reduced = np.array([[int(entry) for entry in row] for row in fmpz_mat(wide.tolist()).lll().tolist()], object)
        images = reduced[:, b:] // _HEAVY  # U times each basis vector
        is_kernel = np.array([not any(row) for row in images])
        self._kernel = reduced[is_kernel, :b].astype(np.float64)  # (b - r, b)
        self._lifts = reduced[~is_kernel, :b].astype(np.float64)
        self._images = images[~is_kernel].astype(np.float64)
        self._q, self._r = np.linalg.qr(self._kernel.T)
        self._units = 2.0**grid, 2.0 ** (grid + coarse)
        # The images of the lifts generate the integer lattice iff their determinant is 1 or −1.
        self.is_onto = len(self._lifts) == r and bool(abs(abs(np.linalg.det(self._images)) - 1) < 0.5)

    def nearest(self, t: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return a solution near `near`: (r,), (b,) -> (b,). `t` must be on the grid, and the coset onto."""
        fine, finer = self._units
        # The integer combination of lifts with the image t, one solution; kernel vectors are then added to come near.
        parts = np.round(np.linalg.solve(self._images.T, np.round(t * finer)))
        particular = parts @ self._lifts
        rest = near * fine - particular
        target = self._q.T @ rest
        steps = np.zeros(len(target))
        # Babai's nearest-plane method: round one coordinate of the reduced kernel basis after the other.
        for i in reversed(range(len(steps))):
            steps[i] = np.round((target[i] - self._r[i, i + 1 :] @ steps[i + 1 :]) / self._r[i, i])
        return (particular + steps @ self._kernel) / fine


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
    # Powers of two, so that scaling functions to a size of about 1 does not round.
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
    # How fast each chart entry moves along the family's free directions: entries that move independently can be
    # prescribed.
    speeds = _chart(basis, rest, pivots, others)[1] @ free.T
    for _ in range(_CHOICES):
        chosen = _independent_rows(speeds)
        if len(chosen) < len(free):
            return
        yield _solve_chart(delta, basis, rest, (pivots, others), chosen, bits)
        # The next choice must do without the entry that was chosen first.
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
    # With W the rows of [φ 1], d(W_o W_p⁻¹) = (dW_o − chart dW_p) W_p⁻¹, and dW = [rest dY, 0].
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
    # LLL on [I | scaled basis]: a short row is an integer relation among the states that all functions satisfy, up to
    # rounding.
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
