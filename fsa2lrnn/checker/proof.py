"""The check of a claim by sets: step by step as L1 and L2 of docs/theory.md have it.

1. Every word of up to `start` letters is computed, with a ball about its state for what rounding may do.
2. The states of the longest of these are enclosed in one set per node, and the sets are carried on letter by letter,
   each with what a step computed in the model's dtype may be off by, for all tables within the slack.
3. At the lengths where the certificate stores sets, the stored ones must hold those computed, and take their place.
4. At each length no state may be so large as to overflow, and the read-out is bounded on every set that counts and must
   be right with the margin claimed.
5. A tail must hold itself, a letter on, at its first and last length; without growth, that is for ever.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .errors import InvalidCertificate
from .limits import check_size
from .nodes import CountedAutomaton
from .replay import TubeReplay, check_memory
from .rounding import Slack
from .sets import Tube
from .tables import Tables

SCANS = ("sequential", "fused", "letters")
"""The scans that a certificate by sets covers: x_k from x_{k-1}, by inner products in some order."""
_MOST_STEPS = 1 << 14  # four times as many as the search walks


class Claim(NamedTuple):
    """A model is right on every word of at most `horizon` letters, None for any length, by these scans.

    `margins` has a lower bound for each length from 1; with a tail, it ends where the tail begins, and a last entry
    bounds the rest.
    """

    horizon: int | None
    margins: np.ndarray
    scans: tuple[str, ...]
    tube: Tube


def check_sets(claim: Claim, tables: Tables, target: CountedAutomaton, slack: Slack, work: float | None = None) -> None:
    """Do the proof of a claim again, for all tables within the slack of those given, in `work` operations (`limits`).

    Raises:
        InvalidCertificate: naming what fails.
        UnsupportedInput: for tables that the bounds on rounding do not cover.
    """
    tube, claimed = claim.tube, claim.margins
    if unknown := set(claim.scans) - set(SCANS):
        raise InvalidCertificate(f"{', '.join(sorted(unknown))}: the bounds on rounding are for {', '.join(SCANS)}")
    steps = len(claimed) - bool(tube.tail)
    check_memory(tube, *target.delta.shape)
    _check_lengths(tube, steps)
    check_size(tube, claimed, tables, steps, work)
    with np.errstate(all="ignore"):  # what overflows becomes infinite or NaN, and no comparison lets that pass
        replay = TubeReplay(tables, target, tube, slack)
        if not tube.tail and claim.horizon != steps:
            raise InvalidCertificate(f"{steps} margins for a horizon of {claim.horizon}: there is one a length")
        sets = None
        for length, (margin, sets) in zip(range(1, steps + 1), replay.lengths(), strict=False):  # noqa: B007
            _check_margin(claimed[length - 1], margin, f"at length {length:,}")
        if not tube.tail:
            return
        if sets is None:
            raise InvalidCertificate("a tail follows sets, but there is none before it")
        margin, end = replay.tail(tube.tail, sets)
        _check_margin(claimed[-1], margin, "in the tail")
    if end is not None and (claim.horizon is None or claim.horizon > end):
        raise InvalidCertificate(f"the tail ends at length {end:,}, before the horizon {claim.horizon}")


def _check_lengths(tube: Tube, steps: int) -> None:
    """Every set that is stored has its turn, and takes a bounded time."""
    if steps > _MOST_STEPS:
        raise InvalidCertificate(f"{steps:,} margins: at most {_MOST_STEPS:,} lengths are walked one by one")
    lengths = [sets.length for sets in tube.stored]
    if any(after <= before for before, after in pairwise([tube.start, *lengths])) or max(lengths, default=0) > steps:
        raise InvalidCertificate(
            f"sets are stored at the lengths {lengths}: they must rise, from above start = {tube.start} to {steps:,}"
        )
    if any(ramp.steps is None for ramp in tube.tail[:-1]):
        raise InvalidCertificate("something follows the part of the tail that holds for ever: nothing would check it")


def _check_margin(claimed: float, found: float, where: str) -> None:
    if not found > 0:
        raise InvalidCertificate(f"{where} the output may be wrong: the margin is bounded by {found:.3g} only")
    if not 0 < claimed <= found:
        raise InvalidCertificate(f"{where} a margin of {claimed:.6g} is claimed, {found:.6g} is what can be shown")
