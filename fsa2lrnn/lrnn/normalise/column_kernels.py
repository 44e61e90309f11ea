"""Compiled CPU kernels of the column rules and of their gradients, on flat arrays, and their use on tensors.

Let c be the columns before the division (centred under "paper"), d their divisors and y = c / d the result. Where d is
the norm n of a column, ∂n/∂c_i = sgn(c_i)|c_i|^(p−1) / n^(p−1) = sgn(y_i)|y_i|^(p−1). So the gradient needs y and n,
not c, and |·|^(p−1) is the only power to compute, since |c|^p = |c|·|c|^(p−1). Subnormal numbers count as 0 in norms.

A block's result depends on the block alone: neither on the number of threads nor on its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import ir
from numba import njit
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.compiled import DTYPES, Kernel, cuts, empty, share, thread_count, typed_once_differentiable
from fsa2lrnn.lrnn.compiled.vectors import WIDEST, Rows, fence, instruction, kernel
from fsa2lrnn.lrnn.normalise.reference import bounded


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
    """Vector instructions on rows with powers, because a function call per number would dominate the time.

    |x|^q = 2^(q·log₂|x|). With |x| = 2^e·m, m in [√½, √2) and s = (m−1)/(m+1), log₂ m = (2/ln 2)(s + s³/3 + s⁵/5 + …),
    and 2^f is the exponential series in f·ln 2 for |f| ≤ ½, both to the precision of the number type.
    """

    def __init__(self, context: Any, builder: Any, array: Any, width: Any) -> None:
        super().__init__(context, builder, array, width)
        self.format = _FORMATS[self._size]
        self._integers = ir.VectorType(ir.IntType(self.format.bits), self.n)

    def over(self, x: Any, y: Any) -> Any:
        return self._builder.fdiv(x, y)

    def absolute(self, x: Any) -> Any:
        return self._real(self._builder.and_(self._bits(x), self._integer((1 << (self.format.bits - 1)) - 1)))

    def signed(self, size: Any, x: Any) -> Any:
        """Return `size` with the signs of x."""
        sign = self._builder.and_(self._bits(x), self._integer(1 << (self.format.bits - 1)))
        return self._real(self._builder.or_(self._bits(size), sign))

    def power(self, x: Any, q: Any, more: Any) -> Any:
        """Return x^(q + more) for x ≥ 0, where q has so few bits that q·e is exact; the result for x = 1 is exactly 1.

        The result is 0 for x below the least normal number (also for x = 0), and some positive number for NaN.
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
        """Return 2^(q·e + rest), limited to the range of the format."""
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


def _sum(rows, terms):
    return reduce(rows.plus, terms)


def _mean(rows, terms):
    return rows.over(_sum(rows, terms), rows.constant(float(rows.n)))


def _powers_of_norms(rows, columns, powers, zero):
    q, more = rows.load(powers, zero), rows.load(powers, zero, 1)
    sizes = [rows.absolute(row) for row in columns]
    return _sum(rows, [rows.times(size, rows.power(size, q, more)) for size in sizes])


def _write_sums(rows, A, a, powers, zero, sums, i):
    columns = [rows.load(A, a, row) for row in range(rows.n)]
    rows.store(_powers_of_norms(rows, columns, powers, zero), sums, i)


def _write_centred(rows, A, a, powers, zero, sums, i, out):
    block = [rows.load(A, a, row) for row in range(rows.n)]
    mean = _mean(rows, block)
    block = [rows.minus(row, mean) for row in block]
    rows.store(_powers_of_norms(rows, block, powers, zero), sums, i)
    for row, each in enumerate(block):
        rows.store(each, out, a, row)


def _write_roots(rows, sums, i, powers, zero):
    total, q, more = rows.load(sums, i), rows.load(powers, zero, 2), rows.load(powers, zero, 3)
    rows.store(rows.times(total, rows.power(total, q, more)), sums, i)  # so a sum that is not a number shows


