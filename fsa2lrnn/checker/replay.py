"""The replay of a proof by sets: margins at every length, computed from tables, target and tube alone.

Short words come one by one: the state after every word of a length, with a bound on its rounding.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from .claims import CountedAutomaton, Nodes, Sets, Tables, Tail, Tube, nodes
from .errors import InvalidCertificate, demand
from .margins import Margins, ScaledReadout
from .rounding import EPS, LARGEST, Ball, Slack, StepError, above, inverse, norm
from .steps import Steps

_MOST_STEPS = 1 << 62  # of a ramp, so that int64 and float64 hold them


class TubeReplay:
    """A tube for tables and a target, and the steps and margins of its sets.

    Raises:
        InvalidCertificate: if the tube's arrays do not fit the nodes of the target, or a basis is singular.
        UnsupportedInput: for dtypes and widths that the bounds on rounding do not cover.
    """

    def __init__(self, tables: Tables, target: CountedAutomaton, tube: Tube, slack: Slack) -> None:
        weights, kind = tables.weights, tables.format()
        self._A, self._v, self._x0 = weights["A"], weights["v"], weights["x0"]
        self._tables, self._target, self.tube, self._slack = tables, target, tube, slack
        self.nodes = _checked_nodes(tube, target, *self._x0.shape)
        state = self.nodes.state
        # T20 (iii) concerns only nodes whose output counts; sets at the others are carried on, but not read.
        some = self._counting = np.flatnonzero(target.answerable[state])
        self._unanswerable = np.flatnonzero((target.counts & ~target.answerable)[state])
        demand(len(some) > 0, f"after {tube.memory} letters no output counts that the model has: nothing to check")
        self._error = StepError(self._A, self._v, slack, kind)
        self._readout = ScaledReadout(weights, kind)
        try:
            self.steps = Steps(self.nodes, tube, self._A, self._v, self._error)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            raise InvalidCertificate(f"the coordinates of a node cannot be inverted: {error}") from error
        T, slow, directions = tube.basis[some], tube.slow[some], self.steps.directions[some]
        self._margins = Margins(self._readout, T, slow, directions, target.expected[state[some]])

    @cached_property
    def wide(self) -> "TubeReplay":
        """A replay for sets without bounds along directions, such as those of a tail."""
        tube = replace(self.tube, directions=self.tube.directions[:, :0], stored=())
        return TubeReplay(self._tables, self._target, tube, self._slack)

    def lengths(self) -> Iterator[tuple[float, Sets | None]]:
        """Yield, for length 1, 2, … without end, a lower bound of the margins and the sets (None for single words).

        Raises `InvalidCertificate` where a stored set does not hold the images.
        """
        sets = None
        words = all_words(self._A, self._v, self._x0, self._target, self._error, self.tube.memory)
        # T20 (iv): up to `start` letters, every word is read by itself.
        for length, of_length in enumerate(islice(words, 1, self.tube.start + 1), start=1):
            if length == self.tube.start:
                sets = enclose(of_length, length, self.nodes, self.tube, self.steps.directions)
            yield least_margin(of_length, self._readout, self._target), sets
        stored = {each.length: each for each in self.tube.stored}
        while sets is not None:
            sets = self.steps.after(sets)
            # T20 (ii): stored sets may replace the computed ones if they contain them.
            if sets.length in stored:
                self.check_holds(stored[sets.length], sets, f"the sets stored at length {sets.length}")
                sets = stored[sets.length]
            yield self.margin(sets), sets

    def margin(self, sets: Sets) -> float:
        """Return a lower bound of the margin on all sets, ∞ if no output there counts."""
        # States that overflow may become NaN later, whether the outputs read from them counted or not.
        if not (np.where(sets.alive[:, None, None], self.steps.sizes(sets), 0) <= LARGEST).all():
            return -np.inf
        if sets.alive[self._unanswerable].any():  # the model lacks an output that counts there
            return -np.inf
        counting = sets.at(self._counting)
        return float(np.where(counting.alive, self._margins.least(counting), np.inf).min(initial=np.inf))

    def tail(self, ramps: tuple[Tail, ...], sets: Sets) -> tuple[float, int | None]:
        """Return a lower bound of the margin from the length of `sets` to the end of the tail, and that length.

        Raises `InvalidCertificate` where the tail does not hold the sets, or its sets those of the next length.

        In the coordinates of a set about a fixed centre, the radii after a letter are bounded by sums, maxima and norms
        of those before it. These are convex, so what holds for the first and the last of linearly growing sets holds
        for all between them.
        """
        least, end = np.inf, None
        for ramp in ramps:
            start = ramp.sets
            where = f"the tail from length {start.length:,}"
            demand(start.length == sets.length, f"{where} does not begin where the sets before it end, {sets.length:,}")
            self.check_holds(start, replace(sets, lower=sets.lower[:, :0], upper=sets.upper[:, :0]), where)
            self.check_ramp(ramp)
            sets = grown(ramp, 0 if ramp.steps is None else ramp.steps)
            least = float(np.minimum(least, self.wide.margin(sets)))  # NaN if either is
            end = None if ramp.steps is None else sets.length
            if end is None:
                break
        return least, end

    def check_ramp(self, ramp: Tail) -> None:
        """Raise `InvalidCertificate` unless the sets of a tail hold the images of its sets one letter earlier."""
        where, steps = f"the tail from length {ramp.sets.length:,}", ramp.steps
        is_still = steps is not None or not (ramp.radius.any() or ramp.ball.any())
        demand(is_still, f"{where}: sets that hold all longer words may not grow")
        in_range = steps is None or 1 <= steps <= _MOST_STEPS
        demand(in_range, f"{where} has {steps} steps: a number from 1 to {_MOST_STEPS:,} is needed")
        # The radii after a letter are convex in those before it, so the first and the last step decide for all between
        # them.
        for i in (0,) if steps is None else (0, steps - 1):
            # The sets before are rounded up and those after rounded down, so that rounding here can only make the check
            # fail.
            before, after = grown(ramp, i), grown(ramp, i if steps is None else i + 1, down=True)
            self.check_holds(after, self.wide.steps.after(before, before.centre), f"{where}, {i:,} letters on,")

    def check_holds(self, outer: Sets, inner: Sets, what: str) -> None:
        """Raise `InvalidCertificate` unless every set of `inner` lies in that of `outer`."""
        demand(not (inner.alive & ~outer.alive).any(), f"{what} lack a node that words lead to")
        shift = inner.centre - outer.centre  # zero only if it is
        # A set about another centre is contained if the distance of the centres and its radius fit into the outer
        # radius.
        off = np.where(shift == 0, 0, above(np.abs(shift) + EPS * (np.abs(inner.centre) + np.abs(outer.centre))))
        slow = self.tube.slow[..., None]
        in_box = ~slow | (above(off + inner.radius) <= outer.radius)
        in_ball = above(norm(off * ~slow, axis=2) + inner.ball) <= outer.ball
        along = (outer.lower <= inner.lower) & (inner.upper <= outer.upper)
        for name, inside, axes in (("interval", in_box, (1, 2)), ("ball", in_ball, 1), ("direction", along, 1)):
            outside = np.argwhere(~inside.all(axes) & inner.alive)
            if len(outside):
                f, j = (int(i) for i in outside[0])
                raise InvalidCertificate(f"{what} do not hold all states that a letter leads to: {name} of ({f}, {j})")


def grown(ramp: Tail, steps: int, down: bool = False) -> Sets:
    """Return the sets of a tail after some letters, rounded up, or down for `down`."""
    sets = ramp.sets
    if not steps:
        return sets
    radius, ball = sets.radius + steps * ramp.radius, sets.ball + steps * ramp.ball
    if down:
        radius, ball = radius * (1 - EPS), ball * (1 - EPS)
    else:
        radius, ball = np.where(radius == 0, 0, above(radius)), above(ball)
    return replace(sets, length=sets.length + steps, radius=radius, ball=ball)


def _checked_nodes(tube: Tube, target: CountedAutomaton, heads: int, b: int) -> Nodes:
    """Return the nodes of a tube. Raises `InvalidCertificate` unless the tube's arrays fit them."""
    of_tube = nodes(target, tube.memory, tube.frame_memory)
    F, J = len(of_tube.state), of_tube.older
    demand(tube.directions.ndim == 4, f"directions has shape {tube.directions.shape}, not (parts, D, H, b)")
    parts, D = tube.directions.shape[:2]
    box, row = (F, heads, b, J), (F, heads, J)
    of_sets = {"alive": (F, J), "centre": box, "radius": box, "ball": row, "lower": (F, D, J), "upper": (F, D, J)}
    shapes = {
        "basis": (F, heads, b, b), "slow": (F, heads, b), "part": (target.delta.shape[1],),
        "directions": (parts, D, heads, b),
    }  # fmt: skip
    checked: list[tuple[str, Tube | Sets | Tail, dict[str, tuple[int, ...]]]] = [("", tube, shapes)]
    checked += [(f"at length {sets.length:,}: ", sets, of_sets) for sets in tube.stored]
    for ramp in tube.tail:
        where = f"the tail from length {ramp.sets.length:,}: "
        checked.append((where, ramp.sets, of_sets | {"lower": (F, 0, J), "upper": (F, 0, J)}))
        checked.append((f"{where}growth of ", ramp, {"radius": box, "ball": row}))
    faults: list[str] = []
    kinds = {"slow": np.bool_, "alive": np.bool_, "part": np.int64}
    for where, part, shapes in checked:  # collect the faults of all arrays
        for name, shape in shapes.items():
            array, kind = getattr(part, name), np.dtype(kinds.get(name, np.float64))
            if array.shape != shape or array.dtype != kind:
                faults.append(f"{where}{name} has shape {array.shape} and dtype {array.dtype}, not {shape} and {kind}")
            elif not np.isfinite(array).all():
                faults.append(f"{where}{name} has entries that are not finite")
            elif name in ("radius", "ball") and (array < 0).any():
                faults.append(f"{where}{name} has negative entries: sets may not shrink")
    if not faults and not (tube.part.min() >= 0 and tube.part.max() < parts):
        faults.append(f"part runs {tube.part.min()}..{tube.part.max()}, directions are of {parts} parts")
    demand(not faults, "; ".join(faults[:3]))
    return of_tube


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
