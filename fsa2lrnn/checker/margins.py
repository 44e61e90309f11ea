"""How far the expected logit stays above the others on whole sets of states (L2 of docs/theory.md).

LayerNorm leaves by multiplying all logits with σ(x) = √(variance + ε) > 0: they become W2 relu(B x + β σ) + b2 σ, with
B = W1 diag(w) Π and β = W1 c + b1. About a centre x̃ it is σ = σ(x̃) + ∇σ·e + [0, |e|² / (2 n σ_least)], since σ is
convex. Without LayerNorm, B = W1, β = b1 and σ = 1. The hidden units are bounded on the set, each ReLU is replaced by a
line below or above it, as the sign of its weight asks, and what is left is linear in x: its least value on the set is
read off. Any lines of the kind would do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .intervals import EPS, Ball, above, norm
from .rounding import NORM_EPS, FloatFormat, ReadoutError
from .sets import Sets

_SLIP = 4 * EPS  # relative, of a few sums within one another


@dataclass(frozen=True, eq=False)
class ScaledReadout:
    """The read-out with LayerNorm taken out of it: logits times σ are W2 relu(B x + β σ) + b2 σ."""

    B: Ball  # (m, n)
    beta: Ball  # (m,)
    W2: np.ndarray
    b2: np.ndarray
    has_norm: bool
    error: ReadoutError

    @classmethod
    def of(cls, weights: dict[str, np.ndarray], kind: FloatFormat) -> ScaledReadout:
        """From weights in float64, "norm_weight" and "norm_bias" among them if there is a LayerNorm."""
        W1, n = weights["W1"], weights["W1"].shape[1]
        rows, beta, has_norm = Ball.exact(W1), Ball.exact(weights["b1"]), "norm_weight" in weights
        if has_norm:
            share = Ball.exact(np.ones((n, n))) / Ball.exact(np.full((n, n), n))
            rows = (rows * Ball.exact(weights["norm_weight"])) @ (Ball.exact(np.eye(n)) - share)
            beta = (Ball.exact(W1) @ Ball.exact(weights["norm_bias"][:, None]))[:, 0] + beta
        return cls(rows, beta, weights["W2"], weights["b2"], has_norm, ReadoutError.of(weights, kind))


@dataclass(frozen=True, eq=False)
class _Sigma:
    """σ on each set is middle + gradient·(w − centre) + [−below, above], and at most `most`."""

    middle: np.ndarray  # (F, J)
    gradient: np.ndarray  # (F, J, n)
    below: np.ndarray  # (F, J)
    above: np.ndarray
    most: np.ndarray
    lost: np.ndarray  # where rounding may have taken the variance altogether


@dataclass(frozen=True, eq=False)
class _Hidden:
    """The hidden units before the ReLU, on each set; (F, J, m) each."""

    at_centre: np.ndarray
    reach: np.ndarray  # at least the change from the centre, σ aside
    slip: np.ndarray  # what at_centre may be off by
    low: np.ndarray
    high: np.ndarray


class Margins:
    """Margins of one read-out on sets in given coordinates: T, slow, directions and expected output of each f."""

    def __init__(
        self, readout: ScaledReadout, T: np.ndarray, slow: np.ndarray, directions: np.ndarray, expected: np.ndarray
    ) -> None:
        F, H, b = slow.shape
        n, y = H * b, expected
        self._readout, self._T, self._shape = readout, T, (F, H, b)
        self._size_T = above(np.abs(T))
        self._ball_rows = norm(np.abs(T) * ~slow[:, :, None, :])  # (F, H, b)
        blocks = [readout.B[:, h * b : (h + 1) * b] @ Ball.exact(T[:, h]) for h in range(H)]
        self._rows = np.concatenate([block.mid for block in blocks], -1)  # (F, m, n)
        rad = np.concatenate([block.rad for block in blocks], -1)
        self._fast = ~slow.reshape(F, 1, n)
        self._rows_slip = above(_SLIP * np.abs(self._rows) + rad)
        self._rows_size = above(np.abs(self._rows) + rad)
        self._rows_ball = norm((self._rows_size * self._fast).reshape(F, -1, H, b))  # (F, m, H)
        self._rows_ball_slip = norm((self._rows_slip * self._fast).reshape(F, -1, H, b))
        self._directions = directions.reshape(F, directions.shape[1], n)
        several = np.flatnonzero(directions.any(3).sum(2).max(0, initial=0) > 1)
        every = np.arange(directions.shape[1])
        self._choices = [rows for rows in (every, several) if len(rows)]
        if len(several) == len(every):
            self._choices = self._choices[:1]
        rivals = np.array([[j for j in range(len(readout.b2)) if j != i] for i in range(len(readout.b2))], np.int64)
        rivals = rivals.reshape(len(readout.b2), -1)[y]  # (F, C)
        W2, b2, error = readout.W2, readout.b2, readout.error
        self._v, self._b = W2[y][:, None] - W2[rivals], b2[y][:, None] - b2[rivals]  # (F, C, m), (F, C)
        self._v_slip = EPS * (np.abs(W2[y])[:, None] + np.abs(W2[rivals]))
        self._b_slip = EPS * (np.abs(b2[y])[:, None] + np.abs(b2[rivals]))
        self._of_size = error.of_size[y][:, None] + error.of_size[rivals]  # (F, C)
        self._of_sigma = error.of_sigma[y][:, None] + error.of_sigma[rivals]

    def least(self, sets: Sets) -> np.ndarray:
        """A lower bound of the least margin of the logits, as they are computed, on every set: (F, J).

        −∞ where nothing can be said; where it is negative it is no bound. Dead nodes count as any other. No state has
        entries over `LARGEST`.
        """
        F, J = sets.alive.shape
        centre = np.ascontiguousarray(sets.centre.reshape(F, -1, J).swapaxes(1, 2))  # (F, J, n)
        radius = np.ascontiguousarray(sets.radius.reshape(F, -1, J).swapaxes(1, 2))
        ball = np.ascontiguousarray(sets.ball.swapaxes(1, 2))  # (F, J, H)
        size, deviation, x, off = self._extent(sets)
        sigma = self._sigma(x, off, deviation, size, radius, ball)
        if not self._v.shape[1]:  # a single output has no rival but NaN
            return np.where(sigma.lost, -np.inf, np.inf)
        hidden = self._hidden(sigma, centre, radius, ball)
        low = self._linear_bound(sets, sigma, hidden, centre, radius, ball)  # (F, J, C)
        error = self._of_size[:, None] * size[..., None] + self._of_sigma[:, None] * sigma.most[..., None]
        least = np.asarray((low - above(error)).min(-1), np.float64)
        least = np.where(least > 0, least / (sigma.most * (1 + _SLIP)), least)
        return np.where(sigma.lost, -np.inf, least)

    def _extent(self, sets: Sets) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """max |x| (F, J), a bound on |x − x̃| (F, J), x̃ (F, J, n), a bound on |T centre − x̃| (F, J)."""
        F, J = sets.alive.shape
        x = self._T @ sets.centre  # (F, H, b, J)
        off = above(_SLIP * (self._size_T @ np.abs(sets.centre)))
        wide = above(self._size_T @ sets.radius + self._ball_rows[..., None] * sets.ball[:, :, None] + off)
        size = above(np.abs(x) + wide).reshape(F, -1, J).max(1)
        off, wide = norm(off.reshape(F, -1, J), axis=1), norm(wide.reshape(F, -1, J), axis=1)
        return size, wide, np.ascontiguousarray(x.reshape(F, -1, J).swapaxes(1, 2)), off

    def _sigma(
        self, x: np.ndarray, off: np.ndarray, deviation: np.ndarray, size: np.ndarray, radius: np.ndarray,
        ball: np.ndarray,
    ) -> _Sigma:  # fmt: skip
        F, J, n = x.shape
        if not self._readout.has_norm:
            one, zero = np.ones((F, J)), np.zeros((F, J))
            return _Sigma(one, np.zeros((F, J, n)), zero, zero, one, zero > 0)
        centred = x - x.mean(-1, keepdims=True)
        middle = np.sqrt((centred**2).mean(-1) + NORM_EPS)
        gradient = (centred / (n * middle[..., None])).reshape(F, J, *self._shape[1:])
        gradient = np.einsum("fhij,fghi->fghj", self._T, gradient, optimize=True).reshape(F, J, n)
        slip = _SLIP * (middle + size)
        shift = above(deviation / np.sqrt(n) * (1 + _SLIP) + slip)  # σ has the Lipschitz constant 1/√n
        floor = np.sqrt(NORM_EPS) * (1 - _SLIP)
        # σ is convex, so at least its tangent at x̃.
        tilt = self._reach(np.abs(gradient), radius, ball)
        tilt = above(tilt + 2 * off + 2 * slip * (1 + np.sqrt(n) * deviation / floor))
        least = np.maximum((middle - np.minimum(shift, tilt)) * (1 - _SLIP), floor)
        most = above(middle + shift)
        curved = np.minimum(deviation * deviation / (2 * n * least), 2 * shift)
        # x̃ in place of the centre; then what the floats of σ(x̃), of its gradient and of that in w may be off by.
        wrong = 2 * off + 2 * slip * (1 + np.sqrt(n) * deviation / least)
        scale = self._readout.error.scale(size, least)
        lost = ~(scale < np.inf)
        scale = np.where(lost, 0, scale)
        below = above(wrong + scale * most)
        return _Sigma(middle, gradient, below, above(curved + below), above(most * (1 + scale)), lost)

    def _hidden(self, sigma: _Sigma, centre: np.ndarray, radius: np.ndarray, ball: np.ndarray) -> _Hidden:
        beta, off = self._readout.beta.mid, self._readout.beta.rad + _SLIP * np.abs(self._readout.beta.mid)
        reach = above(radius @ self._rows_size.swapaxes(1, 2) + ball @ self._rows_ball.swapaxes(1, 2))  # (F, J, m)
        slip = np.abs(centre).max(1, keepdims=True) @ self._rows_slip.swapaxes(1, 2)
        slip = above(slip + sigma.most[..., None] * off)
        at_centre = centre @ self._rows.swapaxes(1, 2) + beta * sigma.middle[..., None]
        turn = self._reach(np.abs(sigma.gradient), radius, ball)[..., None]
        spread = above(reach + np.abs(beta) * turn + slip + _SLIP * np.abs(at_centre))
        fall, rise = _along_sigma(beta, sigma.below[..., None], sigma.above[..., None])
        return _Hidden(at_centre, reach, slip, at_centre - above(spread + fall), at_centre + above(spread + rise))

    def _linear_bound(
        self, sets: Sets, sigma: _Sigma, hidden: _Hidden, centre: np.ndarray, radius: np.ndarray, ball: np.ndarray
    ) -> np.ndarray:
        """(F, J, C): the least value on each set of a linear function below σ (logit expected − logit of a rival)."""
        low, high = hidden.low[:, :, None], hidden.high[:, :, None]  # (F, J, 1, m)
        v, beta = self._v[:, None], self._readout.beta.mid  # (F, 1, C, m)
        bends = (low < 0) & (high > 0)
        steep = np.where(bends, high / np.where(bends, high - low, 1), low >= 0)  # the line above through both ends
        slope = np.where(v < 0, steep, np.where(bends, high > -low, low >= 0))
        lift = np.where(bends & (v < 0), above(np.maximum(-steep * low, (1 - steep) * high)), 0)
        weight = v * slope  # (F, J, C, m)
        size = np.abs(weight)
        middle = sigma.middle[..., None]
        coefficient = weight @ beta + self._b[:, None]  # (F, J, C)
        constant = (weight * hidden.at_centre[:, :, None]).sum(-1) + (v * lift).sum(-1) + self._b[:, None] * middle
        F, J, C, m = weight.shape
        g = (weight.reshape(F, J * C, m) @ self._rows).reshape(F, J, C, -1)
        g = g + coefficient[..., None] * sigma.gradient[:, :, None]
        fall, _ = _along_sigma(coefficient, sigma.below[..., None], sigma.above[..., None])
        turn = self._reach(np.abs(sigma.gradient), radius, ball)[..., None]
        unit = hidden.slip + _SLIP * (np.abs(hidden.at_centre) + hidden.reach)
        unit = unit + (radius.max(1, keepdims=True) @ self._rows_slip.swapaxes(1, 2))
        unit = unit + ball.max(1, keepdims=True) @ self._rows_ball_slip.swapaxes(1, 2)
        wrong = (size * unit[:, :, None]).sum(-1) + _SLIP * (np.abs(v) * lift).sum(-1)
        wrong = wrong + _SLIP * (size @ np.abs(beta) + np.abs(self._b)[:, None]) * (
            turn + (sigma.below + sigma.above + sigma.middle)[..., None]
        )
        wrong = wrong + (self._v_slip[:, None] * np.maximum(high, 0)).sum(-1) + self._b_slip[:, None] * middle * 4
        wrong = wrong + _SLIP * (np.abs(constant) + fall)
        return constant - self._greatest(-g, sets, centre, radius, ball) - above(fall + wrong)

    def _greatest(
        self, g: np.ndarray, sets: Sets, centre: np.ndarray, radius: np.ndarray, ball: np.ndarray
    ) -> np.ndarray:
        """At least the greatest value of g·(w − centre) on each set: g (F, J, C, n) -> (F, J, C)."""
        F, J, C, _ = g.shape
        size = np.abs(g)
        fast = norm((size * self._fast[:, None]).reshape(F, J, C, self._shape[1], -1))  # (F, J, C, H)
        of_ball = (fast @ ball[..., None])[..., 0]
        of_box = (size @ radius[..., None])[..., 0]
        found = above(of_box + of_ball)
        for rows in self._choices:
            found = np.minimum(found, self._along_one(g, sets, centre, radius, of_box, of_ball, rows))
        return found

    def _along_one(
        self, g: np.ndarray, sets: Sets, centre: np.ndarray, radius: np.ndarray, of_box: np.ndarray,
        of_ball: np.ndarray, rows: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        """At least that value, by that of these directions that g goes along the most, and the box for the rest."""
        F, J, C, n = g.shape
        directions = self._directions[:, rows]
        squares = radius * radius
        along = (g * squares[:, :, None]).reshape(F, J * C, n) @ directions.swapaxes(1, 2)
        lengths = squares @ (directions**2).swapaxes(1, 2)  # (F, J, D)
        lengths = np.where(lengths > 0, lengths, np.inf)[:, :, None]
        along = along.reshape(F, J, C, len(rows))
        best = (np.abs(along) / np.sqrt(lengths)).argmax(-1)[..., None]  # (F, J, C, 1)
        factor = np.take_along_axis(along / lengths, best, -1)  # any number would do
        chosen = directions[np.arange(F)[:, None, None], best[..., 0]]  # (F, J, C, n)
        known = (centre @ directions.swapaxes(1, 2)).swapaxes(1, 2)  # (F, D, J)
        up = np.take_along_axis((sets.upper[:, rows] - known).swapaxes(1, 2)[:, :, None], best, -1)
        down = np.take_along_axis((sets.lower[:, rows] - known).swapaxes(1, 2)[:, :, None], best, -1)
        bound = np.where(factor > 0, factor * up, factor * down)[..., 0]
        rest = (np.abs(g * ~self._fast[:, None] - factor * chosen) @ radius[..., None])[..., 0]
        slip = np.abs(factor[..., 0]) * (np.abs(chosen) @ (np.abs(centre) + radius)[..., None])[..., 0]
        slip = _SLIP * (slip + np.abs(bound) + of_box)
        return bound + above(rest + of_ball + slip)

    def _reach(self, size: np.ndarray, radius: np.ndarray, ball: np.ndarray) -> np.ndarray:
        """At least |g·(w − centre)| for |g| ≤ size: (F, J, n) -> (F, J)."""
        F, J, _ = size.shape
        fast = norm((size * self._fast).reshape(F, J, self._shape[1], -1))
        return above((size * radius).sum(-1) + (fast * ball).sum(-1))


def _along_sigma(coefficient: np.ndarray, below: np.ndarray, over: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much coefficient · s, s in [−below, over], may be under and above zero."""
    plus, minus = np.maximum(coefficient, 0), np.maximum(-coefficient, 0)
    return plus * below + minus * over, plus * over + minus * below