def _write_divided(rows, A, a, divisors, zero, out):
    divisor = rows.load(divisors, zero)
    for row in range(rows.n):
        rows.store(rows.over(rows.load(A, a, row), divisor), out, a, row)


def _write_dots(rows, y, a, dy, dots, zero):
    terms = [rows.times(rows.load(y, a, row), rows.load(dy, a, row)) for row in range(rows.n)]
    rows.store(_sum(rows, terms), dots, zero)


def _gradients(rows, y, a, dy, powers, zero, factors, divisors):
    q, more = rows.load(powers, zero), rows.load(powers, zero, 1)
    factor, divisor = rows.load(factors, zero), rows.load(divisors, zero)
    of_c = []
    for row in range(rows.n):
        value = rows.load(y, a, row)
        of_norm = rows.signed(rows.power(rows.absolute(value), q, more), value)
        of_c.append(rows.over(rows.minus(rows.load(dy, a, row), rows.times(factor, of_norm)), divisor))
    return of_c


def _write_back(rows, y, a, dy, p, zero, factors, d, out):
    for row, value in enumerate(_gradients(rows, y, a, dy, p, zero, factors, d)):
        rows.stream(value, out, a, row)


def _write_back_centred(rows, y, a, dy, p, zero, factors, d, out):
    values = _gradients(rows, y, a, dy, p, zero, factors, d)
    mean = _mean(rows, values)
    for row, value in enumerate(values):
        rows.stream(rows.minus(value, mean), out, a, row)


_measure = instruction(_write_sums, Powers)  # sums = the p-th powers of the norms of A's columns
_measure_centred = instruction(_write_centred, Powers)  # out = A less its columns' means, sums = those of out
_take_roots = instruction(_write_roots, Powers)  # from sums to norms
_divide = instruction(_write_divided, Powers)  # out = A / divisors, column by column
_dots = instruction(_write_dots, Powers)  # dots = the sums of y·dy over each column
_back = instruction(_write_back, Powers)  # out = (dy − factors·sgn(y)|y|^(p−1)) / divisors
_back_centred = instruction(_write_back_centred, Powers)  # the same, less its columns' means

_TOGETHER = 32  # blocks: the roots of one need not wait for another's, and all are still in the cache when divided


@njit
def _is_beyond(x, bound):
    return x > bound or x != x


@njit
def _largest(norms, i, b):
    largest = norms[i]
    for j in range(1, b):
        if _is_beyond(norms[i + j], largest):
            largest = norms[i + j]
    return largest


class ColumnKernels(NamedTuple):
    """The kernels of one column rule for blocks of size b; a call processes blocks i0 … i1 − 1 with `part` (i0, i1).

    `powers` holds four numbers, b times each: the leading bits of p − 1, the remainder of p − 1, the leading bits of
    1/p − 1, and its remainder (`Powers.power`).

    - forward(A, powers, y, norms, part): writes y (N,b,b), and norms (N,b) of the columns that are divided.
    - backward(y, norms, dy, powers, dA, part): writes dA (N,b,b), which must be aligned to 64 bytes.
    """

    forward: Callable[..., None]
    backward: Callable[..., None]


