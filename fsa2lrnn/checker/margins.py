"""Lower bounds, on whole sets of states, of the expected logit less the others (L2 of docs/theory.md).

LayerNorm is removed by multiplying all logits with σ(x) = √(variance + ε) > 0: they become W2 relu(B x + β σ) + b2 σ,
with B = W1 diag(w) Π and β = W1 c + b1. About a centre x̃ it is σ = σ(x̃) + ∇σ·e + [0, |e|² / (2 n σ_least)], since σ is
convex. Without LayerNorm, B = W1, β = b1 and σ = 1. The hidden units are bounded on the set, each ReLU is replaced by a
line below or above it, depending on the sign of its weight, and the least value of the resulting linear function on the
set bounds the margin. Any such lines would be sound.
"""

from typing import NamedTuple

import numpy as np

from .claims import Sets
from .rounding import EPS, NORM_EPS, Ball, FloatFormat, ReadoutError, above, norm

_SLIP = 4 * EPS  # relative, of a few sums within one another


class ScaledReadout:
    """The read-out multiplied by σ(x), which removes LayerNorm: W2 relu(B x + β σ) + b2 σ; σ = 1 without LayerNorm."""

    def __init__(self, weights: dict[str, np.ndarray], kind: FloatFormat) -> None:
        W1, n = weights["W1"], weights["W1"].shape[1]
        self.W2, self.b2, self.has_norm = weights["W2"], weights["b2"], "norm_weight" in weights
        self.B, self.beta, self.error = Ball.exact(W1), Ball.exact(weights["b1"]), ReadoutError(weights, kind)
        if self.has_norm:
            share = Ball(np.full((n, n), 1 / n), np.full((n, n), EPS / n))  # 1 / n is off by 2⁻⁵³ / n at most
            self.B = (self.B * Ball.exact(weights["norm_weight"])) @ (Ball.exact(np.eye(n)) - share)  # (m, n)
            self.beta = (Ball.exact(W1) @ Ball.exact(weights["norm_bias"][:, None]))[:, 0] + self.beta  # (m,)


class _Box(NamedTuple):
    """Sets in arrays with the axis j before that of the entries."""

    centre: np.ndarray  # (F, J, n)
    radius: np.ndarray  # (F, J, n)
    ball: np.ndarray  # (F, J, H)
    lower: np.ndarray  # (F, J, D)
    upper: np.ndarray


class _Sigma(NamedTuple):
    """σ on each set is middle + gradient·(w − centre) + [−below, above], and at most `most`."""

    middle: np.ndarray  # (F, J)
    gradient: np.ndarray  # (F, J, n)
    turn: np.ndarray  # (F, J), an upper bound of |gradient·(w − centre)|
    below: np.ndarray  # (F, J)
    above: np.ndarray
    most: np.ndarray
    lost: np.ndarray  # whether rounding may make the variance negative


class _Hidden(NamedTuple):
    """The hidden units before the ReLU, on each set; (F, J, m) each."""

    at_centre: np.ndarray
    reach: np.ndarray  # an upper bound of the change from the centre, σ aside
    slip: np.ndarray  # a bound on the rounding of at_centre
    low: np.ndarray
    high: np.ndarray


