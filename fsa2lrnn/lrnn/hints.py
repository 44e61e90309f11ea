"""What a layer asks of the optimiser for a parameter of its own."""

from __future__ import annotations

from typing import NamedTuple


class Hint(NamedTuple):
    """A learning rate and a weight decay in place of those of the run, where they are not None; `factor` times it."""

    rate: float | None = None
    decay: float | None = None
    factor: float = 1.0

    def rate_for(self, rate: float) -> float:
        """The learning rate, where that of the run is `rate`.

        >>> Hint(factor=0.5).rate_for(1e-3), Hint(1e-3).rate_for(4e-3)
        (0.0005, 0.001)
        """
        return self.factor * (rate if self.rate is None else self.rate)
