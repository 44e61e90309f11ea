"""Exponentials of the entries of vectors, as vector instructions.

e^x = 2^n e^r with n the integer nearest to x/ln 2, and the exponential series for |r| ≤ ½ ln 2, as far as the number
type can tell. ln 2 is taken in two parts, the first so short that n times it is exact.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from fsa2lrnn.lrnn.compiled.vectors import Rows

_TERMS = {4: 8, 8: 14}  # by bytes
_MANTISSA = {4: 23, 8: 52}
_SHORT = {4: 355 / 512, 8: 1 / math.log2(math.e) - 1.9082149292705877e-10}  # ln 2 to 10 and to 32 bits
_REST = {4: math.log(2) - 355 / 512, 8: 1.9082149292705877e-10}


class Exponentials(Rows):
    """Instructions on rows of numbers, among them `exp`."""

    def over(self, x: Any, y: Any) -> Any:
        """x/y, entry by entry."""
        return self._builder.fdiv(x, y)

    def pick(self, x: Any, y: Any, if_larger: Any, otherwise: Any) -> Any:
        """`if_larger` where x ≥ y, else `otherwise`."""
        return self._builder.select(self._builder.fcmp_ordered(">=", x, y), if_larger, otherwise)

    def shares(self, x: Any, y: Any) -> tuple[Any, Any, Any]:
        """m = max(x, y), e^{x−m} and e^{y−m}: of the two exponentials one is 1."""
        difference, one = self.minus(x, y), self.constant(1.0)
        size = self.pick(difference, self.constant(0.0), difference, self.minus(y, x))
        other = self.exp(self.minus(self.constant(0.0), size))
        of_x, of_y = self.pick(x, y, one, other), self.pick(x, y, other, one)
        return self.pick(x, y, x, y), of_x, of_y

    def exp(self, x: Any) -> Any:
        """e^x for x up to about 80: 0 where that would be no normal number, no number where x is none."""
        build, size = self._builder, self._size
        mantissa = _MANTISSA[size]
        lowest = {4: -87.0, 8: -708.0}[size]
        bounded = self.pick(x, self.constant(lowest), x, self.constant(lowest))
        nearest = self.constant(1.5 * 2.0**mantissa)  # added, it leaves the nearest integer in the last bits
        shifted = build.fadd(build.fmul(bounded, self.constant(math.log2(math.e))), nearest)
        n = build.fsub(shifted, nearest)
        r = self.minus(
            self.minus(bounded, self.times(n, self.constant(_SHORT[size]))), self.times(n, self.constant(_REST[size]))
        )
        value = self.constant(1 / math.factorial(_TERMS[size] - 1))
        for k in reversed(range(_TERMS[size] - 1)):
            value = self.plus(self.times(value, r), self.constant(1 / math.factorial(k)))
        integers = ir.VectorType(ir.IntType(8 * size), self.n)
        exponent = build.shl(build.bitcast(shifted, integers), ir.Constant(integers, [mantissa] * self.n))
        scaled = build.bitcast(build.add(build.bitcast(value, integers), exponent), self._vector)
        scaled = self.pick(x, self.constant(lowest), scaled, self.constant(0.0))
        return build.select(build.fcmp_unordered("uno", x, x), x, scaled)
