"""How much memory and work a certificate asks of the checker, computed from its sizes before anything is allocated.

A few hundred bytes can describe sets for a hundred thousand nodes of a model with a thousand diagonal entries. So a
check may hold `MOST_NUMBERS` numbers at a time, and its work, in operations of about a nanosecond, is bounded too.
"""

import zlib

import numpy as np

from .errors import InvalidCertificate
from .sets import Tube
from .tables import Tables

MOST_NUMBERS = 5 << 24
"""Numbers of float64 that a check may hold at a time, as `demands` counts them: some 500 MB, as measured."""
WORK = 1 << 32
"""Operations, a nanosecond each or so, that every check may take: about 5 s."""
WORK_PER_BYTE = 1 << 19
"""Operations more for each byte that a certificate's arrays compress to: a small file can't ask for much."""
MOST_WORK = 1 << 35
"""Operations that no check takes unless told otherwise: more than `certify` finds certificates for."""
NUMBERS_PER_WORD = 16
"""Arrays of the size of all words' states that are held at a time."""
_CALLS = 1 << 18  # operations that the calls of one step cost for each letter, however small the arrays


def check_size(tube: Tube, margins: np.ndarray, tables: Tables, steps: int, work: float | None) -> None:
    """Raise `InvalidCertificate` if a tube asks for more than it may; `steps` lengths are walked.

    The memory and start of the tube must have been checked.
    """
    numbers, needed = demands(tube, tables, steps)
    work = allowed_work(tube, margins) if work is None else work
    if numbers > MOST_NUMBERS:
        raise InvalidCertificate(
            f"the check holds {numbers:,} numbers at a time, its bound is {MOST_NUMBERS:,}: certify with less memory, "
            "or a smaller start"
        )
    if needed > work:
        raise InvalidCertificate(
            f"the check takes {needed:,} operations, its bound for a certificate of this size is {work:,}: if the "
            "certificate's author is trusted, give a larger `work` to `check`"
        )


def demands(tube: Tube, tables: Tables, steps: int) -> tuple[int, int]:
    """Numbers held at a time and operations of the whole check, at most, about; both were fitted to measurements."""
    if tube.slow.ndim != 3 or tube.directions.ndim != 4:
        raise InvalidCertificate(f"slow {tube.slow.shape} and directions {tube.directions.shape}: not 3 and 4 axes")
    letters, rivals = len(tables.alphabet), len(tables.outputs) - 1
    (m, n), b, D = tables.numbers["W1"].shape, tables.numbers["x0"].shape[1], tube.directions.shape[1]
    F, J = len(tube.slow), letters ** (tube.memory - tube.frame_memory)
    extent = int(tube.directions.any((0, 3)).sum()) * b  # entries of directions over the heads that each extends over
    numbers = NUMBERS_PER_WORD * n * letters**tube.start
    numbers += letters * F * (12 * n * b + 8 * extent) + F * n * (6 * m + 6 * D)
    numbers += F * J * (24 * n + 8 * rivals * (m + n) + D * (rivals + 8))
    margin = 256 * n + 32 * rivals * (m + n) + (rivals + 2) * m * n // 2
    along = D * (n * (rivals + 2) + 32 * (rivals + 1))
    step = letters * (n * (64 + 4 * b) + 2 * extent + 64 * D) + margin + along
    words = sum(letters**k for k in range(1, tube.start + 1))
    setup = F * (letters * b * (n * (64 + 8 * b) + 16 * extent) + 8 * n * m)
    walked = max(0, steps - tube.start) + 3 * len(tube.tail)
    return numbers, words * margin + setup + walked * (F * J * step + _CALLS * (letters + 1))


def allowed_work(tube: Tube, margins: np.ndarray) -> int:
    """Operations that a certificate may ask for: some, and more for each byte of what it holds, compressed."""
    arrays = [margins, tube.basis, tube.directions]
    for sets in (*tube.stored, *(ramp.sets for ramp in tube.tail)):
        arrays += [sets.centre, sets.radius, sets.ball, sets.lower, sets.upper]
    held = sum(len(zlib.compress(np.ascontiguousarray(array).tobytes(), 1)) for array in arrays)
    return min(MOST_WORK, WORK + WORK_PER_BYTE * held)
