"""Collect statistics of the values of gates as counts, so that memory does not grow with the length of a text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsa2lrnn.errors import UnsupportedFormat

BINS = 1_024
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Measure:
    """A quantity that is observed in layers, one number per head and token.

    Args:
        name: its name, such as "beta".
        low, high: the range that the bins divide; with `high` infinite, bins divide the range of x/(1 + x).
        marks: values at which a gate is exact, counted separately.
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    marks: tuple[float, ...] = (0.0, 1.0)

    def to_unit(self, values: np.ndarray) -> np.ndarray:
        """Return the positions of values in the range, 0 for `low` and 1 for `high`."""
        if math.isinf(self.high):
            return (values - self.low) / (1 + values - self.low)
        return (values - self.low) / (self.high - self.low)

    def from_unit(self, places: np.ndarray) -> np.ndarray:
        """Return the values at positions from 0 to 1, the inverse of `to_unit`."""
        if math.isinf(self.high):
            return self.low + places / np.maximum(1 - places, 1e-12)
        return self.low + places * (self.high - self.low)

    def quantiles(self, counts: np.ndarray, least: float, most: float) -> tuple[float, ...]:
        """Return the values at `QUANTILES` from counts in `BINS` bins, clipped to the least and the largest value."""
        places = np.concatenate([[0.0], np.cumsum(counts) / max(counts.sum(), 1)])
        edges = self.from_unit(np.arange(BINS + 1) / BINS)
        return tuple(np.clip(np.interp(QUANTILES, places, edges), least, most).tolist())


@dataclass(frozen=True, eq=False)
class Spread:
    """The distribution of the values of one head.

    Args:
        least, most, mean: the least, largest and mean value.
        quantiles: the values at `QUANTILES`, accurate to the width of a bin.
        counts: the number of values in each of `BINS` bins, int64; values outside the range are in the first and last.
        exactly: for each mark, the number of values that equal it.
        n: the number of values.
    """

    least: float
    most: float
    mean: float
    quantiles: tuple[float, ...]
    counts: np.ndarray
    exactly: dict[float, int]
    n: int

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object without the counts."""
        return {
            "least": self.least,
            "most": self.most,
            "mean": self.mean,
            "quantiles": {f"{share:g}": value for share, value in zip(QUANTILES, self.quantiles, strict=True)},
            "exactly": {f"{mark:g}": count for mark, count in self.exactly.items()},
        }


class HeadValues:
    """The collected values of one measure for all heads of one layer.

    >>> beta = HeadValues(Measure("beta", high=2, marks=(0, 2)), heads=1)
    >>> beta.add(np.array([[0.0], [0.5], [2.0]]))
    >>> spread = beta.spread(0)
    >>> spread.least, spread.most, spread.exactly
    (0.0, 2.0, {0: 1, 2: 1})
    """

    def __init__(self, measure: Measure, heads: int) -> None:
        self.measure = measure
        self._counts = np.zeros((heads, BINS), np.int64)
        self._least, self._most = np.full(heads, np.inf), np.full(heads, -np.inf)
        self._sum, self._n = np.zeros(heads), 0
        self._exactly = np.zeros((heads, len(measure.marks)), np.int64)
        self._below = np.zeros(heads, np.int64)

    def add(self, values: np.ndarray) -> None:
        """Add the values of n tokens, shape (n, heads). Raises `UnsupportedFormat` for values that are not finite."""
        heads = len(self._counts)
        values = np.asarray(values, np.float64).reshape(-1, heads)
        if not np.isfinite(values).all():
            head = int(np.argwhere(~np.isfinite(values))[0, 1])
            raise UnsupportedFormat(
                f"{self.measure.name} of head {head} is not finite: the model overflows in its dtype or was damaged"
            )
        if not len(values):
            return
        bins = np.clip((self.measure.to_unit(values) * BINS).astype(np.int64), 0, BINS - 1)
        flat = (bins + BINS * np.arange(heads)).reshape(-1)
        self._counts += np.bincount(flat, minlength=heads * BINS).reshape(heads, BINS)
        self._least = np.minimum(self._least, values.min(axis=0))
        self._most = np.maximum(self._most, values.max(axis=0))
        self._sum += values.sum(axis=0)
        self._n += len(values)
        self._below += (values < 0).sum(axis=0)
        for j, mark in enumerate(self.measure.marks):
            self._exactly[:, j] += (values == mark).sum(axis=0)

    def below_zero(self, head: int) -> int:
        """Return the number of negative values of a head."""
        return int(self._below[head])

    def spread(self, head: int) -> Spread:
        """Return the distribution of the values that were added for a head."""
        counts, n = self._counts[head], self._n
        least, most = float(self._least[head]), float(self._most[head])
        exactly = {mark: int(k) for mark, k in zip(self.measure.marks, self._exactly[head], strict=True)}
        quantiles = self.measure.quantiles(counts, least, most)
        return Spread(least, most, float(self._sum[head] / max(n, 1)), quantiles, counts.copy(), exactly, n)
