"""Powers of the entries of vectors, |x|^q, as vector instructions: a call a number would cost more than all the rest.

|x|^q = 2^(q·log₂|x|). With |x| = 2^e·m, m in [√½, √2) and s = (m−1)/(m+1), log₂ m = (2/ln 2)(s + s³/3 + s⁵/5 + …), and
2^f is the exponential series in f·ln 2 for |f| ≤ ½; both are taken as far as the number type can tell.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from llvmlite import ir

from fsa2lrnn.lrnn.compiled.vectors import Rows


class _SeriesFormat(NamedTuple):
    bits: int
    mantissa: int
    log_terms: int
    exp_terms: int

    @property
    def bias(self) -> int:
        return (1 << (self.bits - self.mantissa - 2)) - 1


_FORMATS = {4: _SeriesFormat(32, 23, 5, 9), 8: _SeriesFormat(64, 52, 11, 15)}  # by bytes


class Powers(Rows):
    """Instructions on rows of numbers, among them `power`."""

    def __init__(self, context: Any, builder: Any, array: Any, width: Any) -> None:
        super().__init__(context, builder, array, width)
        self.format = _FORMATS[self._size]
        self._integers = ir.VectorType(ir.IntType(self.format.bits), self.n)

    def over(self, x: Any, y: Any) -> Any:
        return self._builder.fdiv(x, y)

    def absolute(self, x: Any) -> Any:
        return self._real(self._builder.and_(self._bits(x), self._integer((1 << (self.format.bits - 1)) - 1)))

    def signed(self, size: Any, x: Any) -> Any:
        """`size`, with the signs of x."""
        sign = self._builder.and_(self._bits(x), self._integer(1 << (self.format.bits - 1)))
        return self._real(self._builder.or_(self._bits(size), sign))

    def power(self, x: Any, q: Any, more: Any) -> Any:
        """x^(q + more) for x ≥ 0, q so short that q·e is exact: 1 is given exactly for x = 1.

        It is 0 for x below the least normal number, 0 among them, and some positive number where x is no number.
        """
        build, (_, mantissa, log_terms, _), bias = self._builder, self.format, self.format.bias
        bits = self._bits(x)
        shift, one = self._integer(mantissa), self._integer(bias << mantissa)
        root = self._bits(self.constant(math.sqrt(0.5)))
        biased = build.lshr(build.add(bits, build.sub(one, root)), shift)  # e + bias
        m = self._real(build.add(build.sub(bits, build.shl(biased, shift)), one))
        least = 2.0**mantissa  # the integers k < 2^mantissa are the last bits of 2^mantissa + k
        with_least = self._real(build.or_(biased, self._bits(self.constant(least))))
        e = build.fsub(with_least, self.constant(least + bias))
        s = self.over(self.minus(m, self.constant(1.0)), self.plus(m, self.constant(1.0)))
        series = self._polynomial(self.times(s, s), [2 / math.log(2) / (2 * i + 1) for i in range(log_terms)])
        log_m = self.times(s, series)
        rest = self.plus(self.times(q, log_m), self.times(more, self.plus(e, log_m)))
        return self._where_normal(x, self._two_to_the(q, e, rest))

    def _two_to_the(self, q: Any, e: Any, rest: Any) -> Any:
        """2^(q·e + rest), cut off where it leaves the range of the format."""
        build, (_, mantissa, _, exp_terms), bias = self._builder, self.format, self.format.bias
        y = self._between(self.plus(self.times(q, e), rest), 1 - bias, bias + 0.25)
        nearest = 1.5 * 2.0**mantissa  # added to a small number it leaves the nearest integer in the last bits
        shifted = build.fadd(y, self.constant(nearest))
        n = build.fsub(shifted, self.constant(nearest))
        f = self._between(self.plus(self.minus(self.times(q, e), n), rest), -1, 1)
        coefficients = [math.log(2) ** i / math.factorial(i) for i in range(exp_terms)]
        exponent = build.shl(self._bits(shifted), self._integer(mantissa))
        return self._real(build.add(self._bits(self._polynomial(f, coefficients)), exponent))

    def _polynomial(self, x: Any, coefficients: list[float]) -> Any:
        value = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.plus(self.times(value, x), self.constant(coefficient))
        return value

    def _between(self, x: Any, low: float, high: float) -> Any:
        for sign, bound in (("<", low), (">", high)):
            limit = self.constant(bound)
            x = self._builder.select(self._builder.fcmp_ordered(sign, x, limit), limit, x)
        return x

    def _where_normal(self, x: Any, value: Any) -> Any:
        least = self.constant(2.0 ** (1 - self.format.bias))
        return self._builder.select(self._builder.fcmp_ordered("<", x, least), self.constant(0.0), value)

    def _integer(self, value: int) -> Any:
        return ir.Constant(self._integers, [value] * self.n)

    def _bits(self, x: Any) -> Any:
        return self._builder.bitcast(x, self._integers)

    def _real(self, bits: Any) -> Any:
        return self._builder.bitcast(bits, self._vector)
