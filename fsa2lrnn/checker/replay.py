"""The proof of a certificate, done again: margins at every length, from nothing but tables, target and tube."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice

import numpy as np

from .errors import InvalidCertificate
from .intervals import EPS, above, norm
from .margins import Margins, ScaledReadout
from .nodes import CountedAutomaton, Nodes, nodes
from .rounding import LARGEST, Slack, StepError
from .sets import Sets, Tail, Tube
from .short_words import all_words, enclose, least_margin
from .steps import Steps
from .tables import Tables

LONGEST_START = 64  # letters
_MOST_STEPS = 1 << 62  # of a ramp, as an int64 and a float hold them
_MOST = 1 << 17  # sets, and words looked at one by one: several times what the search asks for


class TubeReplay:
    """A tube, walked along for tables and a target.

    Raises:
        InvalidCertificate: if the tube's arrays do not fit the nodes of the target, or a basis is singular.
        UnsupportedInput: for dtypes and widths that the bounds on rounding do not cover.
    """

    def __init__(self, tables: Tables, target: CountedAutomaton, tube: Tube, slack: Slack) -> None:
        weights, kind = tables.weights, tables.format()
        self._A, self._v, self._x0 = weights["A"], weights["v"], weights["x0"]
        self._target, self.tube = target, tube
        self.nodes = _checked_nodes(tube, target, *self._x0.shape)
        self._error = StepError.of(self._A, self._v, slack, kind)
        self._readout = ScaledReadout.of(weights, kind)
        try:
            self.steps = Steps(self.nodes, tube, self._A, self._v, self._error)
        except ArithmeticError as error:
            raise InvalidCertificate(f"the coordinates of a node can't be inverted: {error}") from error
        self._counting = np.flatnonzero(target.answerable[self.nodes.state])
        self._unanswerable = np.flatnonzero((target.counts & ~target.answerable)[self.nodes.state])
        self._margins = self._margins_along(self.steps.directions)

    def lengths(self) -> Iterator[tuple[float, Sets | None]]:
        """For length 1, 2, …: a lower bound of the margins at that length, and the sets (None for single words).

        Goes on for ever, tails aside. Raises `InvalidCertificate` where a stored set does not hold the images.
        """
        sets = None
        words = all_words(self._A, self._v, self._x0, self._target, self._error, self.tube.memory)
        for length, found in enumerate(islice(words, 1, self.tube.start + 1), start=1):
            if length == self.tube.start:
                sets = enclose(found, length, self.nodes, self.tube, self.steps.directions)
            yield least_margin(found, self._readout, self._target), sets
        stored = {kept.length: kept for kept in self.tube.stored}
        while sets is not None:
            sets = self.steps.after(sets)
            if sets.length in stored:
                self.check_holds(stored[sets.length], sets, f"the sets stored at length {sets.length}")
                sets = stored[sets.length]
            yield self.margin(sets), sets

    def margin(self, sets: Sets) -> float:
        """A lower bound of the margin on all sets, ∞ if nothing there counts."""
        return self._least(self._margins, sets)

    @cached_property
    def wide_steps(self) -> Steps:
        """The steps of sets that directions do not bound, as those of a tail."""
        wide = replace(self.tube, directions=self.tube.directions[:, :0])
        return Steps(self.nodes, wide, self._A, self._v, self._error)

    def wide_margin(self, sets: Sets) -> float:
        """A lower bound of the margin on all sets, which directions do not bound."""
        return self._least(self._wide_margins, sets)

    @cached_property
    def _wide_margins(self) -> Margins:
        return self._margins_along(self.wide_steps.directions)

    def tail(self, ramps: tuple[Tail, ...], sets: Sets) -> tuple[float, int | None]:
        """A lower bound of the margin from the length of `sets` to the end of the tail, and that length.

        Raises `InvalidCertificate` where the tail does not hold the sets, or its sets those that come after.

        In the coordinates of a set about a fixed centre, what a letter makes of its radii is bounded by sums, maxima
        and norms of them: convex, so that what holds for the first and the last of evenly growing sets holds between.
        """
        least, end = np.inf, None
        for ramp in ramps:
            start = ramp.sets
            where = f"the tail from length {start.length:,}"
            if start.length != sets.length:
                raise InvalidCertificate(f"{where} does not begin where the sets before it end, at {sets.length:,}")
            self.check_holds(start, _without_directions(sets), where)
            self.check_ramp(ramp)
            sets = grown(ramp, 0 if ramp.steps is None else ramp.steps)
            least = float(np.minimum(least, self.wide_margin(sets)))  # NaN if that is what either is
            end = None if ramp.steps is None else sets.length
            if end is None:
                break
        return least, end

    def check_ramp(self, ramp: Tail) -> None:
        """Raises `InvalidCertificate` unless the sets of a tail hold what comes after those a letter before."""
        where = f"the tail from length {ramp.sets.length:,}"
        _check_growth(ramp, where)
        for i in (0,) if ramp.steps is None else (0, ramp.steps - 1):
            before, there = grown(ramp, i), grown(ramp, i if ramp.steps is None else i + 1, down=True)
            self.check_holds(there, self.wide_steps.after(before, before.centre), f"{where}, {i:,} letters on,")

    def check_holds(self, outer: Sets, inner: Sets, what: str) -> None:
        """Raises `InvalidCertificate` unless every set of `inner` lies in that of `outer`."""
        if (inner.alive & ~outer.alive).any():
            raise InvalidCertificate(f"{what} lack a node that words lead to")
        shift = inner.centre - outer.centre  # zero only if it is
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

    def _margins_along(self, directions: np.ndarray) -> Margins:
        some, tube = self._counting, self.tube
        expected = self._target.expected[self.nodes.state[some]]
        return Margins(self._readout, tube.basis[some], tube.slow[some], directions[some], expected)

    def _least(self, margins: Margins, sets: Sets) -> float:
        # States that overflow may come back as NaN, whether the outputs read from them counted or not.
        if not (np.where(sets.alive[:, None, None], self.steps.sizes(sets), 0) <= LARGEST).all():
            return -np.inf
        if sets.alive[self._unanswerable].any():  # the model lacks an output that counts there
            return -np.inf
        some = self._counting
        counting = Sets(
            sets.length, sets.alive[some], sets.centre[some], sets.radius[some], sets.ball[some], sets.lower[some],
            sets.upper[some],
        )  # fmt: skip
        return float(np.where(counting.alive, margins.least(counting), np.inf).min(initial=np.inf))


def grown(ramp: Tail, steps: int, down: bool = False) -> Sets:
    """The sets of a tail some letters after its beginning, no smaller than they are, or no larger for `down`."""
    sets = ramp.sets
    if not steps:
        return sets
    radius, ball = sets.radius + steps * ramp.radius, sets.ball + steps * ramp.ball
    if down:
        radius, ball = radius * (1 - EPS), ball * (1 - EPS)
    else:
        radius, ball = np.where(radius == 0, 0, above(radius)), above(ball)
    return replace(sets, length=sets.length + steps, radius=radius, ball=ball)


def _without_directions(sets: Sets) -> Sets:
    return replace(sets, lower=sets.lower[:, :0], upper=sets.upper[:, :0])


def _check_growth(ramp: Tail, where: str) -> None:
    if (ramp.radius < 0).any() or (ramp.ball < 0).any():
        raise InvalidCertificate(f"{where}: sets may not shrink")
    if ramp.steps is None and (ramp.radius.any() or ramp.ball.any()):
        raise InvalidCertificate(f"{where}: sets that hold all longer words may not grow")
    if ramp.steps is not None and not 1 <= ramp.steps <= _MOST_STEPS:
        raise InvalidCertificate(f"{where} has {ramp.steps:,} steps: a number from 1 to {_MOST_STEPS:,} is needed")


def _checked_nodes(tube: Tube, target: CountedAutomaton, heads: int, b: int) -> Nodes:
    """Raises `InvalidCertificate` unless the tube's arrays fit the nodes that it asks for."""
    check_memory(tube, *target.delta.shape)
    found = nodes(target, tube.memory, tube.frame_memory)
    F, J = len(found.state), found.older
    if tube.directions.ndim != 4:
        raise InvalidCertificate(f"directions has shape {tube.directions.shape}, not (parts, D, H, b)")
    parts, D = tube.directions.shape[:2]
    box, row = (F, heads, b, J), (F, heads, J)
    expected = {
        "basis": (tube.basis, np.float64, (F, heads, b, b)),
        "slow": (tube.slow, np.bool_, (F, heads, b)),
        "part": (tube.part, np.int64, (target.delta.shape[1],)),
        "directions": (tube.directions, np.float64, (parts, D, heads, b)),
    }
    stored = [(sets, D) for sets in tube.stored] + [(ramp.sets, 0) for ramp in tube.tail]
    for sets, d in stored:
        shapes = {"centre": box, "radius": box, "ball": row, "lower": (F, d, J), "upper": (F, d, J)}
        at = f"at length {sets.length:,}:"
        expected |= {f"{at} {name}": (getattr(sets, name), np.float64, shape) for name, shape in shapes.items()}
        expected[f"{at} alive"] = sets.alive, np.bool_, (F, J)
    for ramp in tube.tail:
        at = f"the tail from length {ramp.sets.length:,}: growth of"
        expected |= {f"{at} radius": (ramp.radius, np.float64, box), f"{at} ball": (ramp.ball, np.float64, row)}
    faults = [
        f"{name} has shape {array.shape} and dtype {array.dtype} in place of {shape} and {np.dtype(kind)}"
        for name, (array, kind, shape) in expected.items()
        if array.shape != shape or array.dtype != kind
    ]
    if not faults:
        faults += [f"{name} holds no numbers" for name, (x, _, _) in expected.items() if not np.isfinite(x).all()]
        negative = [sets for sets, _ in stored if (sets.radius < 0).any() or (sets.ball < 0).any()]
        faults += [f"length {sets.length:,} has a negative radius" for sets in negative]
        if tube.part.min() < 0 or tube.part.max() >= parts:
            faults.append(f"part runs {tube.part.min()}..{tube.part.max()}, directions are of {parts} parts")
    if faults:
        raise InvalidCertificate("; ".join(faults[:3]))
    return found


def check_memory(tube: Tube, n_letters: int, n_states: int) -> None:
    """Raise `InvalidCertificate` for numbers of letters that are out of order, or give too many sets or words."""
    if not 1 <= tube.frame_memory <= tube.memory <= tube.start:
        raise InvalidCertificate(
            f"frame_memory = {tube.frame_memory}, memory = {tube.memory}, start = {tube.start}: they must be in order, "
            "from 1 on"
        )
    if tube.start > LONGEST_START:
        raise InvalidCertificate(f"start = {tube.start:,}: at most {LONGEST_START} letters are read one by one")
    sets, words = n_states * n_letters**tube.memory, n_letters**tube.start
    if max(sets, words) > _MOST:
        raise InvalidCertificate(
            f"memory = {tube.memory} and start = {tube.start} of {n_letters} letters ask for {sets:,} sets and "
            f"{words:,} words: at most {_MOST:,} of each are looked at"
        )
