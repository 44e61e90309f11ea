"""The check of a claim by sets, in the steps of L1 and L2 of docs/theory.md.

1. Every word of up to `start` letters is computed, with a ball about its state that bounds the rounding.
2. The states of the longest of these are enclosed in one set per node, and the sets are carried on letter by letter,
   widened by the error bound of a step in the model's dtype, for all tables within the slack.
3. At the lengths where the certificate stores sets, the stored ones must hold those computed, and replace them.
4. At each length, states must be too small to overflow, and on every set that counts, the read-out must be right with
   the margin claimed.
5. A tail must hold its own images at its first and last length; without growth, it holds the states of all longer
   words.

A few hundred bytes can describe sets for a hundred thousand nodes of a model with a thousand diagonal entries. So a
check may hold `MOST_NUMBERS` numbers at a time, and its work, in operations of about a nanosecond, is bounded too; both
are computed from a certificate's sizes before anything is allocated.
"""

import zlib

import numpy as np

from .claims import Claim, CountedAutomaton, Tables, Tube
from .errors import InvalidCertificate, demand
from .replay import TubeReplay
from .rounding import Slack

SCANS = ("sequential", "fused", "letters")
"""The scans that a certificate by sets covers: x_k from x_{k-1}, by inner products in some order."""
_MOST_STEPS = 1 << 14  # four times as many lengths as the search walks
MOST_NUMBERS = 5 << 24
"""Numbers of float64 that a check may hold at a time, as `demands` counts them: some 500 MB, as measured."""
WORK = 1 << 31
"""Operations of about a nanosecond each that every check may take: 2 to 5 s."""
WORK_PER_BYTE = 1 << 19
"""Additional operations per compressed byte of a certificate's arrays: a small file cannot require much work."""
MOST_WORK = 1 << 35
"""The largest limit on operations without an explicit `work`: more than any certificate of `certify` needs."""
NUMBERS_PER_WORD = 16
"""The number of arrays of the size of all words' states that are held at a time."""
_CALLS = 1 << 18  # operations that the calls of a step cost per letter, and of a node once, however small the arrays
LONGEST_START = 64  # letters
_MOST = 1 << 17  # sets, and words checked one by one: several times as many as the search uses


def check_sets(claim: Claim, tables: Tables, target: CountedAutomaton, slack: Slack, work: float | None = None) -> None:
    """Replay the proof of a claim, for all tables within the slack, in at most `work` operations.

    Raises:
        InvalidCertificate: naming the step that fails.
        UnsupportedInput: for tables that the bounds on rounding do not cover.
    """
    tube, claimed = claim.tube, claim.margins
    unknown = ", ".join(sorted(set(claim.scans) - set(SCANS)))
    demand(not unknown, f"{unknown}: the bounds on rounding are for {', '.join(SCANS)}")
    # With a tail, the last margin is that of all lengths in the tail.
    steps = len(claimed) - bool(tube.tail)
    check_memory(tube, *target.delta.shape)
    demand(steps <= _MOST_STEPS, f"{steps:,} margins: at most {_MOST_STEPS:,} lengths are walked one by one")
    lengths = [sets.length for sets in tube.stored]
    rises = lengths == sorted({length for length in lengths if tube.start < length <= steps})
    span = f"from above start = {tube.start} to {steps:,}"
    demand(rises, f"sets are stored at the lengths {lengths}: they must rise, {span}")
    # Only the last part of a tail may be without end.
    is_last = all(ramp.steps is not None for ramp in tube.tail[:-1])
    demand(is_last, "sets follow the part of the tail that holds for all longer words: nothing would check them")
    check_size(tube, claimed, tables, steps, work)
    with np.errstate(all="ignore"):  # what overflows becomes infinite or NaN, and no comparison lets that pass
        replay = TubeReplay(tables, target, tube, slack)
        is_whole = bool(tube.tail) or claim.horizon == steps
        demand(is_whole, f"{steps} margins for a horizon of {claim.horizon}: one is needed for each length")
        sets = None
        for length, (margin, sets) in zip(range(1, steps + 1), replay.lengths(), strict=False):  # noqa: B007
            _check_margin(claimed[length - 1], margin, f"at length {length:,}")
        if not tube.tail:
            return
        if sets is None:
            raise InvalidCertificate("a tail follows sets, but no sets precede it")
        margin, end = replay.tail(tube.tail, sets)
        _check_margin(claimed[-1], margin, "in the tail")
    reaches = end is None or (claim.horizon is not None and claim.horizon <= end)
    demand(reaches, f"the tail ends at length {end}, before the horizon {claim.horizon}")


