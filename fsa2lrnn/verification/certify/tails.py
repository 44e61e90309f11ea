"""Sets for all words beyond a length: such that a letter leads out of none, or that grow so little a letter."""

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

_SETTLING = 96  # letters after which what is forgotten has been
_LOOK = 16
_ROOM = 1e-3
_GRAIN, _DUST = 1e-6, 1e-9  # by which rounded sets are larger, relatively and absolutely
_FIRST, _LEAST = 1 << 10, 1 << 5  # letters of the first ramp; fewer are not worth one
_MOST_RAMPS = 40
_LONGEST = 10**7


def find_tail(replay: TubeReplay, sets: Sets, deadline: Deadline = NEVER) -> tuple[Tail, ...]:
    """A tail that begins with sets holding these, and keeps the output right; empty if none is found in time."""
    steps = replay.wide.steps
    room = _all_nodes(steps, replace(sets, lower=sets.lower[:, :0], upper=sets.upper[:, :0]))
    for i in range(1, _SETTLING + 1):
        if deadline.left() <= 0:
            return ()
        room = _joined(room, steps.after(room, room.centre))
        if i % _LOOK == 0:
            if not replay.wide.margin(room) > 0:
                return ()
            if (steady := _invariant(replay, room)) is not None:
                return (steady,)
    return _ramps(replay, steps, room, deadline)


def _all_nodes(steps: Steps, sets: Sets) -> Sets:
    """The same sets, and empty ones about a sensible centre for nodes that only longer words reach."""
    after = sets
    for _ in range(_LOOK):
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
    """Sets that hold both, about the centres that they share; of the length of the first."""
    return replace(a, alive=a.alive | b.alive, radius=np.maximum(a.radius, b.radius), ball=np.maximum(a.ball, b.ball))


def _invariant(replay: TubeReplay, room: Sets) -> Tail | None:
    """Somewhat larger sets that no letter leads out of, if these are such and right."""
    wider = rounded(replace(room, radius=_wider(room.radius), ball=_wider(room.ball)))
    steady = Tail(wider, np.zeros_like(wider.radius), np.zeros_like(wider.ball), None)
    return steady if _is_accepted(replay, steady) and replay.wide.margin(wider) > 0 else None


def _is_accepted(replay: TubeReplay, ramp: Tail) -> bool:
    try:
        replay.check_ramp(ramp)
    except InvalidCertificate:
        return False
    return True


def _wider(x: np.ndarray) -> np.ndarray:
    return x * (1 + _ROOM)


def rounded(sets: Sets) -> Sets:
    """Somewhat larger sets whose numbers are float32, so that they take half the room and bear other roundings."""
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
    """The least float32 numbers above, as float64."""
    return np.nextafter(x.astype(np.float32), np.float32(np.inf)).astype(np.float64) * (x != 0)


def _ramps(replay: TubeReplay, steps: Steps, room: Sets, deadline: Deadline) -> tuple[Tail, ...]:
    """Ramps one after the other, as long as they can be made."""
    found: list[Tail] = []
    room, count = rounded(room), _FIRST
    while count >= _LEAST and len(found) < _MOST_RAMPS and room.length < _LONGEST and deadline.left() > 0:
        ramp = _ramp(replay, steps, room, count)
        end = None if ramp is None else grown(ramp, count)
        if ramp is None or end is None or not replay.wide.margin(end) > 0:
            count //= 2
            continue
        found.append(ramp)
        room, count = rounded(end), 2 * count
    return tuple(found)


def _ramp(replay: TubeReplay, steps: Steps, room: Sets, count: int) -> Tail | None:
    """A growth a letter for which the sets hold themselves over `count` letters, if it is soon found.

    Intervals grow alike at all nodes: where one grew more than the next, that would have to grow `count` times faster.
    Balls contract, and grow as the intervals make them.
    """
    slow = steps.slow[..., None]
    first = steps.after(room, room.centre)
    radius = _alike(first.radius - room.radius, slow)
    ball = np.maximum(first.ball - room.ball, 0)
    for _ in range(_LOOK):
        if not max(radius.max(), ball.max()) < LARGEST:
            return None
        ramp = Tail(room, _float32_above(_wider(radius)), _float32_above(_wider(ball)), count)
        if _is_accepted(replay, ramp):
            return ramp
        before = grown(ramp, count - 1)
        last = steps.after(before, before.centre)
        radius = np.maximum(radius, _alike(last.radius - before.radius, slow))
        ball = np.maximum(ball, (last.ball - first.ball) / max(count - 1, 1))
    return None


def _alike(growth: np.ndarray, slow: np.ndarray) -> np.ndarray:
    """At each coordinate the most that any node's interval grows: (F, H, b, J)."""
    return np.where(slow, np.maximum(growth, 0).max((0, 3), keepdims=True), np.zeros_like(growth))
