"""One letter further: sets that hold A_a x + v_a, as computed, for every x of the sets before (L1 of docs/theory.md).

In the coordinates w of node p, x = T_p w, a letter a that leads to p' acts as w' = M w + t with M = T_p'⁻¹ A_a T_p and
t = T_p'⁻¹ v_a, head by head. M and t are enclosed once; the sets' centres and radii are plain floats, and what a step
computes with them is widened by `above`, and by what the midpoints' own rounding may come to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .directions import LetterBounds, groups
from .intervals import EPS, Ball, above, inverse, norm, spectral_norm
from .nodes import Nodes
from .rounding import StepError
from .sets import Sets, Tube


@dataclass(frozen=True, eq=False)
class _Letter:
    """What one letter does to all nodes: entries e stand for the f in `source` whose successor counts."""

    source: np.ndarray  # (E,)
    order: np.ndarray  # (E,), by the group (f', forgotten letter) that the images join
    starts: np.ndarray  # (G,), where each group begins in that order
    group: np.ndarray  # (E,)
    target: np.ndarray  # (G,), f'
    forgotten: np.ndarray  # (G,)
    M: np.ndarray  # (E, H, b, b)
    t: np.ndarray  # (E, H, b)
    slow: np.ndarray  # (E, H, b, b), |M| among slow coordinates
    ball_to_slow: np.ndarray  # (E, H, b)
    ball: np.ndarray  # (E, H)
    slow_to_ball: np.ndarray  # (E, H, b)
    error_size: np.ndarray  # (E, H, b, b), of the entries of x
    error_centre: np.ndarray  # (E, H, b, b), of those of the centre in coordinates w
    error: np.ndarray  # (E, H, b)
    along: list[LetterBounds]  # by groups of directions


class Steps:
    """The step of a model's tables between the nodes of a tube."""

    def __init__(self, nodes: Nodes, tube: Tube, A: np.ndarray, v: np.ndarray, error: StepError) -> None:
        self._nodes, self.slow = nodes, tube.slow
        self.T, self._inverse = tube.basis, inverse(tube.basis)
        self.size_T = above(np.abs(tube.basis))
        self.ball_rows = norm(np.abs(tube.basis) * ~tube.slow[:, :, None, :])  # (F, H, b)
        self.directions = tube.directions[tube.part[nodes.state]] * tube.slow[:, None]  # (F, D, H, b)
        self._part, self._groups = tube.part[nodes.state], groups(tube.directions)
        self._axes = _axes(tube.directions)
        self.letters = [self._letter(a, A[a], v[a], error) for a in range(nodes.n_letters)]

    def sizes(self, sets: Sets) -> np.ndarray:
        """At least the absolute values of the states' entries: (F, H, b, J)."""
        reach = self.size_T @ above(np.abs(sets.centre) + sets.radius)
        return above(reach + self.ball_rows[..., None] * sets.ball[:, :, None])

    def after(self, sets: Sets, centre: np.ndarray | None = None) -> Sets:
        """Sets that hold every image of a state of `sets`, as computed; about these centres where they are given."""
        found = _Empty.like(sets)
        radius, size = sets.radius, self.sizes(sets)
        centres = found.centre if centre is None else centre
        for letter in self.letters:
            if not len(letter.source):
                continue
            images = self._images(letter, sets, size)
            self._join_intervals(found, letter, images)
            if centre is None:
                self._choose_centres(found, letter, images)
            self._join_balls(found, letter, images, centres)
        self._tighten(found)
        alive = found.alive[:, None, None]
        slow = self.slow[..., None] & alive
        if centre is None:
            middle = (np.where(slow, found.low, 0) + np.where(slow, found.high, 0)) / 2
            centres = np.where(slow, middle, centres)  # any choice would be sound
        off = np.maximum(found.high - centres, centres - found.low)
        radius = np.where(slow, above(np.where(slow, off, 0) + EPS * (np.abs(centres))), 0)
        along = found.alive[:, None]
        lower, upper = np.where(along, found.lower, 0), np.where(along, found.upper, 0)
        ball = np.where(found.alive[:, None], found.ball, 0)
        return Sets(sets.length + 1, found.alive, np.where(alive, centres, 0), radius, ball, lower, upper)

    def _images(self, letter: _Letter, sets: Sets, size: np.ndarray) -> _Images:
        """Of each source's set: centre and radii, (E, H, b, J), the error of computing with them included."""
        at = letter.source
        centre, radius, ball = sets.centre[at], sets.radius[at], sets.ball[at]
        # The errors are small beside the rest, so one bound serves all j.
        error = letter.error_size @ size[at].max(-1, keepdims=True)
        error = above(error + letter.error_centre @ np.abs(centre).max(-1, keepdims=True) + letter.error[..., None])
        middle = letter.M @ centre + letter.t[..., None]
        spread = above(letter.slow @ radius + letter.ball_to_slow[..., None] * ball[:, :, None] + error)
        fast = norm((error * ~self._target_slow(letter)[..., None]), axis=2)
        wide = letter.ball[..., None] * ball + (letter.slow_to_ball[..., None] * radius).sum(2) + fast
        lower, upper = self._along(letter, sets, middle, spread, error)
        return _Images(sets.alive[at], middle, spread, above(wide), lower, upper)

    def _along(
        self, letter: _Letter, sets: Sets, middle: np.ndarray, spread: np.ndarray, error: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on each direction in the images, (E, D, J)."""
        at = letter.source
        lower, upper = (np.zeros((len(at), self.directions.shape[1], middle.shape[-1])) for _ in range(2))
        for along in letter.along:
            lower[:, along.group.rows], upper[:, along.group.rows] = along.bounds(
                sets.centre[at], sets.radius[at], sets.ball[at], sets.lower[at], sets.upper[at], spread, error
            )
        return lower, upper

    def _join_intervals(self, found: _Empty, letter: _Letter, images: _Images) -> None:
        here = images.alive[:, None, None]
        self._put(found.low, letter, np.minimum, np.where(here, images.middle - images.spread, np.inf))
        self._put(found.high, letter, np.maximum, np.where(here, images.middle + images.spread, -np.inf))
        along = images.alive[:, None]
        self._put(found.lower, letter, np.minimum, np.where(along, images.lower, np.inf))
        self._put(found.upper, letter, np.maximum, np.where(along, images.upper, -np.inf))
        self._put(found.alive, letter, np.logical_or, images.alive)

    def _tighten(self, found: _Empty) -> None:
        """Intervals by the directions along their coordinates."""
        for row, h, i in self._axes:
            slow, low, high = self.slow[:, h, i, None], found.low[:, h, i], found.high[:, h, i]
            found.low[:, h, i] = np.where(slow, np.maximum(low, found.lower[:, row]), low)
            found.high[:, h, i] = np.where(slow, np.minimum(high, found.upper[:, row]), high)

    def _choose_centres(self, found: _Empty, letter: _Letter, images: _Images) -> None:
        """The mean of the images' centres: any choice would be sound."""
        here = images.alive[:, None, None]
        total, count = np.zeros_like(found.centre), np.zeros(found.alive.shape)
        self._put(total, letter, np.add, np.where(here, images.middle, 0))
        self._put(count, letter, np.add, images.alive.astype(np.float64))
        mean = total / np.maximum(count, 1)[:, None, None]
        found.centre += np.where((count > 0)[:, None, None], mean, 0)

    def _join_balls(self, found: _Empty, letter: _Letter, images: _Images, centres: np.ndarray) -> None:
        there = self._pull(centres, letter)
        off = above(np.abs(images.middle - there) + EPS * (np.abs(images.middle) + np.abs(there)))
        wide = above(norm(off * ~self._target_slow(letter)[..., None], axis=2) + images.ball)
        self._put(found.ball, letter, np.maximum, np.where(images.alive[:, None], wide, 0))

    def _target_slow(self, letter: _Letter) -> np.ndarray:
        return self.slow[letter.target[letter.group]]

    def _put(self, into: np.ndarray, letter: _Letter, join: np.ufunc, values: np.ndarray) -> None:
        """Join values (E, …, J) of the images that come to the same node, and write them there: (F, …, J)."""
        n, J = self._nodes.n_letters, values.shape[-1]
        if J > 1:  # j = (oldest letter, others): the oldest is forgotten, the frame's oldest joins the others
            values = join.reduce(values.reshape(*values.shape[:-1], n, J // n), axis=-2)
        joined = join.reduceat(values[letter.order], letter.starts, axis=0)
        if J == 1:
            into[letter.target] = joined
        else:
            view = into.reshape(*into.shape[:-1], J // n, n)
            for letter_forgotten in range(n):
                where = letter.forgotten == letter_forgotten
                view[letter.target[where], ..., letter_forgotten] = joined[where]

    def _pull(self, values: np.ndarray, letter: _Letter) -> np.ndarray:
        """Values at the node that each image comes to: (F, …, J) -> (E, …, J)."""
        n, J = self._nodes.n_letters, values.shape[-1]
        if J == 1:
            return values[letter.target[letter.group]]
        view = np.moveaxis(values.reshape(*values.shape[:-1], J // n, n), -1, 1)  # (F, |Σ|, …, J/|Σ|)
        there = view[letter.target, letter.forgotten][letter.group]
        return np.repeat(there[..., None, :], n, axis=-2).reshape(*there.shape[:-1], J)

    def _letter(self, a: int, A: np.ndarray, v: np.ndarray, error: StepError) -> _Letter:
        nodes = self._nodes
        source = np.flatnonzero(nodes.delta[a] >= 0)
        target = nodes.delta[a][source]
        forgotten = nodes.oldest[source] if nodes.older > 1 else np.zeros_like(source)
        keys, group = np.unique(target * nodes.n_letters + forgotten, return_inverse=True)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(len(keys)))
        inverse_there = self._inverse[target]
        M = inverse_there @ Ball.exact(A) @ Ball.exact(self.T[source])
        t = (inverse_there @ Ball.exact(v[..., None]))[..., 0]
        is_slow, was_slow = self.slow[target][..., None], self.slow[source][..., None, :]
        cross = norm(M.size * ~was_slow)
        return _Letter(
            source, order, starts, group, keys // nodes.n_letters, keys % nodes.n_letters,
            M=M.mid,
            t=t.mid,
            slow=M.size * (is_slow & was_slow),
            ball_to_slow=cross * is_slow[..., 0],
            ball=spectral_norm(Ball(M.mid * (~is_slow & ~was_slow), M.rad * (~is_slow & ~was_slow))),
            slow_to_ball=norm(M.size * ~is_slow, axis=-2) * was_slow[..., 0, :],
            error_size=above(inverse_there.size @ error.matrix[a]),
            error_centre=above(4 * EPS * np.abs(M.mid) + M.rad),
            error=above(
                (inverse_there.size @ error.constant[a][..., None])[..., 0] + 4 * EPS * np.abs(t.mid) + t.rad
            ),
            along=[
                LetterBounds.of_letter(
                    group, M, t, self.directions[target], self.directions[source], self.slow[source],
                    self._part[source] == self._part[target],
                )
                for group in self._groups
            ],
        )  # fmt: skip


def _axes(directions: np.ndarray) -> list[tuple[int, int, int]]:
    """Which directions are those of a coordinate, in all parts: (row, head, coordinate)."""
    found: list[tuple[int, int, int]] = []
    for row in range(directions.shape[1]):
        entries = np.argwhere(directions[:, row].any(0))
        if len(entries) == 1 and (directions[(slice(None), row, *entries[0])] == 1).all():
            found.append((row, int(entries[0, 0]), int(entries[0, 1])))
    return found


@dataclass(frozen=True, eq=False)
class _Images:
    alive: np.ndarray  # (E, J)
    middle: np.ndarray  # (E, H, b, J)
    spread: np.ndarray  # (E, H, b, J), slow coordinates
    ball: np.ndarray  # (E, H, J)
    lower: np.ndarray  # (E, D, J)
    upper: np.ndarray


@dataclass(eq=False)
class _Empty:
    """Bounds that images are joined into."""

    alive: np.ndarray
    centre: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ball: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @classmethod
    def like(cls, sets: Sets) -> _Empty:
        return cls(
            np.zeros_like(sets.alive), np.zeros_like(sets.centre), np.full_like(sets.centre, np.inf),
            np.full_like(sets.centre, -np.inf), np.zeros_like(sets.ball), np.full_like(sets.lower, np.inf),
            np.full_like(sets.upper, -np.inf),
        )  # fmt: skip
