"""The budget of a search in multiplications, which does not depend on the CPU or its load."""

from __future__ import annotations

import math
import warnings

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import UnsupportedFormat

WORK = 5e9
"""The default number of multiplications of a search: about half a minute on one core."""


class SearchCutShort(UserWarning):
    """The warning that a time limit ended a search before its budget, so its result depends on the load of the CPU."""


class WorkBudget:
    """A budget of multiplications with an optional time limit in seconds.

    Raises:
        UnsupportedFormat: for a budget or a time limit that is not a positive number.

    >>> work = WorkBudget(10.0)
    >>> work.spend(8.0)
    >>> work.allows(2.0), work.allows(3.0)
    (True, False)
    """

    def __init__(self, budget: float, seconds: float | Deadline | None = None) -> None:
        if not 0 < budget < math.inf:
            raise UnsupportedFormat(f"work = {budget}: a search needs a positive number, not infinite")
        self.budget = self._left = budget
        self.deadline, self._is_cut_short = Deadline.of(seconds), False

    def spend(self, amount: float) -> None:
        self._left -= amount

    def allows(self, amount: float, seconds: float = 0.0) -> bool:
        """Decide whether the budget leaves `amount` multiplications and the time limit more than `seconds`."""
        if amount > self._left:
            return False
        self._is_cut_short |= self.deadline.left() <= seconds
        return not self._is_cut_short

    @property
    def is_cut_short(self) -> bool:
        """Whether the time limit ended the search."""
        return self._is_cut_short or self.deadline.left() <= 0

    def warn_if_cut_short(self, horizon: int | None) -> None:
        """Warn with `SearchCutShort` if the time limit ended the search, at the certified length `horizon`."""
        if self.is_cut_short:
            warnings.warn(
                f"the search was cut short after {self.deadline.seconds:.3g} s, with N = {horizon}: without a time "
                "limit the same model gets the same certificate on every machine",
                SearchCutShort,
                stacklevel=3,
            )
