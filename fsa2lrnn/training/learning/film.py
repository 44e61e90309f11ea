"""The film of a start: what its heads are as automata at a few of its steps, few enough to keep in every checkpoint.

A frame is taken at a start's first steps, at each look, and where the start goes on with one head. Where there are too
many, those go that are missed least. What is kept follows from the steps alone, so a run that goes on has the same film
as one that was never cut off.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.reading import parse_json, read
from fsa2lrnn.training.learning.prune import LabelledStates, faults, usual

FRAMES = 24
EARLY = (1, 2, 4, 8, 16)  # steps of a start before its first look
NEVER = -1  # the output of a state that no word reached
_NUMBERS = 200_000  # in all tables of a film


@dataclass(frozen=True)
class Frame:
    """The heads at one step.

    Args:
        step, number: of the run, and of the start that it belongs to.
        length: of the words that are trained on.
        event: "focused" or "mended" where the start goes on with one head from here; else nothing.
        heads: which of the start's heads these are.
        start: the first state of each.
        next_state: [letter][head][state].
        outputs: [head][state], the number of the output that most labels are there, `NEVER` for none.
        faults: of each head, the share of labels that are others than most in their state.

    Raises:
        UnsupportedFormat: for tables that are none of so many heads.
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
        """Whether it can be of a run with so many letters, outputs and heads."""
        outputs = all(NEVER <= output < n_outputs for row in self.outputs for output in row)
        return outputs and len(self.next_state) == n_letters and all(0 <= h < n_heads for h in self.heads)


@dataclass(frozen=True)
class HeadHistory:
    """Frames in the order of their steps, over letters and outputs."""

    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    frames: tuple[Frame, ...]

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `read_film` reads."""
        names = {name: [symbols.to_json(x) for x in getattr(self, name)] for name in ("alphabet", "outputs")}
        return {**names, "frames": [asdict(frame) for frame in self.frames]}


def read_film(path: Path) -> HeadHistory:
    """A film that `learn` wrote. Raises `UnsupportedFormat` for a file that is none."""
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
    seen: LabelledStates, step: int, number: int, length: int, heads: tuple[int, ...], event: str = ""
) -> Frame:
    """The frame of heads that were seen on words with labels."""
    own = range(len(heads))
    return Frame(
        step, number, length, event, heads, tuple(seen.heads.start.tolist()), _nested(seen.heads.next_state),
        tuple(tuple(usual(seen, h).tolist()) for h in own), tuple(faults(seen, (h,)) / len(seen.labels) for h in own),
    )  # fmt: skip


def with_frame(frames: tuple[Frame, ...], frame: Frame) -> tuple[Frame, ...]:
    """A film with a frame more, those of another start left out; no film where a table is too large for two."""
    size = len(frame.next_state) * len(frame.heads) * len(frame.outputs[0])
    most = min(FRAMES, _NUMBERS // size)
    if most < 2:
        return ()
    kept = [before for before in frames if before.number == frame.number]
    if kept and kept[-1].step == frame.step and not frame.event:
        return tuple(kept)
    return thinned([*kept, frame], most)


def thinned(frames: list[Frame], most: int) -> tuple[Frame, ...]:
    """At most so many, the first and the last among them.

    Those go first before which nothing happened, no longer words and no head alone, and of them the one whose
    neighbours are the nearest.
    """
    kept = list(frames)

    def missed(i: int) -> tuple[bool, int]:
        before, here, after = kept[i - 1 : i + 2]
        return (here.length, here.heads, here.event) != (before.length, before.heads, ""), after.step - before.step

    while len(kept) > most:
        del kept[min(range(1, len(kept) - 1), key=missed)]
    return tuple(kept)


def _symbol(value: Any, where: str) -> Hashable:
    try:
        return symbols.from_json(value)
    except UnsupportedFormat as error:
        raise UnsupportedFormat(f"{where}: {error}") from None


def _nested(table: np.ndarray) -> tuple[tuple[tuple[int, ...], ...], ...]:
    return tuple(tuple(tuple(row) for row in letter) for letter in table.tolist())
