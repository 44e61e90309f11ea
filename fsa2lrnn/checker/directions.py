"""How bounds along directions carry over a letter: d·w' = d M w + d·t for a direction d of the node that it leads to.

d M is written as a sum of shares of the directions there are where the letter comes from, as far as that goes; what
is left is bounded by the intervals. A direction over several heads takes a share of itself. Those that fan out in the
plane of two slow coordinates of a head take shares of the two on either side of d M, so that a letter that turns the
plane a little makes the set little larger, where intervals would grow at each turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .intervals import EPS, Ball, above, norm


@dataclass(frozen=True, eq=False)
class DirectionGroup:
    """Directions that are carried together: all that extend over several heads, or those of a head.

    Args:
        rows: int64 (D,), which.
        heads: int64 (h,), over which they extend.
        is_fan: they extend over the first two coordinates of one head, and both of these are among them.
    """

    rows: np.ndarray
    heads: np.ndarray
    is_fan: bool


def groups(directions: np.ndarray) -> list[DirectionGroup]:
    """The directions of a tube, (parts, D, H, b), in groups.

    >>> several, one = np.ones((1, 1, 2, 3)), np.zeros((1, 2, 2, 3))
    >>> one[0, :, 1, :2] = [[1, 0], [0, 1]]
    >>> [(found.rows.tolist(), found.heads.tolist(), found.is_fan) for found in groups(np.hstack([several, one]))]
    [([0], [0, 1], False), ([1, 2], [1], True)]
    """
    used = np.abs(directions).max((0, 3), initial=0) > 0  # (D, H)
    single = used.sum(1) == 1
    found = [DirectionGroup(np.flatnonzero(~single), np.arange(used.shape[1]), False)]
    for h in range(used.shape[1]):
        rows = np.flatnonzero(single & used[:, h])
        found.append(DirectionGroup(rows, np.array([h]), _is_fan(directions[:, rows, h])))
    return [group for group in found if len(group.rows)]


def _is_fan(rows: np.ndarray) -> bool:
    off = np.abs(rows[:, :, None, :2] - np.eye(2)).max((0, 3), initial=0)  # (D, 2), of all parts
    return len(rows[0]) > 0 and not off.min(0).any() and not rows[:, :, 2:].any()


@dataclass(frozen=True, eq=False)
class LetterBounds:
    """What a letter does to the bounds of one group; n entries are those of its heads."""

    group: DirectionGroup
    image: np.ndarray  # (E, D, n), d M
    of: np.ndarray  # (E, D, 2), the directions that a share is taken of, by their place in the group
    share: np.ndarray  # (E, D, 2)
    rest: np.ndarray  # (E, D, n), what the shares leave of |d M|, over slow coordinates
    ball: np.ndarray  # (E, D, h)
    before: np.ndarray  # (E, D, n), d at the source
    size: np.ndarray  # (E, D, n), |d| at the target
    constant: np.ndarray  # (E, D), d·t
    slip: np.ndarray  # (E, D, n), what the products with a centre may be off by, by the centre's size
    slip_constant: np.ndarray  # (E, D)

    @classmethod
    def of_letter(
        cls,
        group: DirectionGroup,
        M: Ball,
        t: Ball,
        there: np.ndarray,
        before: np.ndarray,
        slow: np.ndarray,
        alike: np.ndarray,
    ) -> LetterBounds:
        """From M (E, H, b, b), t (E, H, b), all directions at targets and sources (E, D, H, b), the sources' slow
        coordinates (E, H, b), and whether source and target have their directions in common (E,)."""
        at = np.ix_(np.arange(len(there)), group.heads)
        there, before = there[:, group.rows][:, :, group.heads], before[:, group.rows][:, :, group.heads]
        d = Ball.exact(np.moveaxis(there, 1, 2))  # (E, h, D, b)
        image, constant = d @ M[at], (d @ t[at][..., None])[..., 0]  # (E, h, D, b), (E, h, D)
        d0 = np.moveaxis(before, 1, 2)
        of, share = _neighbours(image.mid[:, 0], d0[:, 0]) if group.is_fan else _own(image.mid, d0)
        share = np.where(alike[:, None, None], share, 0)
        parts = [np.take_along_axis(d0, of[:, None, :, i, None], 2) for i in (0, 1)]
        rest, size = image, np.abs(image.mid)
        for i, part in enumerate(parts):
            taken = share[:, None, :, i, None]
            rest, size = rest - Ball.exact(taken) * Ball.exact(part), size + np.abs(taken * part)
        count, D, h, b = there.shape
        flat, of_slow = (count, D, h * b), slow[at][:, :, None]
        return cls(
            group,
            image=np.moveaxis(image.mid, 2, 1).reshape(flat),
            of=of,
            share=share,
            rest=np.moveaxis(rest.size * of_slow, 2, 1).reshape(flat),
            ball=np.moveaxis(norm(image.size * ~of_slow), 2, 1),
            before=before.reshape(flat),
            size=np.abs(there).reshape(flat),
            constant=constant.mid.sum(1),
            slip=above(np.moveaxis(image.rad + 4 * EPS * size, 2, 1).reshape(flat)),
            slip_constant=above((constant.rad + 4 * EPS * np.abs(constant.mid)).sum(1)),
        )

    def bounds(
        self, centre: np.ndarray, radius: np.ndarray, ball: np.ndarray, lower: np.ndarray, upper: np.ndarray,
        spread: np.ndarray, error: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Bounds on each direction in the images, (E, D, J) each: the better of what the shares and the box say.

        Args:
            centre, radius: of the sources, (E, H, b, J); ball: (E, H, J); lower, upper: all, (E, all D, J).
            spread, error: of the images' slow coordinates, (E, H, b, J) and (E, H, b, 1).
        """
        heads, count, J = self.group.heads, len(centre), centre.shape[-1]
        centre, radius = centre[:, heads].reshape(count, -1, J), radius[:, heads].reshape(count, -1, J)
        spread, error = spread[:, heads].reshape(count, -1, J), error[:, heads].reshape(count, -1, 1)
        size = np.abs(centre)
        at_centre = self.image @ centre + self.constant[..., None]
        known = self.before @ centre
        slip = self.slip @ size + self.slip_constant[..., None]
        high, low = upper[:, self.group.rows] - known, lower[:, self.group.rows] - known
        rest = above(self.rest @ radius + self.ball @ ball[:, heads] + self.size @ error + slip)
        up, down, moved = rest, -rest, np.zeros_like(rest)
        for i in (0, 1):
            share = self.share[..., i, None]
            above_it, below_it = (np.take_along_axis(x, self.of[..., i, None], 1) for x in (high, low))
            is_positive = share > 0
            up = up + share * np.where(is_positive, above_it, below_it)
            down = down + share * np.where(is_positive, below_it, above_it)
            moved = moved + (1 + np.abs(share)) * (np.abs(above_it) + np.abs(below_it))
        from_box = above(self.size @ spread + slip)
        up, down = np.minimum(up, from_box), np.maximum(down, -from_box)
        widen = 4 * EPS * (np.abs(at_centre) + np.abs(up) + np.abs(down) + moved)
        return at_centre + down - above(widen), at_centre + up + above(widen)


def _own(image: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A share of each direction itself, by least squares: from (E, h, D, b) to (E, D, 2) twice."""
    size = (before * before).sum((1, 3))
    share = (image * before).sum((1, 3)) / np.where(size > 0, size, 1)
    of = np.broadcast_to(np.arange(size.shape[1])[:, None], (*size.shape, 2))
    return of, np.stack([share, np.zeros_like(share)], -1)


def _neighbours(image: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two directions, or their opposites, nearest on either side in the plane, (E, D, b) -> (E, D, 2) twice.

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
    det = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    is_pair = np.abs(det) > 1e-9
    det = np.where(is_pair, det, 1)
    first = (image[..., 0] * b[..., 1] - image[..., 1] * b[..., 0]) / det
    second = (a[..., 0] * image[..., 1] - a[..., 1] * image[..., 0]) / det
    share = np.stack([np.where(below < D, first, -first), np.where(over < D, second, -second)], -1)
    return np.stack([below % D, over % D], -1), np.where(is_pair[..., None], share, 0)
