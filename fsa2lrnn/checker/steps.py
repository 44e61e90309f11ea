"""One step: sets that hold A_a x + v_a, as computed, for every x of the sets before (L1 of docs/theory.md).

In the coordinates w of node p, x = T_p w, a letter a that leads to p' acts as w' = M w + t with M = T_p'⁻¹ A_a T_p and
t = T_p'⁻¹ v_a, head by head. M and t are enclosed once; the sets' centres and radii are plain floats, and the results
of a step are widened by `above` and by a bound on the rounding of the midpoints.

Along a direction d of p', d·w' = d M w + d·t. d M is written as a sum of multiples ("shares") of the directions of
p, as far as possible; intervals bound the remainder. A direction over several heads takes a share of itself. Directions
that fan out in the plane of two slow coordinates of a head take shares of the two on either side of d M, so that a
letter that turns the plane by a small angle makes the set little larger, where intervals would grow at each turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .claims import Nodes, Sets, Tube
from .rounding import EPS, Ball, StepError, above, inverse, norm, spectral_norm

_JOINS = {"alive": np.logical_or, "low": np.minimum, "high": np.maximum, "lower": np.minimum, "upper": np.maximum}


@dataclass(frozen=True, eq=False)
class _Bounds:
    """Bounds on the image of each entry e of a letter, (E, …, J), or on all images at each node f, (F, …, J)."""

    alive: np.ndarray  # (E, J)
    middle: np.ndarray  # (E, H, b, J)
    low: np.ndarray  # (E, H, b, J), slow coordinates
    high: np.ndarray
    ball: np.ndarray  # (E, H, J)
    lower: np.ndarray  # (E, D, J)
    upper: np.ndarray


class Steps:
    """The step of a model's tables between the nodes of a tube."""

    def __init__(self, nodes: Nodes, tube: Tube, A: np.ndarray, v: np.ndarray, error: StepError) -> None:
        self.nodes, self.slow = nodes, tube.slow
        self.T, self.inverse_T = tube.basis, inverse(tube.basis)
        self.size_T = above(np.abs(tube.basis))
        self.ball_rows = norm(np.abs(tube.basis) * ~tube.slow[:, :, None, :])  # (F, H, b)
        self.part, self.groups = tube.part[nodes.state], groups(tube.directions)
        self.directions = tube.directions[self.part] * tube.slow[:, None]  # (F, D, H, b)
        self._axes = _axes(tube.directions)
        self.letters = [_Letter(self, a, A[a], v[a], error) for a in range(nodes.n_letters)]

    def sizes(self, sets: Sets) -> np.ndarray:
        """Return upper bounds of the absolute values of the states' entries: (F, H, b, J)."""
        reach = self.size_T @ above(np.abs(sets.centre) + sets.radius)
        return above(reach + self.ball_rows[..., None] * sets.ball[:, :, None])

    def after(self, sets: Sets, centre: np.ndarray | None = None) -> Sets:
        """Return sets with the computed image of every state of `sets`, about the given centres or about means."""
        # Axes here: E runs over the sources of a letter, F over nodes f, and J over the letters before those that f
        # remembers.
        size, count = self.sizes(sets), np.zeros(sets.alive.shape)
        like = (sets.alive, sets.centre, sets.centre, sets.centre, sets.ball, sets.lower, sets.upper)
        joined = _Bounds(*map(np.zeros_like, like))
        centres = joined.middle if centre is None else centre
        for letter in self.letters:
            if not len(letter.source):
                continue
            images = self._images(letter, sets, size)
            for name, join in _JOINS.items():
                self._put(getattr(joined, name), letter, join, getattr(images, name))
            if centre is None:  # the mean of the images' centres: any choice would be sound
                self._put(joined.middle, letter, np.add, images.middle)
                self._put(count, letter, np.add, images.alive.astype(np.float64))
                centres = joined.middle / np.maximum(count, 1)[:, None, None]
            self._put(joined.ball, letter, np.maximum, self._balls(letter, images, centres))
        self._tighten(joined)
        alive, along = joined.alive[:, None, None], joined.alive[:, None]
        slow = self.slow[..., None] & alive
        if centre is None:
            middle = (np.where(slow, joined.low, 0) + np.where(slow, joined.high, 0)) / 2
            centres = np.where(slow, middle, centres)  # any choice would be sound
        off = np.maximum(joined.high - centres, centres - joined.low)
        radius = np.where(slow, above(np.where(slow, off, 0) + EPS * (np.abs(centres))), 0)
        lower, upper = np.where(along, joined.lower, 0), np.where(along, joined.upper, 0)
        return Sets(sets.length + 1, joined.alive, np.where(alive, centres, 0), radius, joined.ball, lower, upper)

    def _images(self, letter: _Letter, sets: Sets, size: np.ndarray) -> _Bounds:
        """Return bounds on the image of each source's set, rounding included; neutral ones where nothing is alive."""
        sets, size = sets.at(letter.source), size[letter.source]
        # The errors are small compared with the rest, so one bound serves all j.
        # T20 (ii): the rounding of the model's own step, with |x| bounded by `size`, and that of the midpoints of this
        # check.
        error = letter.error_size @ size.max(-1, keepdims=True) + letter.error[..., None]
        error = above(error + letter.error_centre @ np.abs(sets.centre).max(-1, keepdims=True))
        middle = letter.M @ sets.centre + letter.t[..., None]
        # A slow coordinate moves by |M| times the radii of slow ones, and by Cauchy-Schwarz by its row's norm times the
        # ball.
        spread = above(letter.slow @ sets.radius + letter.ball_to_slow[..., None] * sets.ball[:, :, None] + error)
        fast = norm(error * ~letter.is_slow[..., None], axis=2)
        # The triangle inequality in the norm of the fast coordinates: old ball, old intervals, and rounding add up.
        ball = letter.ball[..., None] * sets.ball + (letter.slow_to_ball[..., None] * sets.radius).sum(2) + fast
        lower, upper = np.zeros_like(sets.lower), np.zeros_like(sets.upper)
        for along in letter.along:
            lower[:, along.group.rows], upper[:, along.group.rows] = along.bounds(sets, spread, error)
        alive, alive_along = sets.alive[:, None, None], sets.alive[:, None]
        return _Bounds(
            sets.alive,
            middle=np.where(alive, middle, 0),
            low=np.where(alive, middle - spread, np.inf),
            high=np.where(alive, middle + spread, -np.inf),
            ball=above(ball),
            lower=np.where(alive_along, lower, np.inf),
            upper=np.where(alive_along, upper, -np.inf),
        )

    def _balls(self, letter: _Letter, images: _Bounds, centres: np.ndarray) -> np.ndarray:
        """Return the radii about the centres at the targets that hold the images' fast coordinates: (E, H, J)."""
        target = self._pull(centres, letter)
        # Images have other centres than the set that joins them: the ball grows by the distance of the centres.
        off = above(np.abs(images.middle - target) + EPS * (np.abs(images.middle) + np.abs(target)))
        wide = above(norm(off * ~letter.is_slow[..., None], axis=2) + images.ball)
        return np.where(images.alive[:, None], wide, 0)

    def _tighten(self, joined: _Bounds) -> None:
        """Intersect intervals with the bounds of directions along their coordinates."""
        for row, h, i in self._axes:
            slow, low, high = self.slow[:, h, i, None], joined.low[:, h, i], joined.high[:, h, i]
            joined.low[:, h, i] = np.where(slow, np.maximum(low, joined.lower[:, row]), low)
            joined.high[:, h, i] = np.where(slow, np.minimum(high, joined.upper[:, row]), high)

    def _put(self, into: np.ndarray, letter: _Letter, join: np.ufunc, values: np.ndarray) -> None:
        """Write the values (E, …, J) of images to their target nodes, joining those that meet: (F, …, J)."""
        n, J = self.nodes.n_letters, values.shape[-1]
        if J > 1:  # j = (oldest letter, others): the oldest is forgotten, the frame's oldest joins the others
            values = join.reduce(values.reshape(*values.shape[:-1], n, J // n), axis=-2)
        joined = join.reduceat(values[letter.order], letter.starts, axis=0)
        # Without older letters j has one value, and images join by node alone.
        if J == 1:
            into[letter.target] = joined
        else:
            np.moveaxis(into.reshape(*into.shape[:-1], J // n, n), -1, 1)[letter.target, letter.forgotten] = joined

    def _pull(self, values: np.ndarray, letter: _Letter) -> np.ndarray:
        """Return the values at the node that each image reaches: (F, …, J) -> (E, …, J)."""
        n, J = self.nodes.n_letters, values.shape[-1]
        if J == 1:
            return values[letter.target[letter.group]]
        view = np.moveaxis(values.reshape(*values.shape[:-1], J // n, n), -1, 1)  # (F, |Σ|, …, J/|Σ|)
        pulled = view[letter.target, letter.forgotten][letter.group]
        return np.repeat(pulled[..., None, :], n, axis=-2).reshape(*pulled.shape[:-1], J)


class _Letter:
    """The step by letter `a`. Axis E of its arrays runs over `source`, the f from which it leads to a node."""

    def __init__(self, steps: Steps, a: int, A: np.ndarray, v: np.ndarray, error: StepError) -> None:
        nodes, self.source = steps.nodes, np.flatnonzero(steps.nodes.delta[a] >= 0)  # (E,)
        source, target = self.source, nodes.delta[a][self.source]
        # Images join in groups (f', forgotten letter): `order` sorts entries by group, `starts` has their beginnings.
        forgotten = nodes.oldest[source] if nodes.older > 1 else np.zeros_like(source)
        keys, self.group = np.unique(target * nodes.n_letters + forgotten, return_inverse=True)  # (E,)
        self.order = np.argsort(self.group, kind="stable")  # (E,)
        self.starts = np.searchsorted(self.group[self.order], np.arange(len(keys)))  # (G,)
        self.target, self.forgotten = keys // nodes.n_letters, keys % nodes.n_letters  # (G,)
        inverse_after = steps.inverse_T[target]
        # x = T w, so that w' = T'⁻¹ A T w + T'⁻¹ v; the balls enclose the exact products.
        M = inverse_after @ Ball.exact(A) @ Ball.exact(steps.T[source])
        t = (inverse_after @ Ball.exact(v[..., None]))[..., 0]
        self.M, self.t, self.is_slow = M.mid, t.mid, steps.slow[target]  # (E, H, b, b), (E, H, b), (E, H, b)
        is_slow, was_slow = self.is_slow[..., None], steps.slow[source][..., None, :]
        # M has four parts by slow or fast target and source: each is bounded in the norms of its own two sides.
        self.slow = M.size * (is_slow & was_slow)  # (E, H, b, b), |M| among slow coordinates
        self.ball_to_slow = norm(M.size * ~was_slow) * self.is_slow  # (E, H, b)
        is_fast = ~is_slow & ~was_slow
        self.ball = spectral_norm(Ball(M.mid * is_fast, M.rad * is_fast))  # (E, H)
        self.slow_to_ball = norm(M.size * ~is_slow, axis=-2) * was_slow[..., 0, :]  # (E, H, b)
        # The error of a step is at most error_size |x| + error_centre |centre| + error.
        self.error_size = above(inverse_after.size @ error.matrix[a])  # (E, H, b, b)
        self.error_centre = above(4 * EPS * np.abs(M.mid) + M.rad)  # (E, H, b, b)
        of_constant = (inverse_after.size @ error.constant[a][..., None])[..., 0]
        self.error = above(of_constant + 4 * EPS * np.abs(t.mid) + t.rad)  # (E, H, b)
        # Only directions of one part can be shared: rows of other parts mean other functionals.
        is_alike = steps.part[source] == steps.part[target]
        after, before = steps.directions[target], steps.directions[source]
        self.along = [LetterBounds(group, M, t, after, before, steps.slow[source], is_alike) for group in steps.groups]


def _axes(directions: np.ndarray) -> list[tuple[int, int, int]]:
    """Return the directions that are coordinate axes in all parts, each as (row, head, coordinate)."""
    axes: list[tuple[int, int, int]] = []
    for row in range(directions.shape[1]):
        entries = np.argwhere(directions[:, row].any(0))
        if len(entries) == 1 and (directions[(slice(None), row, *entries[0])] == 1).all():
            axes.append((row, int(entries[0, 0]), int(entries[0, 1])))
    return axes


class Slabs(NamedTuple):
    """Directions that are carried together: all that extend over several heads, or those of one head."""

    rows: np.ndarray  # int64 (D,), their numbers
    heads: np.ndarray  # int64 (h,), the heads over which they extend
    is_fan: bool  # whether they extend over the first two coordinates of one head, both of these among them


def groups(directions: np.ndarray) -> list[Slabs]:
    """Return the directions of a tube, (parts, D, H, b), in groups."""
    used = np.abs(directions).max((0, 3), initial=0) > 0  # (D, H)
    single = used.sum(1) == 1
    parts = [Slabs(np.flatnonzero(~single), np.arange(used.shape[1]), False)]
    for h in range(used.shape[1]):
        rows = np.flatnonzero(single & used[:, h])
        parts.append(Slabs(rows, np.array([h]), _is_fan(directions[:, rows, h])))
    return [group for group in parts if len(group.rows)]


def _is_fan(rows: np.ndarray) -> bool:
    off = np.abs(rows[:, :, None, :2] - np.eye(2)).max((0, 3), initial=0)  # (D, 2), of all parts
    return len(rows[0]) > 0 and not off.min(0).any() and not rows[:, :, 2:].any()


class LetterBounds:
    """The effect of a letter w' = M w + t on the bounds of one group; n counts the entries of its heads.

    Args:
        M, t: balls (E, H, b, b) and (E, H, b).
        after, before: all directions at targets and at sources, (E, D, H, b).
        slow: the sources' slow coordinates, (E, H, b).
        alike: bool (E,), whether source and target have the same directions.
    """

    def __init__(
        self, group: Slabs, M: Ball, t: Ball, after: np.ndarray, before: np.ndarray, slow: np.ndarray, alike: np.ndarray
    ) -> None:
        self.group = group
        at = np.ix_(np.arange(len(after)), group.heads)
        after, before = after[:, group.rows][:, :, group.heads], before[:, group.rows][:, :, group.heads]
        d = Ball.exact(np.moveaxis(after, 1, 2))  # (E, h, D, b)
        image, constant = d @ M[at], (d @ t[at][..., None])[..., 0]  # (E, h, D, b), (E, h, D)
        d0 = np.moveaxis(before, 1, 2)
        # The source directions of the shares, by their place in the group, and the shares: (E, D, 2).
        self.of, share = _neighbours(image.mid[:, 0], d0[:, 0]) if group.is_fan else _own(image.mid, d0)
        self.share = np.where(alike[:, None, None], share, 0)
        rest, size = image, np.abs(image.mid)
        for i in (0, 1):
            part, taken = np.take_along_axis(d0, self.of[:, None, :, i, None], 2), self.share[:, None, :, i, None]
            rest, size = rest - Ball.exact(taken) * Ball.exact(part), size + np.abs(taken * part)
        count, D, h, b = after.shape
        flat, of_slow = (count, D, h * b), slow[at][:, :, None]
        self.image = np.moveaxis(image.mid, 2, 1).reshape(flat)  # (E, D, n), d M
        self.rest = np.moveaxis(rest.size * of_slow, 2, 1).reshape(flat)  # (E, D, n), |d M| less shares, where slow
        self.ball = np.moveaxis(norm(image.size * ~of_slow), 2, 1)  # (E, D, h)
        self.before, self.size = before.reshape(flat), np.abs(after).reshape(flat)  # (E, D, n), d and |d|
        self.constant = constant.mid.sum(1)  # (E, D), d·t
        # Bounds on the rounding of products with a centre, per size of the centre, and of d·t: (E, D, n), (E, D).
        self.slip = above(np.moveaxis(image.rad + 4 * EPS * size, 2, 1).reshape(flat))
        self.slip_constant = above((constant.rad + 4 * EPS * np.abs(constant.mid)).sum(1))

    def bounds(self, sets: Sets, spread: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of each direction on the images, (E, D, J) each, the tighter of its shares' and of `spread`.

        Args:
            sets: the sets of the sources, (E, …, J).
            spread, error: half-widths of the images' slow coordinates, (E, H, b, J), and their rounding, (E, H, b, 1).
        """
        heads, count = self.group.heads, len(sets.centre)
        parts = (sets.centre, sets.radius, spread, error)
        centre, radius, spread, error = (x[:, heads].reshape(count, -1, x.shape[-1]) for x in parts)
        size = np.abs(centre)
        at_centre = self.image @ centre + self.constant[..., None]
        from_centre = self.before @ centre
        slip = self.slip @ size + self.slip_constant[..., None]
        high, low = sets.upper[:, self.group.rows] - from_centre, sets.lower[:, self.group.rows] - from_centre
        # T20, fans: d·M w is a sum of shares of the old directions, bounded by their slabs, and a rest that intervals
        # and balls bound.
        rest = above(self.rest @ radius + self.ball @ sets.ball[:, heads] + self.size @ error + slip)
        up, down, moved = rest, -rest, np.zeros_like(rest)
        for i in (0, 1):
            share = self.share[..., i, None]
            above_it, below_it = (np.take_along_axis(x, self.of[..., i, None], 1) for x in (high, low))
            is_positive = share > 0
            # A negative share exchanges the two ends of a slab.
            up = up + share * np.where(is_positive, above_it, below_it)
            down = down + share * np.where(is_positive, below_it, above_it)
            moved = moved + (1 + np.abs(share)) * (np.abs(above_it) + np.abs(below_it))
        from_box = above(self.size @ spread + slip)
        # Both bounds hold, so the tighter one is taken on each side.
        up, down = np.minimum(up, from_box), np.maximum(down, -from_box)
        widen = 4 * EPS * (np.abs(at_centre) + np.abs(up) + np.abs(down) + moved)
        return at_centre + down - above(widen), at_centre + up + above(widen)


def _own(image: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each direction's index and its share in its image, by least squares: (E, h, D, b) to (E, D, 2) twice."""
    size = (before * before).sum((1, 3))
    share = (image * before).sum((1, 3)) / np.where(size > 0, size, 1)
    of = np.broadcast_to(np.arange(size.shape[1])[:, None], (*size.shape, 2))
    return of, np.stack([share, np.zeros_like(share)], -1)


def _neighbours(image: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and shares of the nearest directions, or opposites, on either side: (E, D, b) -> (E, D, 2) each.

    Directions that are zero have no share.
    """
    D = before.shape[1]
    fan = np.concatenate([before, -before], 1)[..., :2]  # (E, 2D, 2)
    turn = np.arctan2(image[..., 1], image[..., 0])[..., None] - np.arctan2(fan[..., 1], fan[..., 0])[:, None]
    is_some = np.abs(fan).max(-1) > 0
    turn = np.where(is_some[:, None], turn % (2 * np.pi), np.nan)  # (E, D, 2D), how far the image lies beyond each
    below = np.where(np.isnan(turn), np.inf, turn).argmin(-1)
    over = np.where(np.isnan(turn), -np.inf, turn).argmax(-1)
    a, b = (np.take_along_axis(fan, at[..., None], 1) for at in (below, over))
    # Cramer's rule: the image as a combination of the two directions on either side of it, which makes both shares
    # non-negative.
    det = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    is_pair = np.abs(det) > 1e-9
    det = np.where(is_pair, det, 1)
    first = (image[..., 0] * b[..., 1] - image[..., 1] * b[..., 0]) / det
    second = (a[..., 0] * image[..., 1] - a[..., 1] * image[..., 0]) / det
    # Places from D on are the opposites of the directions, for which the share changes its sign.
    share = np.stack([np.where(below < D, first, -first), np.where(over < D, second, -second)], -1)
    return np.stack([below % D, over % D], -1), np.where(is_pair[..., None], share, 0)
