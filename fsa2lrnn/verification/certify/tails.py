"""Tails: sets for all words beyond a length, invariant under every letter or growing slowly per letter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fsa2lrnn.checker.errors import InvalidCertificate
from fsa2lrnn.checker.intervals import EPS
from fsa2lrnn.checker.replay import TubeReplay, grown
from fsa2lrnn.checker.rounding import LARGEST
from fsa2lrnn.checker.sets import Sets, Tail
from fsa2lrnn.checker.steps import Steps
from fsa2lrnn.deadline import NEVER, Deadline

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
    shift = np.abs(sets.centre - centre) + 8 * EPS * np.abs(centre)
    away = np.linalg.norm(shift, axis=2)
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