@lru_cache
def kernels(rule: str, width: int) -> ColumnKernels:
    """Return the kernels for the rule "clip" or "paper" and blocks of size `width`, at most `WIDEST`."""
    centring = rule == "paper"  # a constant to the compiler, which drops the branch that is not taken

    @kernel(Powers)
    def forward(A, powers, y, norms, part):
        divisors = np.empty(width, A.dtype)
        for start in range(part[0], part[1], _TOGETHER):
            end = min(start + _TOGETHER, part[1])
            for n in range(start, end):
                if centring:
                    _measure_centred(width, (A, n * width * width, powers, 0, norms, n * width, y))
                else:
                    _measure(width, (A, n * width * width, powers, 0, norms, n * width))
            for n in range(start, end):
                _take_roots(width, (norms, n * width, powers, 0))
            for n in range(start, end):
                i, a = n * width, n * width * width
                if centring:
                    divisors[:] = _largest(norms, i, width)
                    _divide(width, (y, a, divisors, 0, y))
                else:
                    for j in range(width):
                        divisors[j] = norms[i + j] if _is_beyond(norms[i + j], 1) else 1
                    _divide(width, (A, a, divisors, 0, y))

    @kernel(Powers)
    def backward(y, norms, dy, powers, dA, part):
        dots, factors, divisors = np.empty(width, y.dtype), np.empty(width, y.dtype), np.empty(width, y.dtype)
        for n in range(part[0], part[1]):
            i, a = n * width, n * width * width
            _dots(width, (y, a, dy, dots, 0))
            if centring:  # the largest column is what divides all; several share its gradient
                largest, total, n_largest = _largest(norms, i, width), 0 * dots[0], 0
                for j in range(width):
                    total += dots[j]
                    n_largest += norms[i + j] == largest
                for j in range(width):
                    factors[j] = total / n_largest if norms[i + j] == largest else 0
                divisors[:] = largest
                _back_centred(width, (y, a, dy, powers, 0, factors, divisors, dA))
            else:
                for j in range(width):
                    factors[j] = 0 if norms[i + j] < 1 else dots[j]
                    divisors[j] = norms[i + j] if _is_beyond(norms[i + j], 1) else 1
                _back(width, (y, a, dy, powers, 0, factors, divisors, dA))
        fence()

    return ColumnKernels(forward, backward)


_PASSES = 8  # multiplications that the work on a number is worth, about


def takes(A: Tensor) -> bool:
    """Return whether the kernels support the device, dtype and block size of A (…, b, b)."""
    return A.device.type == "cpu" and A.dtype in DTYPES and 1 <= A.shape[-1] <= WIDEST


def fused(A: Tensor, rule: str, p: float) -> Tensor:
    """Apply "clip", "paper" or "none" by kernels, in one pass over A each way: (…, b, b) -> (…, b, b).

    Differentiable once. Raises `UnsupportedFormat` for a device, dtype or block size that the kernels do not take.
    """
    if not takes(A):
        raise UnsupportedFormat(
            f"blocks of size {A.shape[-1]}, {str(A.dtype).removeprefix('torch.')} on {A.device}: the fused column "
            f'rules take float32 or float64 on the CPU, size 1 to {WIDEST}; convert them, or choose method="reference"'
        )
    return A if rule == "none" else _Normalise.apply(A, rule, bounded(p))  # type: ignore[no-any-return]


class _Normalise(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, rule: str, p: float) -> Tensor:
        A = A.contiguous()
        y, norms = empty(A.shape, A.dtype), empty(A.shape[:-1], A.dtype)
        ctx.kernels = kernels(rule, A.shape[-1])
        ctx.powers = _powers(p, A.shape[-1], A.dtype)
        _share(ctx.kernels.forward, A, ctx.powers, y, norms)
        ctx.save_for_backward(y, norms)
        return y

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        y, norms = ctx.saved_tensors
        dA = empty(y.shape, y.dtype)
        _share(ctx.kernels.backward, y, norms, dy.contiguous(), ctx.powers, dA)
        return dA, None, None


def _powers(p: float, b: int, dtype: torch.dtype) -> Tensor:
    exact = torch.tensor([p - 1, 1 / p - 1], dtype=torch.float64)
    short = exact.to(torch.bfloat16 if dtype == torch.float32 else torch.float32)
    return torch.stack([short, exact - short], dim=1).to(dtype).flatten().repeat_interleave(b)


def _share(kernel: Kernel, blocks: Tensor, *others: Tensor) -> None:
    parts = cuts(blocks.shape[:-2].numel(), thread_count(blocks.numel() * _PASSES))
    share(kernel, (blocks, *others), parts)
