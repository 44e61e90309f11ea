"""Short words one by one: the state after every word of a length, with a bound on its rounding."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .intervals import EPS, Ball, above, inverse, norm
from .margins import Margins, ScaledReadout
from .nodes import CountedAutomaton, Nodes
from .rounding import LARGEST, StepError
from .sets import Sets, Tube

_AT_ONCE = 4096
_NUMBERS_AT_ONCE = 1 << 22  # of bounds on one word for each hidden unit, entry of the state and rival


@dataclass(frozen=True, eq=False)
class ShortWords:
    """All words of one length after which an output that counts can still be reached.

    Args:
        state: int64 (W,), the machine's state after each word.
        letters: int64 (W,), the last letters of each word as the digits of a number, the oldest first.
        x: a ball (W, H, b) that contains the model's state after each word.
    """

    state: np.ndarray
    letters: np.ndarray
    x: Ball


def all_words(
    A: np.ndarray, v: np.ndarray, x0: np.ndarray, target: CountedAutomaton, error: StepError, memory: int
) -> Iterator[ShortWords]:
    """Yield the words of length 0, 1, 2, … with their last `memory` letters."""
    n_letters = len(A)
    state, letters, x = np.array([target.start]), np.zeros(1, np.int64), Ball.exact(x0[None])
    while True:
        yield ShortWords(state, letters, x)
        middle = np.einsum("ahij,whj->wahi", A, x.mid, optimize=True) + v  # (W, |Σ|, H, b)
        # The radius collects |A| times the old one, the model's rounding for |x|, and the rounding of `middle` in
        # float64.
        spread = np.einsum("ahij,whj->wahi", np.abs(A), x.rad, optimize=True)
        spread = spread + np.einsum("ahij,whj->wahi", error.matrix + 4 * EPS * np.abs(A), x.size, optimize=True)
        spread = above(spread + error.constant + 4 * EPS * np.abs(v))
        state = target.delta[:, state].T.reshape(-1)
        letters = ((letters[:, None] * n_letters + np.arange(n_letters)) % n_letters**memory).reshape(-1)
        # Words from which no output that counts can be reached are dropped: T8 and T20 need no others.
        keep = target.coaccessible[state]
        shape = (-1, *x0.shape)
        state, letters = state[keep], letters[keep]
        x = Ball(middle.reshape(shape)[keep], spread.reshape(shape)[keep])


def least_margin(words: ShortWords, readout: ScaledReadout, target: CountedAutomaton) -> float:
    """Return a lower bound of the margin after each of these words that counts, ∞ if none does.

    The bound is −∞ if states may overflow or the model lacks an output that counts.
    """
    counts, answerable = target.counts[words.state], target.answerable[words.state]
    if not (words.x.size <= LARGEST).all() or (counts & ~answerable).any():
        return -np.inf
    expected = target.expected[words.state]
    least = [np.inf]
    for output in np.unique(expected[answerable]):
        some = answerable & (expected == output)
        mid, rad = words.x.mid[some], words.x.rad[some]
        _, H, b = mid.shape
        # A word's state is a box in its own coordinates: all are slow, without directions, in one node of W sets.
        T, slow, directions = np.eye(b) + np.zeros((1, H, b, b)), np.ones((1, H, b), bool), np.zeros((1, 0, H, b))
        box = Margins(readout, T, slow, directions, np.array([output]))
        m, n = readout.B.mid.shape
        at_once = max(1, min(_AT_ONCE, _NUMBERS_AT_ONCE // (n + (m + n) * len(readout.b2))))
        for first in range(0, len(mid), at_once):
            some = slice(first, first + at_once)
            least.append(float(box.least(_boxes(mid[some], rad[some])).min()))
    return float(np.min(least))  # NaN if one of them is


def _boxes(mid: np.ndarray, rad: np.ndarray) -> Sets:
    """Return boxes about states, (W, H, b) each, as W sets in one system of coordinates."""
    count, H, _ = mid.shape
    centre, radius = np.moveaxis(mid, 0, -1)[None], np.moveaxis(rad, 0, -1)[None]
    none = np.zeros((1, 0, count))
    return Sets(0, np.ones((1, count), bool), centre, radius, np.zeros((1, H, count)), none, none)


def enclose(words: ShortWords, length: int, nodes: Nodes, tube: Tube, directions: np.ndarray) -> Sets:
    """Return sets that hold the states of these words, each in the node that the word leads to.

    `directions` are those of each f, (F, D, H, b), zero except in slow coordinates.
    """
    F, H, b = tube.slow.shape
    J = nodes.older
    f, j = nodes.numbers(words.state, words.letters)
    row, box = (F, directions.shape[1], J), (F, H, b, J)
    sets = Sets(length, np.zeros((F, J), bool), *map(np.zeros, (box, box, (F, H, J), row, row)))
    to_w = inverse(tube.basis)
    order = np.argsort(f, kind="stable")  # words of one node side by side
    for some in np.split(order, np.flatnonzero(np.diff(f[order])) + 1) if len(f) else ():
        here = int(f[some[0]])
        x = Ball(np.moveaxis(words.x.mid[some], 0, -1), np.moveaxis(words.x.rad[some], 0, -1))  # (H, b, W)
        _enclose_in(sets, here, j[some], to_w[here] @ x, tube.slow[here], directions[here])
    return sets


def _enclose_in(sets: Sets, f: int, j: np.ndarray, w: Ball, slow: np.ndarray, directions: np.ndarray) -> None:
    """Write the sets of all nodes (f, j), from coordinates w (H, b, W) of words and the j of each."""
    order = np.argsort(j, kind="stable")
    at, starts = np.unique(j[order], return_index=True)
    count = np.diff(np.append(starts, len(j)))
    lower, upper = (x[..., order] for x in w.bounds())
    low, high = np.minimum.reduceat(lower, starts, -1), np.maximum.reduceat(upper, starts, -1)
    mean = np.add.reduceat(w.mid[..., order], starts, -1) / count
    centre = np.where(slow[..., None], (low + high) / 2, mean)  # any choice would be sound
    centres = np.repeat(centre, count, -1)
    off = above(np.maximum(upper - centres, centres - lower) + EPS * np.abs(centres))  # (H, b, W)
    sets.alive[f, at] = True
    sets.centre[f][..., at] = centre
    sets.radius[f][..., at] = np.maximum.reduceat(off, starts, -1) * slow[..., None]
    sets.ball[f][..., at] = np.maximum.reduceat(norm(off * ~slow[..., None], axis=-2), starts, -1)
    rows = directions.reshape(len(directions), slow.size)
    d = Ball.exact(rows) @ Ball(*(x[..., order].reshape(-1, len(j)) for x in (w.mid, w.rad)))
    lower, upper = d.bounds()
    sets.lower[f][:, at] = np.minimum.reduceat(lower, starts, -1)
    sets.upper[f][:, at] = np.maximum.reduceat(upper, starts, -1)
