"""How much memory and work a certificate asks of the checker, computed from its sizes before anything is allocated.

A few hundred bytes can describe sets for a hundred thousand nodes of a model with a thousand diagonal entries. So a
check may hold `MOST_NUMBERS` numbers at a time, and its work, in operations of about a nanosecond, is bounded too.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import astuple, dataclass

import numpy as np

from fsa2lrnn.judge.certificate import Tube

MOST_NUMBERS = 1 << 26
"""Numbers of float64 that a check may hold at a time: 512 MB."""
WORK = 1 << 32
"""Operations, a nanosecond each or so, that every check may take: about 5 s."""
WORK_PER_BYTE = 1 << 19
"""Operations more for each byte that a certificate's arrays compress to: a small file can't ask for much."""
MOST_WORK = 1 << 35
"""Operations that no check takes unless told otherwise: more than `certify` finds certificates for."""
_CALLS = 1 << 18  # operations that the calls of one step cost for each letter, however small the arrays
NUMBERS_PER_WORD = 12
"""Arrays of the size of all words' states that are held at a time."""


@dataclass(frozen=True)
class Sizes:
    """What the work depends on.

    Args:
        letters, outputs: |Σ|, |Γ|.
        block, width, hidden: b, n = H·b and m, of the model.
        frames, older, directions: F, J and D, of the tube.
        extent: entries of all directions, each over the heads that it extends over.
        start: length of the words that are read one by one.
        steps: letters that sets are carried on by after them.
    """

    letters: int
    outputs: int
    block: int
    width: int
    hidden: int
    frames: int
    older: int
    directions: int
    extent: int
    start: int
    steps: int

    @property
    def numbers(self) -> int:
        """Numbers that are held at a time, at most, about."""
        n, m, rivals, sets = self.width, self.hidden, self.outputs - 1, self.frames * self.older
        words = NUMBERS_PER_WORD * n * self.letters**self.start
        steps = self.letters * self.frames * (12 * n * self.block + 8 * self.extent)
        readout = self.frames * n * (6 * m + 6 * self.directions)
        return words + steps + readout + sets * (24 * n + 8 * rivals * (m + n) + self.directions * (rivals + 8))

    @property
    def work(self) -> int:
        """Operations of the whole check, about."""
        n, m, rivals, sets = self.width, self.hidden, self.outputs - 1, self.frames * self.older
        margin = 256 * n + 32 * rivals * (m + n) + (rivals + 2) * m * n // 2
        along = self.directions * (n * (rivals + 2) + 32 * (rivals + 1))
        step = self.letters * (n * (64 + 4 * self.block) + 2 * self.extent + 64 * self.directions)
        words = sum(self.letters**k for k in range(1, self.start + 1))
        by_letters = self.letters * self.block * (n * (64 + 8 * self.block) + 16 * self.extent)
        setup = self.frames * (by_letters + 8 * n * m)
        calls = _CALLS * (self.letters + 1)
        return words * margin + setup + self.steps * (sets * (step + margin + along) + calls)


def faults_of(sizes: Sizes, work: int) -> list[str]:
    """What the sizes exceed, with the bound and the remedy."""
    faults: list[str] = []
    if sizes.numbers > MOST_NUMBERS:
        faults.append(
            f"the check holds {sizes.numbers:,} numbers at a time, its bound is {MOST_NUMBERS:,}: certify with less "
            "memory, or a smaller start"
        )
    if sizes.work > work:
        faults.append(
            f"the check takes {sizes.work:,} operations, its bound for a certificate of this size is {work:,}: if the "
            "certificate's author is trusted, give a larger `work` to `check`"
        )
    return faults


def allowed_work(tube: Tube, margins: np.ndarray) -> int:
    """Operations that a certificate may ask for: some, and more for each byte of what it holds, compressed."""
    arrays = [margins, tube.basis, tube.directions]
    for sets in (*tube.stored, *(ramp.sets for ramp in tube.tail)):
        arrays += [array for array in astuple(sets) if isinstance(array, np.ndarray)]
    return min(MOST_WORK, WORK + WORK_PER_BYTE * sum(_compressed(arrays)))


def _compressed(arrays: Iterable[np.ndarray]) -> Iterable[int]:
    return (len(zlib.compress(np.ascontiguousarray(array).tobytes(), 1)) for array in arrays)
