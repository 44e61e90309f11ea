"""The head history of a start: its heads as automata at a few steps, few enough to save in every checkpoint.

A frame is recorded at a start's first steps, at each evaluation, and when the start continues with one head. Beyond the
limit the least informative frames are dropped. The selection depends on the steps alone, so a resumed run has the same
history as an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning.prune import LabelledStates, faults, usual
from fsa2lrnn.reading import parse_json, read

FRAMES = 24
EARLY = (1, 2, 4, 8, 16)  # steps of a start before its first evaluation
NEVER = -1  # the output of a state that no word reached
_NUMBERS = 200_000  # in all tables of a history


@dataclass(frozen=True)
class Frame:
    """The heads at one step.

    Args:
        step, number: the step of the run, and the number of its start.
        length: the length of the training words.
        event: "focused" or "repaired" if the start continues with one head from here; else empty.
        heads: the indices of these heads among the start's.
        start: the initial state of each head.
        next_state: the next states, indexed [letter][head][state].
        outputs: the index of the most frequent output, indexed [head][state]; `NEVER` for an unreached state.
        faults: for each head, the share of labels that differ from the most frequent one of their state.

    Raises:
        UnsupportedFormat: for tables whose sizes do not fit the number of heads.
    """

    step: int
    number: int
    length: int
    event: str
    heads: tuple[int, ...]
    start: tuple[int, ...]
    next_state: tuple[tuple[tuple[int, ...], ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    faults: tuple[float, ...]

    def __post_init__(self) -> None:
        n, b = len(self.heads), len(self.outputs[0]) if self.outputs else 0
        rows = [row for letter in self.next_state for row in letter]
        sizes = [len(self.start), len(self.outputs), len(self.faults), *map(len, self.next_state)]
        if not n or not b or set(sizes) != {n} or any(len(row) != b for row in (*rows, *self.outputs)):
            raise UnsupportedFormat(f"the frame of step {self.step} has tables of other sizes than its {n} heads")
        if not all(0 <= q < b for row in (*rows, self.start) for q in row):
            raise UnsupportedFormat(f"the frame of step {self.step} leads to states that are not 0 to {b - 1}")

    def fits(self, n_letters: int, n_outputs: int, n_heads: int) -> bool:
        """Return whether the frame fits a run with so many letters, outputs and heads."""
        outputs = all(NEVER <= output < n_outputs for row in self.outputs for output in row)
        return outputs and len(self.next_state) == n_letters and all(0 <= h < n_heads for h in self.heads)


@dataclass(frozen=True)
class HeadHistory:
    """The frames of a start in the order of their steps, with the symbols that letters and outputs index."""

    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    frames: tuple[Frame, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that `read_film` reads."""
        names = {name: [symbols.to_json(x) for x in getattr(self, name)] for name in ("alphabet", "outputs")}
        return {**names, "frames": [asdict(frame) for frame in self.frames]}


def read_film(path: Path) -> HeadHistory:
    """Return the head history in a file that `learn` wrote. Raises `UnsupportedFormat` for any other file."""
    film = read(HeadHistory, parse_json(path.read_bytes(), str(path)), str(path), {Hashable: _symbol})
    if not film.frames:
        raise UnsupportedFormat(f"{path}: no frames: leave the film out, or run again")
    n_heads = 1 + max(h for frame in film.frames for h in frame.heads)
    if odd := [frame.step for frame in film.frames if not frame.fits(len(film.alphabet), len(film.outputs), n_heads)]:
        raise UnsupportedFormat(
            f"{path}: the frames of steps {odd[:5]} have other letters, outputs or heads: run again"
        )
    return film


def frame_of(
    observed: LabelledStates, step: int, number: int, length: int, heads: tuple[int, ...], event: str = ""
) -> Frame:
    """Return the frame of heads that were observed on labelled words."""
    own = range(len(heads))
    return Frame(
        step, number, length, event, heads, tuple(observed.heads.start.tolist()),
        _nested(observed.heads.next_state), tuple(tuple(usual(observed, h).tolist()) for h in own),
        tuple(faults(observed, (h,)) / len(observed.labels) for h in own),
    )  # fmt: skip


def with_frame(frames: tuple[Frame, ...], frame: Frame) -> tuple[Frame, ...]:
    """Return the frames of this start with one more; no frames at all if the tables are too large for two."""
    size = len(frame.next_state) * len(frame.heads) * len(frame.outputs[0])
    most = min(FRAMES, _NUMBERS // size)
    if most < 2:
        return ()
    same_start = [before for before in frames if before.number == frame.number]
    if same_start and same_start[-1].step == frame.step and not frame.event:
        return tuple(same_start)
    return thinned([*same_start, frame], most)


def thinned(frames: list[Frame], most: int) -> tuple[Frame, ...]:
    """Return at most `most` frames, including the first and the last.

    Frames without a change of word length, heads or event since the previous frame are dropped first, and of those the
    one whose neighbours are closest in steps.
    """
    selected = list(frames)

    def loss(i: int) -> tuple[bool, int]:
        before, here, after = selected[i - 1 : i + 2]
        return (here.length, here.heads, here.event) != (before.length, before.heads, ""), after.step - before.step

    while len(selected) > most:
        del selected[min(range(1, len(selected) - 1), key=loss)]
    return tuple(selected)


def _symbol(value: Any, where: str) -> Hashable:
    try:
        return symbols.from_json(value)
    except UnsupportedFormat as error:
        raise UnsupportedFormat(f"{where}: {error}") from None


def _nested(table: np.ndarray) -> tuple[tuple[tuple[int, ...], ...], ...]:
    return tuple(tuple(tuple(row) for row in letter) for letter in table.tolist())
