"""Search for the coordinates, the memory and the tail that certify the greatest length.

A tail is a set for all words beyond a length, invariant under every letter or growing slowly per letter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fsa2lrnn.checker.claims import CountedAutomaton, Sets, Tables, Tail, Tube, nodes
from fsa2lrnn.checker.errors import InvalidCertificate
from fsa2lrnn.checker.proof import LONGEST_START, MOST_NUMBERS, NUMBERS_PER_WORD
from fsa2lrnn.checker.replay import TubeReplay, grown
from fsa2lrnn.checker.rounding import EPS, LARGEST, Slack
from fsa2lrnn.checker.steps import Steps
from fsa2lrnn.deadline import NEVER, Deadline, WorkBudget, limited
from fsa2lrnn.errors import OutOfTime, UnsupportedFormat
from fsa2lrnn.verification.certify.frames import Frames, components, fans, gradients

_SETTLING = 96  # letters after which the contracting part has decayed
_PERIOD = 16  # letters between two attempts
_WIDENING = 1e-3
_GRAIN, _DUST = 1e-6, 1e-9  # relative and absolute enlargement of rounded sets
_FIRST, _LEAST = 1 << 10, 1 << 5  # letters of the first ramp, and of the shortest
_MOST_RAMPS = 40
_LONGEST = 10**7


def find_tail(replay: TubeReplay, sets: Sets, deadline: Deadline = NEVER) -> tuple[Tail, ...]:
    """Return a tail that contains these sets and has positive margins, or () if none is found before the deadline.

    The tail is one `Tail` that is invariant under every letter, or consecutive ones that grow slowly (ramps).
    """
    steps = replay.wide.steps
    hull = _all_nodes(steps, replace(sets, lower=sets.lower[:, :0], upper=sets.upper[:, :0]))
    for i in range(1, _SETTLING + 1):
        if deadline.left() <= 0:
            return ()
        # The union with its own image, about fixed centres: if letters are slow to leave it, it becomes invariant.
        hull = _joined(hull, steps.after(hull, hull.centre))
        if i % _PERIOD == 0:
            if not replay.wide.margin(hull) > 0:
                return ()
            if (steady := _invariant(replay, hull)) is not None:
                return (steady,)
    return _ramps(replay, steps, hull, deadline)


def _all_nodes(steps: Steps, sets: Sets) -> Sets:
    """Return the sets extended to the nodes that only longer words reach, there with the sets of those words."""
    after = sets
    for _ in range(_PERIOD):
        # Some nodes are reached by words longer than the stored ones only; a tail has to hold these too.
        after = steps.after(after)
        new = after.alive & ~sets.alive
        if new.any():
            where = new[:, None, None]
            sets = replace(
                sets,
                alive=sets.alive | new,
                centre=np.where(where, after.centre, sets.centre),
                radius=np.where(where, after.radius, sets.radius),
                ball=np.where(new[:, None], after.ball, sets.ball),
            )
    return sets


def _joined(a: Sets, b: Sets) -> Sets:
    """Return sets that contain both, around the centres and with the length of the first."""
    return replace(a, alive=a.alive | b.alive, radius=np.maximum(a.radius, b.radius), ball=np.maximum(a.ball, b.ball))


def _invariant(replay: TubeReplay, sets: Sets) -> Tail | None:
    """Return slightly larger sets as a tail if they are invariant under every letter and right, else None."""
    wider = rounded(replace(sets, radius=_wider(sets.radius), ball=_wider(sets.ball)))
    steady = Tail(wider, np.zeros_like(wider.radius), np.zeros_like(wider.ball), None)
    return steady if _is_accepted(replay, steady) and replay.wide.margin(wider) > 0 else None


def _is_accepted(replay: TubeReplay, ramp: Tail) -> bool:
    try:
        replay.check_ramp(ramp)
    except InvalidCertificate:
        return False
    return True


def _wider(x: np.ndarray) -> np.ndarray:
    return x * (1 + _WIDENING)


def rounded(sets: Sets) -> Sets:
    """Return slightly larger sets with float32 entries, which need half the memory and tolerate other rounding."""
    centre = sets.centre.astype(np.float32).astype(np.float64)
    # A rounded centre moves: radii and balls grow by the distance.
    shift = np.abs(sets.centre - centre) + 8 * EPS * np.abs(centre)
    away = np.linalg.norm(shift, axis=2)
    # Float32 keeps about seven digits, so that bounds are moved out by a millionth before they are rounded outwards.
    scale = np.maximum(np.abs(sets.lower), np.abs(sets.upper)) * _GRAIN + _DUST
    return replace(
        sets,
        centre=centre,
        radius=_float32_above(np.where(sets.radius > 0, (sets.radius + shift) * (1 + _GRAIN) + _DUST, 0)),
        ball=_float32_above((sets.ball + away) * (1 + _GRAIN) + _DUST),
        lower=-_float32_above(-sets.lower + scale),
        upper=_float32_above(sets.upper + scale),
    )


def _float32_above(x: np.ndarray) -> np.ndarray:
    """Return float32 numbers just above x, as float64; zero stays zero."""
    return np.nextafter(x.astype(np.float32), np.float32(np.inf)).astype(np.float64) * (x != 0)


def _ramps(replay: TubeReplay, steps: Steps, start: Sets, deadline: Deadline) -> tuple[Tail, ...]:
    """Return consecutive ramps, doubling or halving their lengths, until a length would be below `_LEAST`."""
    ramps: list[Tail] = []
    start, count = rounded(start), _FIRST
    while count >= _LEAST and len(ramps) < _MOST_RAMPS and start.length < _LONGEST and deadline.left() > 0:
        ramp = _ramp(replay, steps, start, count)
        end = None if ramp is None else grown(ramp, count)
        if ramp is None or end is None or not replay.wide.margin(end) > 0:
            count //= 2
            continue
        ramps.append(ramp)
        start, count = rounded(end), 2 * count
    return tuple(ramps)


def _ramp(replay: TubeReplay, steps: Steps, start: Sets, count: int) -> Tail | None:
    """Return a ramp, sets with a growth per letter that hold for `count` letters, or None after `_PERIOD` attempts.

    Intervals grow equally at all nodes: if one grew more than its successor, that would have to grow `count` times
    faster. Balls contract, and grow only with the intervals.
    """
    slow = steps.slow[..., None]
    first = steps.after(start, start.centre)
    # The first letter's growth is a first guess; the last step of the ramp then corrects it.
    radius = _alike(first.radius - start.radius, slow)
    ball = np.maximum(first.ball - start.ball, 0)
    for _ in range(_PERIOD):
        if not max(radius.max(), ball.max()) < LARGEST:
            return None
        ramp = Tail(start, _float32_above(_wider(radius)), _float32_above(_wider(ball)), count)
        if _is_accepted(replay, ramp):
            return ramp
        before = grown(ramp, count - 1)
        last = steps.after(before, before.centre)
        radius = np.maximum(radius, _alike(last.radius - before.radius, slow))
        ball = np.maximum(ball, (last.ball - first.ball) / max(count - 1, 1))
    return None


def _alike(growth: np.ndarray, slow: np.ndarray) -> np.ndarray:
    """Return the largest growth of an interval over all nodes, for each coordinate: (F, H, b, J)."""
    return np.where(slow, np.maximum(growth, 0).max((0, 3), keepdims=True), np.zeros_like(growth))


_WORDS = 20_000  # short words that are enumerated
_FRAMES_SHARE = 0.3  # share of the time for the semidefinite programs
_FRAMES = 600  # nodes with their own coordinates
_NODES = 40_000
_THRESHOLDS = (0.93, 0.8)
_WORTH_IT = 1.02  # gain in length at which one more letter of memory is tried
_LONGEST_WALK = 4_000
_DECLINE = 64  # letters after which the decline of the margins is first evaluated
_MOST_DIRECTIONS = 64
_STORED_BYTES = 3_000_000
_MOST_STORED = 8


@dataclass(frozen=True, eq=False)
class TubeWalk:
    """A tube with the length that it certifies.

    Args:
        tube: the tube, with the stored sets and the tail.
        horizon: the certified length, None for all lengths.
        margins: as in `Certificate`.
        work: the number of multiplications of the walk.
    """

    tube: Tube
    horizon: int | None
    margins: list[float]
    work: float

    @property
    def reach(self) -> float:
        """The certified length as a number, infinite for all lengths."""
        return np.inf if self.horizon is None else self.horizon


class TubeSearch:
    """A search over tubes for one model and target, within a budget of work."""

    def __init__(self, tables: Tables, target: CountedAutomaton, slack: Slack, work: WorkBudget) -> None:
        self._tables, self._target, self._slack, self._work = tables, target, slack, work
        self._weights = tables.weights
        self._part, self._frames = (
            components(target),
            Frames(self._weights["A"], target, work.deadline.share(_FRAMES_SHARE)),
        )
        self._furthest: TubeWalk | None = None
        self._longest = 0.0  # seconds of the longest walk, which is repeated to store its sets

    def best(self, memory: int | str) -> TubeWalk:
        """Return the longest walk with this memory, or with any for "auto"; raise `UnsupportedFormat` for others.

        Raises `OutOfTime` if the time limit passes before the first walk ends.
        """
        try:
            with limited(self._work.deadline):
                return self._searched(memory)
        except OutOfTime:
            if self._furthest is None:
                raise
            return self._furthest

    def _searched(self, memory: int | str) -> TubeWalk:
        if memory == "auto":
            return self._growing()
        if not isinstance(memory, int) or not 1 <= memory <= LONGEST_START or self._count(memory) > _NODES:
            raise UnsupportedFormat(
                f"memory = {memory!r}: a number of letters from 1 to {LONGEST_START}, with at most {_NODES:,} sets, or "
                '"auto"'
            )
        return max(self._walks(memory), key=lambda walk: walk.reach)

    def _growing(self) -> TubeWalk:
        """Return the walk that reaches furthest, trying longer memories while each is worth its cost."""
        walks = list(self._walks(1))
        best = max(walks, key=lambda walk: walk.reach)
        threshold = self._thresholds[walks.index(best)]
        memory, last = 2, best
        # Words of one letter are read one by one with any memory: where these fail, all memories do.
        while 0 < best.reach < _LONGEST_WALK and self._count(memory) <= _NODES:
            if not self._work.allows(last.work * len(self._target.delta) / 2):
                break
            last = self.walk(self.tube(memory, threshold))
            paid = last.reach >= _WORTH_IT * best.reach
            best = max(best, last, key=lambda walk: walk.reach)
            if not paid and memory > 2:
                break
            memory += 1
        return best

    @property
    def _thresholds(self) -> tuple[float | None, ...]:
        return (None, *_THRESHOLDS) if self._frames.keep_exactly else _THRESHOLDS

    def _walks(self, memory: int) -> Iterator[TubeWalk]:
        """Yield the walk for each threshold, as long as the time allows another."""
        for i, threshold in enumerate(self._thresholds):
            if i and not self._work.allows(0.0, self._longest):
                break
            walk = self.walk(self.tube(memory, threshold))
            self._furthest = max(walk, self._furthest or walk, key=lambda walk: walk.reach)
            yield walk

    def _count(self, memory: int) -> int:
        return self._target.delta.shape[1] * len(self._target.delta) ** memory

    def tube(self, memory: int, threshold: float | None) -> Tube:
        """Return the tube for sets that remember `memory` letters; raise `UnsupportedFormat` if no position counts."""
        n_letters, n_states = self._target.delta.shape
        frame_memory = 1
        while frame_memory < memory and n_states * n_letters ** (frame_memory + 1) <= _FRAMES:
            frame_memory += 1
        start = memory
        words = min(_WORDS, MOST_NUMBERS // (2 * NUMBERS_PER_WORD * self._weights["W1"].shape[1]))
        # There are |Σ|^start words, which are computed one by one.
        while n_letters > 1 and n_letters ** (start + 1) <= words:
            start += 1
        frame_nodes = nodes(self._target, memory, frame_memory)
        if not len(frame_nodes.state):
            raise UnsupportedFormat("no position counts after words of a few letters: there is nothing to certify")
        basis, slow = self._frames.of(frame_nodes, threshold)
        part = np.maximum(self._part, 0)
        plain = Tube(memory, frame_memory, start, basis, slow, part, np.zeros((part.max() + 1, 0, *slow.shape[1:])))
        directions = fans(plain)
        if n_states * (len(self._weights["b2"]) - 1) <= _MOST_DIRECTIONS:
            joint = gradients(self._tables, self._target, frame_nodes, plain)
            if np.isfinite(joint).all():
                directions = np.concatenate([joint, directions], 1)
        return replace(plain, directions=directions)

    def walk(self, tube: Tube, store: frozenset[int] = frozenset()) -> TubeWalk:
        """Return the walk of a tube as far as its margins are positive, with the sets stored at the lengths in `store`.

        A walk with `store` repeats an earlier one, so it costs no work.
        """
        step, spent = self._cost(tube), 0.0
        replay = TubeReplay(self._tables, self._target, tube, self._slack)
        margins: list[float] = []
        stored: list[Sets] = []
        sets, next_attempt, tail, deadline = None, tube.start + _DECLINE, (), self._work.deadline
        begun = at = deadline.passed()
        # 1. Short words, one by one.
        for margin, sets in replay.lengths():
            if not margin > 0:
                return TubeWalk(tube, len(margins), margins, spent)
            margins.append(margin)
            if sets is not None:
                break
            # The next length has |Σ| times as many words, and sets about them may take as long again.
            at, took = deadline.passed(), deadline.passed() - at
            if not store and not self._work.allows(0.0, self._longest + 2 * len(self._target.delta) * took):
                return TubeWalk(tube, len(margins), margins, spent)
        # 2. Sets, letter by letter, with an attempt at a tail wherever the margins decline slowly.
        while sets is not None and (store or self._work.allows(step, self._longest)):
            spent += step
            self._longest = max(self._longest, deadline.passed() - begun)
            if not store:
                self._work.spend(step)
            if len(margins) == _LONGEST_WALK or (len(margins) >= next_attempt and _will_last(margins)):
                tail = find_tail(replay, sets, deadline)
                # Attempts at a tail at lengths that double keep their cost proportional to that of the walk.
                next_attempt = 2 * len(margins)
                if tail or len(margins) == _LONGEST_WALK:
                    break
            try:
                after = replay.steps.after(sets)
                if after.length in store:
                    after = rounded(after)
                margin = replay.margin(after)
            except OutOfTime:
                break
            if not margin > 0:
                break
            margins.append(margin)
            sets = after
            if sets.length in store:
                stored.append(sets)
        tube = replace(tube, stored=tuple(stored), tail=tail)
        horizon: int | None = len(margins)
        if sets is not None and tail:
            least, horizon = replay.tail(tail, sets)
            margins.append(least)
        return TubeWalk(tube, horizon, margins, spent)

    def _cost(self, tube: Tube) -> float:
        """Return the approximate multiplications per letter, of the sets, their directions and the margins."""
        F, H, b = tube.slow.shape
        n_sets = F * len(self._target.delta) ** (tube.memory - tube.frame_memory)
        extent = tube.directions.any((0, 3)).sum()  # the number of heads, summed over directions
        per_step = len(self._target.delta) * b * (4 * b * H + 2 * int(extent))
        return float(n_sets * (per_step + self._weights["W1"].size))

    def settled(self, walk: TubeWalk) -> TubeWalk:
        """Return the walk with sets stored at some lengths and at the last; unchanged if it has a tail or no sets."""
        length = len(walk.margins)
        if length <= walk.tube.start or walk.tube.tail:
            return walk
        plain = replace(walk.tube, stored=(), tail=())
        F, D, H, b = *walk.tube.slow.shape[:1], walk.tube.directions.shape[1], *walk.tube.slow.shape[1:]
        older = len(self._target.delta) ** (plain.memory - plain.frame_memory)
        count = int(np.clip(_STORED_BYTES // (4 * F * older * (2 * H * b + H + 2 * D)), 1, _MOST_STORED))
        chosen = np.linspace(plain.start, length, count + 1).round().astype(int)[1:]
        return self.walk(plain, frozenset(chosen.tolist()))


def _will_last(margins: list[float]) -> bool:
    """Decide whether margins that continue to fall at this rate stay positive for a whole walk."""
    before, now = margins[-_DECLINE // 2], margins[-1]
    return now == before or now > _LONGEST_WALK * (before - now) / (_DECLINE // 2 - 1)
