"""Dead-beat blocks in dyadic numbers: no operation rounds, so that the reachable states close bit for bit.

A dead-beat block x ↦ W_a (U x + c) + w_a with U W_a = B_a and U w_a = u_a − c carries φ exactly in arithmetic that does
not round. U is rounded to few binary places first; then W_a, w_a and x₀ are taken near those wanted from the dyadic
solutions of these equations. Where the rational image has more functions than were learned, the others are written
into directions of the block in which least happens, at a moderate amplitude.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.repairing.deadbeat import DeadbeatBlock
from fsa2lrnn.repairing.lattice import Coset
from fsa2lrnn.repairing.probe import Block, ReadoutProbe
from fsa2lrnn.repairing.rational import RationalImage, rational_image
from fsa2lrnn.repairing.representation import Representation

AMPLITUDES = (0.3, 0.15, 0.6)  # of functions that are added, that of the functions learned being 1
_TRIES = 32


@dataclass(frozen=True)
class Places:
    """Binary places: of U, of W, w and x₀, of the numbers that an image leaves to be chosen."""

    U: int
    W: int
    phi: int


# From many places to few: float64 holds the first ones without rounding, float32 the last.
PLACES = tuple(Places(*p) for p in ((9, 18, 8), (7, 14, 7), (5, 10, 6), (4, 8, 5), (3, 7, 5), (3, 6, 4), (2, 5, 3)))


@dataclass(frozen=True, eq=False)
class DyadicBlock:
    """A dead-beat block in dyadic numbers, and the image that it carries without rounding."""

    beat: DeadbeatBlock
    image: Representation

    @property
    def block(self) -> Block:
        """Its tables, in float64 without rounding."""
        return self.beat.block

    @property
    def bits(self) -> int:
        """Binary digits that hold every partial sum of A x + v at every reachable state, in any order."""
        block = self.block
        x = np.concatenate([self.beat.states(self.image).reshape(-1, len(block.x0)), block.x0[None]])
        unit = max(_places(block.A) + _places(x), _places(block.v))
        sums = np.einsum("aij,nj->nai", np.abs(block.A), np.abs(x)) + np.abs(block.v)
        return unit + int(np.ceil(np.log2(max(sums.max(), 1e-300))))


def round_block(beat: DeadbeatBlock, image: Representation, places: Places, amplitude: float) -> DyadicBlock:
    """The dead-beat block in dyadic numbers nearest to a given one, or nearly so.

    Raises:
        NotExpressible: if the image is rational only in more dimensions than the block has, or no rounding of U was
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
    return _round(wide, rational.image, places)


def _widen(beat: DeadbeatBlock, rational: RationalImage, amplitude: float) -> DeadbeatBlock:
    """The same block in terms of the rational image, with the functions that were not learned written into it."""
    image, (r, wider) = rational.image, rational.E.shape
    W, w = beat.W @ rational.E, beat.W @ rational.e + beat.w
    if wider == r:
        back = np.linalg.inv(rational.E)
        return DeadbeatBlock(W, w, beat.x0, ReadoutProbe(back @ beat.probe.U, back @ (beat.probe.c - rational.e)))
    directions = _quiet_directions(DeadbeatBlock(W, w, beat.x0, beat.probe), image, beat.probe.U, wider - r)
    others = np.linalg.svd(rational.E)[2][r:]  # (r' - r, r')
    values = image.phi[:-1] @ others.T
    others = others / np.sqrt(((values - values.mean(0)) ** 2).mean()) * amplitude * _size(image, W)
    written = directions @ others  # (b, r')
    W, w = W + written @ image.B, w + image.u @ written.T - written @ image.phi[:-1].mean(0)
    x = (image.phi @ W.swapaxes(1, 2) + w[:, None]).reshape(-1, w.shape[1])
    phi = image.phi[image.delta].reshape(-1, wider)
    x, phi = np.vstack([x, beat.x0]), np.vstack([phi, image.phi[-1]])
    found = _ridge(x, phi)
    return DeadbeatBlock(W, w, beat.x0, ReadoutProbe(found[:-1].T, found[-1]))


def _size(image: Representation, W: np.ndarray) -> float:
    """The spread of what the block holds of φ: root of its mean square per function."""
    spread = (image.phi[:-1] - image.phi[:-1].mean(0)) @ W.mean(0).T
    return float(np.sqrt((spread**2).sum(1).mean() / image.rank))


def _quiet_directions(beat: DeadbeatBlock, image: Representation, U: np.ndarray, k: int) -> np.ndarray:
    """k orthonormal directions that U does not read, in which the states spread least: (b, k)."""
    unread = np.linalg.svd(U)[2][len(U) :].T  # (b, b - r)
    x = beat.states(image).reshape(-1, len(unread)) @ unread
    _, directions = np.linalg.eigh(np.cov(x.T))
    return unread @ directions[:, :k]


def _ridge(x: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Least squares with a little damping: (b + 1, r) with [x 1] @ result ≈ φ."""
    wide = np.hstack([x, np.ones((len(x), 1))])
    gram = wide.T @ wide
    damping = np.append(np.full(x.shape[1], 1e-4 * np.trace(gram) / len(gram)), 0)
    return np.linalg.solve(gram + np.diag(damping), wide.T @ phi)


def _round(wanted: DeadbeatBlock, image: Representation, places: Places) -> DyadicBlock:
    rng = np.random.default_rng(0)
    unit = 2.0**places.U
    for attempt in range(_TRIES):
        dither = rng.uniform(-0.5, 0.5, wanted.probe.U.shape) if attempt else 0.0
        U = np.round(wanted.probe.U * unit + dither) / unit
        coset = Coset(U, places.U, places.W)
        if coset.is_onto:
            break
    else:
        raise NotExpressible(
            f"no rounding of U to {places.U} binary places leaves equations that dyadic numbers solve: "
            "give it more places"
        )
    x = wanted.states(image).reshape(-1, U.shape[1])
    fine = 2.0 ** (places.U + places.W)
    c = np.round((image.phi[image.delta].reshape(-1, len(U)) - x @ U.T).mean(0) * fine) / fine
    W = np.stack(
        [
            np.stack([coset.nearest(B[:, i], near[:, i]) for i in range(len(U))], axis=1)
            for B, near in zip(image.B, wanted.W, strict=True)
        ]
    )
    w = np.stack([coset.nearest(u - c, near) for u, near in zip(image.u, wanted.w, strict=True)])
    x0 = coset.nearest(image.phi[-1] - c, wanted.x0)
    return DyadicBlock(replace(wanted, W=W, w=w, x0=x0, probe=ReadoutProbe(U, c)), image)


def _places(numbers: np.ndarray) -> int:
    """The binary places after the point that all numbers need.

    >>> _places(np.array([0.5, 3.0, 0.125]))
    3
    """
    for places in range(200):
        scaled = np.ldexp(numbers, places)
        if np.array_equal(scaled, np.round(scaled)):
            return places
    return 200