class Margins:
    """Margins of one read-out on sets in coordinates T, for the expected output of each node f."""

    def __init__(
        self, readout: ScaledReadout, T: np.ndarray, slow: np.ndarray, directions: np.ndarray, expected: np.ndarray
    ) -> None:
        F, H, b = slow.shape
        n, y = H * b, expected
        self._readout, self._T, self._shape = readout, T, (F, H, b)
        self._size_T = above(np.abs(T))
        self._ball_rows = norm(np.abs(T) * ~slow[:, :, None, :])  # (F, H, b)
        # The first matrix of the read-out in the coordinates w of each node, head by head.
        blocks = [readout.B[:, h * b : (h + 1) * b] @ Ball.exact(T[:, h]) for h in range(H)]
        self._rows = np.concatenate([block.mid for block in blocks], -1)  # (F, m, n)
        rad = np.concatenate([block.rad for block in blocks], -1)
        self._fast = ~slow.reshape(F, 1, n)
        self._rows_slip = above(_SLIP * np.abs(self._rows) + rad)
        self._rows_size = above(np.abs(self._rows) + rad)
        self._rows_ball = norm((self._rows_size * self._fast).reshape(F, -1, H, b))  # (F, m, H)
        self._rows_ball_slip = norm((self._rows_slip * self._fast).reshape(F, -1, H, b))
        self._directions = directions.reshape(F, directions.shape[1], n)
        # The best of all directions; and the best of those over several heads, if they are not all.
        several = directions.any(3).sum(2).max(0, initial=0) > 1
        choices = [np.ones_like(several)] if several.all() else [np.ones_like(several), several]
        self._choices = [np.flatnonzero(rows) for rows in choices if rows.any()]
        # Axis C runs over the outputs other than the expected one.
        rivals = np.array([[j for j in range(len(readout.b2)) if j != i] for i in range(len(readout.b2))], np.int64)
        rivals = rivals.reshape(len(readout.b2), -1)[y]  # (F, C)
        W2, b2, error = readout.W2, readout.b2, readout.error
        self._v, self._b = W2[y][:, None] - W2[rivals], b2[y][:, None] - b2[rivals]  # (F, C, m), (F, C)
        self._v_slip = EPS * (np.abs(W2[y])[:, None] + np.abs(W2[rivals]))
        self._b_slip = EPS * (np.abs(b2[y])[:, None] + np.abs(b2[rivals]))
        self._of_size = error.of_size[y][:, None] + error.of_size[rivals]  # (F, C)
        self._of_sigma = error.of_sigma[y][:, None] + error.of_sigma[rivals]

    def least(self, sets: Sets) -> np.ndarray:
        """Return a lower bound of the least margin of the computed logits on every set: (F, J).

        The bound is −∞ where rounding may make the variance negative; a negative bound proves nothing. Sets that are
        not alive have bounds, too. The entries of all states must be at most `LARGEST`.
        """
        F, J = sets.alive.shape
        parts = (sets.centre.reshape(F, -1, J), sets.radius.reshape(F, -1, J), sets.ball, sets.lower, sets.upper)
        box = _Box(*(np.ascontiguousarray(part.swapaxes(1, 2)) for part in parts))
        size, deviation, x, off = self._extent(sets)
        sigma = self._sigma(x, off, deviation, size, box)
        if not self._v.shape[1]:  # a single output has no rival but NaN
            return np.where(sigma.lost, -np.inf, np.inf)
        low = self._linear_bound(sigma, self._hidden(sigma, box), box)  # (F, J, C)
        error = self._of_size[:, None] * size[..., None] + self._of_sigma[:, None] * sigma.most[..., None]
        least = np.asarray((low - above(error)).min(-1), np.float64)
        least = np.where(least > 0, least / (sigma.most * (1 + _SLIP)), least)
        return np.where(sigma.lost, -np.inf, least)

    def _extent(self, sets: Sets) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return max |x| (F, J), a bound on |x − x̃| (F, J), x̃ (F, J, n), a bound on |T centre − x̃| (F, J)."""
        F, J = sets.alive.shape
        x = self._T @ sets.centre  # (F, H, b, J)
        off = above(_SLIP * (self._size_T @ np.abs(sets.centre)))
        wide = above(self._size_T @ sets.radius + self._ball_rows[..., None] * sets.ball[:, :, None] + off)
        size = above(np.abs(x) + wide).reshape(F, -1, J).max(1)
        off, wide = norm(off.reshape(F, -1, J), axis=1), norm(wide.reshape(F, -1, J), axis=1)
        return size, wide, np.ascontiguousarray(x.reshape(F, -1, J).swapaxes(1, 2)), off

    def _sigma(self, x: np.ndarray, off: np.ndarray, deviation: np.ndarray, size: np.ndarray, box: _Box) -> _Sigma:
        F, J, n = x.shape
        if not self._readout.has_norm:
            one, zero = np.ones((F, J)), np.zeros((F, J))
            return _Sigma(one, np.zeros((F, J, n)), zero, zero, zero, one, zero > 0)
        centred = x - x.mean(-1, keepdims=True)
        middle = np.sqrt((centred**2).mean(-1) + NORM_EPS)
        gradient = (centred / (n * middle[..., None])).reshape(F, J, *self._shape[1:])
        gradient = np.einsum("fhij,fghi->fghj", self._T, gradient, optimize=True).reshape(F, J, n)
        slip = _SLIP * (middle + size)
        shift = above(deviation / np.sqrt(n) * (1 + _SLIP) + slip)  # σ has the Lipschitz constant 1/√n
        floor = np.sqrt(NORM_EPS) * (1 - _SLIP)
        # σ is convex, so at least its tangent at x̃.
        turn = above(np.add(*self._reach(np.abs(gradient), box)))
        tilt = above(turn + 2 * off + 2 * slip * (1 + np.sqrt(n) * deviation / floor))
        least = np.maximum((middle - np.minimum(shift, tilt)) * (1 - _SLIP), floor)
        most = above(middle + shift)
        curved = np.minimum(deviation * deviation / (2 * n * least), 2 * shift)
        # The errors of x̃ in place of the centre, and of the rounding of σ(x̃), its gradient, and that in w.
        wrong = 2 * off + 2 * slip * (1 + np.sqrt(n) * deviation / least)
        scale = self._readout.error.scale(size, least)
        lost = ~(scale < np.inf)
        scale = np.where(lost, 0, scale)
        below = above(wrong + scale * most)
        return _Sigma(middle, gradient, turn, below, above(curved + below), above(most * (1 + scale)), lost)

    def _hidden(self, sigma: _Sigma, box: _Box) -> _Hidden:
        beta, off = self._readout.beta.mid, self._readout.beta.rad + _SLIP * np.abs(self._readout.beta.mid)
        reach = above(box.radius @ self._rows_size.swapaxes(1, 2) + box.ball @ self._rows_ball.swapaxes(1, 2))
        slip = np.abs(box.centre).max(1, keepdims=True) @ self._rows_slip.swapaxes(1, 2)
        slip = above(slip + sigma.most[..., None] * off)
        at_centre = box.centre @ self._rows.swapaxes(1, 2) + beta * sigma.middle[..., None]
        spread = above(reach + np.abs(beta) * sigma.turn[..., None] + slip + _SLIP * np.abs(at_centre))
        fall, rise = _along_sigma(beta, sigma.below[..., None], sigma.above[..., None])
        return _Hidden(at_centre, reach, slip, at_centre - above(spread + fall), at_centre + above(spread + rise))

    def _linear_bound(self, sigma: _Sigma, hidden: _Hidden, box: _Box) -> np.ndarray:
        """Return the least value on each set of a linear function below σ (expected logit − a rival's): (F, J, C)."""
        low, high = hidden.low[:, :, None], hidden.high[:, :, None]  # (F, J, 1, m)
        v, beta = self._v[:, None], self._readout.beta.mid  # (F, 1, C, m)
        bends = (low < 0) & (high > 0)
        # T21: relu is replaced by a line on [low, high]: from above, by the chord, where its weight is negative, and
        # from below, by 0 or the identity, where it is positive.
        steep = np.where(bends, high / np.where(bends, high - low, 1), low >= 0)  # the line above through both ends
        slope = np.where(v < 0, steep, np.where(bends, high > -low, low >= 0))
        lift = np.where(bends & (v < 0), above(np.maximum(-steep * low, (1 - steep) * high)), 0)
        # One backward step: the margin is bounded below by an affine function of the state and of σ.
        weight = v * slope  # (F, J, C, m)
        size = np.abs(weight)
        middle = sigma.middle[..., None]
        coefficient = weight @ beta + self._b[:, None]  # (F, J, C)
        constant = (weight * hidden.at_centre[:, :, None]).sum(-1) + (v * lift).sum(-1) + self._b[:, None] * middle
        F, J, C, m = weight.shape
        g = (weight.reshape(F, J * C, m) @ self._rows).reshape(F, J, C, -1)
        g = g + coefficient[..., None] * sigma.gradient[:, :, None]
        fall, _ = _along_sigma(coefficient, sigma.below[..., None], sigma.above[..., None])
        unit = hidden.slip + _SLIP * (np.abs(hidden.at_centre) + hidden.reach)
        unit = unit + (box.radius.max(1, keepdims=True) @ self._rows_slip.swapaxes(1, 2))
        unit = unit + box.ball.max(1, keepdims=True) @ self._rows_ball_slip.swapaxes(1, 2)
        wrong = (size * unit[:, :, None]).sum(-1) + _SLIP * (np.abs(v) * lift).sum(-1)
        wrong = (
            wrong
            + _SLIP
            * (size @ np.abs(beta) + np.abs(self._b)[:, None])
            * ((sigma.turn + sigma.below + sigma.above + sigma.middle)[..., None])
        )
        wrong = wrong + (self._v_slip[:, None] * np.maximum(high, 0)).sum(-1) + self._b_slip[:, None] * middle * 4
        wrong = wrong + _SLIP * (np.abs(constant) + fall)
        return constant - self._greatest(-g, box) - above(fall + wrong)

    def _greatest(self, g: np.ndarray, box: _Box) -> np.ndarray:
        """Return an upper bound of g·(w − centre) on each set: g (F, J, C, n) -> (F, J, C)."""
        of_box, of_ball = self._reach(np.abs(g), box)
        bounds = [self._along_one(g, box, of_box, of_ball, rows) for rows in self._choices]
        return np.minimum.reduce([above(of_box + of_ball), *bounds])

    def _along_one(
        self, g: np.ndarray, box: _Box, of_box: np.ndarray, of_ball: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """Return a bound on g·(w − centre), (F, J, C): along the direction closest to g, by intervals for the rest."""
        F, J, C, n = g.shape
        # For any factor, g = factor · d + rest: the slab's interval bounds the first part, the radii bound the rest.
        directions = self._directions[:, rows]
        squares = box.radius * box.radius
        along = (g * squares[:, :, None]).reshape(F, J * C, n) @ directions.swapaxes(1, 2)
        lengths = squares @ (directions**2).swapaxes(1, 2)  # (F, J, D)
        lengths = np.where(lengths > 0, lengths, np.inf)[:, :, None]
        along = along.reshape(F, J, C, len(rows))
        best = (np.abs(along) / np.sqrt(lengths)).argmax(-1)[..., None]  # (F, J, C, 1)
        factor = np.take_along_axis(along / lengths, best, -1)  # any number would be sound
        chosen = directions[np.arange(F)[:, None, None], best[..., 0]]  # (F, J, C, n)
        base = box.centre @ directions.swapaxes(1, 2)  # (F, J, D)
        up, down = (np.take_along_axis((x[..., rows] - base)[:, :, None], best, -1) for x in (box.upper, box.lower))
        bound = np.where(factor > 0, factor * up, factor * down)[..., 0]
        rest = (np.abs(g * ~self._fast[:, None] - factor * chosen) @ box.radius[..., None])[..., 0]
        slip = np.abs(factor[..., 0]) * (np.abs(chosen) @ (np.abs(box.centre) + box.radius)[..., None])[..., 0]
        slip = _SLIP * (slip + np.abs(bound) + of_box)
        return bound + above(rest + of_ball + slip)

    def _reach(self, size: np.ndarray, box: _Box) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds on the slow and the fast part of |g·(w − centre)|, |g| ≤ size: (F, J, …, n) -> (F, J, …)."""
        F, J, *_, n = size.shape
        rows = size.reshape(F, J, -1, n)
        fast = norm((rows * self._fast[:, None]).reshape(*rows.shape[:3], self._shape[1], -1))  # (F, J, C, H)
        of_box, of_ball = rows @ box.radius[..., None], fast @ box.ball[..., None]
        return of_box.reshape(size.shape[:-1]), of_ball.reshape(size.shape[:-1])


def _along_sigma(coefficient: np.ndarray, below: np.ndarray, over: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how far coefficient · s, for s in [−below, over], can lie below zero and above zero."""
    plus, minus = np.maximum(coefficient, 0), np.maximum(-coefficient, 0)
    return plus * below + minus * over, plus * over + minus * below
