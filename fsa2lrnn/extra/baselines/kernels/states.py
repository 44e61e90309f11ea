"""Vector instructions that run over the n complex states of some neighbouring channels, a vector being the channels.

So no sum ever runs across a vector. States are rows of real parts, then rows of imaginary ones, one after the other;
coefficients are rows of H numbers by kind, n of real parts before n of imaginary ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from fsa2lrnn.lrnn.compiled.vectors import Rows

Pair = tuple[Any, Any]  # real and imaginary parts


class States(Rows):
    """Instructions on states and their coefficients."""

    def totals(self, n: Any, terms: Callable[[Any], list[Any]], count: int) -> list[Any]:
        """The sums over i < n of what `terms(i)` gives, kept in registers."""
        build = self._builder
        totals = [cgutils.alloca_once_value(build, ir.Constant(self._vector, None)) for _ in range(count)]
        with cgutils.for_range(build, n, intp=n.type) as loop:
            for total, term in zip(totals, terms(loop.index), strict=True):
                build.store(self.plus(build.load(total), term), total)
        return [build.load(total) for total in totals]

    def pair(self, array: Any, start: Any, i: Any, n: Any) -> Pair:
        """State i."""
        return self.load(array, self._row(start, i)), self.load(array, self._row(start, self._builder.add(i, n)))

    def put(self, x: Pair, array: Any, start: Any, i: Any, n: Any) -> None:
        """Writes state i."""
        self.store(x[0], array, self._row(start, i))
        self.store(x[1], array, self._row(start, self._builder.add(i, n)))

    def coefficient(self, kind: int, k: Any, h: Any, i: Any, H: Any, n: Any) -> Pair:
        """Coefficient i of a kind."""
        return self.load(k, self._place(2 * kind, h, i, H, n)), self.load(k, self._place(2 * kind + 1, h, i, H, n))

    def add(self, x: Pair, kind: int, k: Any, h: Any, i: Any, H: Any, n: Any) -> None:
        """Adds to coefficient i of a kind."""
        for part, value in enumerate(x):
            place = self._place(2 * kind + part, h, i, H, n)
            self.store(self.plus(self.load(k, place), value), k, place)

    def product(self, x: Pair, y: Pair, start: Pair) -> Pair:
        """start + xy."""
        real = self.minus(self.plus(start[0], self.times(x[0], y[0])), self.times(x[1], y[1]))
        return real, self.plus(self.plus(start[1], self.times(x[0], y[1])), self.times(x[1], y[0]))

    def against(self, x: Pair, y: Pair, start: Pair) -> Pair:
        """start + conj(x) y."""
        real = self.plus(self.plus(start[0], self.times(x[0], y[0])), self.times(x[1], y[1]))
        return real, self.minus(self.plus(start[1], self.times(x[0], y[1])), self.times(x[1], y[0]))

    def real_product(self, x: Pair, y: Pair) -> Any:
        """Re xy."""
        return self.minus(self.times(x[0], y[0]), self.times(x[1], y[1]))

    def twice(self, x: Any) -> Any:
        """2x."""
        return self.plus(x, x)

    def scaled(self, factor: Any, x: Pair) -> Pair:
        """factor · x, the factor real."""
        return self.times(factor, x[0]), self.times(factor, x[1])

    def conjugate(self, x: Pair) -> Pair:
        """conj(x)."""
        return x[0], self.minus(self.constant(0.0), x[1])

    def sum(self, x: Pair, y: Pair) -> Pair:
        """x + y."""
        return self.plus(x[0], y[0]), self.plus(x[1], y[1])

    def difference(self, x: Pair, y: Pair) -> Pair:
        """x − y."""
        return self.minus(x[0], y[0]), self.minus(x[1], y[1])

    def at_least(self, x: Any, bound: Any) -> Any:
        """x, or 0 where it is smaller than the bound."""
        build, zero = self._builder, self.constant(0.0)
        is_small = build.and_(build.fcmp_ordered("<", x, bound), build.fcmp_ordered(">", x, build.fsub(zero, bound)))
        return build.select(is_small, zero, x)

    def _row(self, start: Any, i: Any) -> Any:
        return self._builder.add(start, self._builder.mul(i, ir.Constant(i.type, self.n)))

    def _place(self, plane: int, h: Any, i: Any, H: Any, n: Any) -> Any:
        build = self._builder
        row = build.add(i, build.mul(n, ir.Constant(n.type, plane)))
        return build.add(h, build.mul(row, H))