def _check_margin(claimed: float, proved: float, where: str) -> None:
    demand(proved > 0, f"{where} the output may be wrong: the margin is bounded by {proved:.3g} only")
    demand(0 < claimed <= proved, f"{where} a margin of {claimed:.6g} is claimed, {proved:.6g} is what can be shown")


def check_memory(tube: Tube, n_letters: int, n_states: int) -> None:
    """Raise `InvalidCertificate` if a tube's numbers of letters are out of order, or require too many sets or words."""
    memory, start = tube.memory, tube.start
    in_order = 1 <= tube.frame_memory <= memory <= start
    numbers = f"frame_memory = {tube.frame_memory}, memory = {memory}, start = {start}"
    demand(in_order, f"{numbers}: they must be in order, from 1 on")
    demand(start <= LONGEST_START, f"start = {start:,}: at most {LONGEST_START} letters are read one by one")
    sets, words = n_states * n_letters**memory, n_letters**start
    needed = f"memory = {memory} and start = {start} of {n_letters} letters ask for {sets:,} sets and {words:,} words"
    demand(max(sets, words) <= _MOST, f"{needed}, over {_MOST:,}")


def check_size(tube: Tube, margins: np.ndarray, tables: Tables, steps: int, work: float | None) -> None:
    """Raise `InvalidCertificate` if a tube needs too much memory or work for `steps` lengths.

    The tube must have passed `check_memory`. Without `work`, the bound on operations is that of `allowed_work`.
    """
    numbers, needed = demands(tube, tables, steps)
    work = allowed_work(tube, margins) if work is None else work
    held = f"the check holds {numbers:,} numbers at a time, its bound is {MOST_NUMBERS:,}"
    demand(numbers <= MOST_NUMBERS, f"{held}: certify with less memory, or a smaller start")
    taken = f"the check takes {needed:,} operations, its bound for a certificate of this size is {work:,}"
    demand(needed <= work, f"{taken}: if you trust the certificate's author, give a larger `work` to `check`")


def demands(tube: Tube, tables: Tables, steps: int) -> tuple[int, int]:
    """Return upper estimates, fitted to measurements, of the numbers held at a time and of all operations."""
    slow, directions = tube.slow.shape, tube.directions.shape
    demand((len(slow), len(directions)) == (3, 4), f"slow {slow} and directions {directions}: not 3 and 4 axes")
    letters, rivals = len(tables.alphabet), len(tables.outputs) - 1
    (m, n), b, D = tables.numbers["W1"].shape, tables.numbers["x0"].shape[1], tube.directions.shape[1]
    F, J = len(tube.slow), letters ** (tube.memory - tube.frame_memory)
    # The terms count the arrays of a replay: states of short words, tables per letter and node, and sets per node.
    extent = int(tube.directions.any((0, 3)).sum()) * b  # entries of directions over the heads that each extends over
    numbers = NUMBERS_PER_WORD * n * letters**tube.start
    numbers += letters * F * (12 * n * b + 8 * extent) + F * n * (6 * m + 6 * D)
    numbers += F * J * (24 * n + 8 * rivals * (m + n) + D * (rivals + 8))
    margin = 256 * n + 32 * rivals * (m + n) + (rivals + 2) * m * n // 2
    along = D * (n * (rivals + 2) + 32 * (rivals + 1))
    step = letters * (n * (64 + 4 * b) + 2 * extent + 64 * D) + margin + along
    words = sum(letters**k for k in range(1, tube.start + 1))
    setup = F * (_CALLS + letters * b * (n * (64 + 8 * b) + 16 * extent) + 8 * n * m)
    walked = max(0, steps - tube.start) + 3 * len(tube.tail)
    return numbers, words * margin + setup + walked * (F * J * step + _CALLS * (letters + 1))


def allowed_work(tube: Tube, margins: np.ndarray) -> int:
    """Return the default limit on operations, which grows with the compressed size of a certificate's arrays."""
    arrays = [margins, tube.basis, tube.directions]
    for sets in (*tube.stored, *(ramp.sets for ramp in tube.tail)):
        arrays += [sets.centre, sets.radius, sets.ball, sets.lower, sets.upper]
    held = sum(len(zlib.compress(np.ascontiguousarray(array).tobytes(), 1)) for array in arrays)
    return min(MOST_WORK, WORK + WORK_PER_BYTE * held)
