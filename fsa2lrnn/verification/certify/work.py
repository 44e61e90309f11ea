"""How much a search may do, counted in what it computes: the same on every machine, whatever else that is doing."""

from __future__ import annotations

import math
import time
import warnings

from fsa2lrnn.errors import UnsupportedFormat

WORK = 5e9
"""Multiplications that a search takes unless told otherwise: half a minute of one core or so."""


class SearchCutShort(UserWarning):
    """A cap on seconds ended a search before its work was done: what it found depends on the machine's load."""


class Work:
    """A budget of multiplications, with a cap on seconds on top where one is given.

    Raises:
        UnsupportedFormat: for a budget or a cap that is no positive number.

    >>> work = Work(10.0)
    >>> work.spend(8.0)
    >>> work.allows(2.0), work.allows(3.0)
    (True, False)
    """

    def __init__(self, budget: float, seconds: float | None = None) -> None:
        for name, value in (("work", budget), ("seconds", seconds)):
            if value is not None and not 0 < value < math.inf:
                raise UnsupportedFormat(f"{name} = {value}: a search needs a positive number, not infinite")
        self._left, self._seconds = budget, seconds
        self._deadline = math.inf if seconds is None else time.monotonic() + seconds
        self.is_cut_short = False

    def spend(self, amount: float) -> None:
        """Work that is done."""
        self._left -= amount

    def allows(self, amount: float) -> bool:
        """Whether so much more may be done."""
        if amount > self._left:
            return False
        self.is_cut_short |= time.monotonic() > self._deadline
        return not self.is_cut_short

    def warn_if_cut_short(self, horizon: int | None) -> None:
        """Warn with `SearchCutShort` if the cap on seconds ended it."""
        if self.is_cut_short:
            warnings.warn(
                f"the search was cut short after {self._seconds} seconds, with N = {horizon}: without a cap on seconds "
                "the same model gets the same certificate on every machine",
                SearchCutShort,
                stacklevel=3,
            )
