"""Column normalisation of transition blocks: the paper's Eq. 6, and the different rule of the paper's code.

`reference` is the definition, in plain torch; `fused`, compiled for the CPU, is tested against it forward and backward.

Let c be the columns before the division (centred under "paper"), d their divisors and y = c / d the result. Where d is
the norm n of a column, ∂n/∂c_i = sgn(c_i)|c_i|^(p−1) / n^(p−1) = sgn(y_i)|y_i|^(p−1). So the gradient needs y and n,
not c, and |·|^(p−1) is the only power to compute, since |c|^p = |c|·|c|^(p−1). The kernels count subnormal numbers as 0
in norms. A block's result depends on the block alone: neither on the number of threads nor on its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import types
from numba.extending import overload
from torch import Tensor
from torch.autograd import Function
from torch.linalg import vector_norm

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.compiled import DTYPES, Context, Kernel, cuts, kernel, share, thread_count, typed_once_differentiable

RULES = ("clip", "paper", "none", "onehot")
"""The column rules by name."""
TEMPERATURE = 0.4
"""The default temperature of the softmax that gives the rule "onehot" its gradient."""

_WORTH_COMPILING = 1 << 11  # entries; for fewer, no number of calls outweighs the time of compilation
_STEEPEST = 2.0**100


def normalise(A: Tensor, rule: str, p: float, method: str = "auto", temperature: float = TEMPERATURE) -> Tensor:
    """Return blocks with bounded columns: (…, b, b) -> (…, b, b).

    - "clip": v ↦ v / max(1, ‖v‖_p) for each column v (Eq. 6). One-hot columns have norm 1 for every p: no change.
    - "paper": the rule of the paper's code: subtract each column's mean, then divide the block by its largest column
      p-norm. If all columns are constant, the result is 0/0 = NaN, as it is there.
    - "none": no change.
    - "onehot": each column becomes one-hot at its largest entry; the backward pass uses a softmax at `temperature`
      (`one_hot_columns`). It has a single implementation for all methods.

    Stability in general holds only for p = 1 (Eq. 7); see docs/theory.md §3.

    `method` is "reference" (torch), "fused" (compiled, on the CPU; differentiable once) or "auto" (`choose_method`).

    Raises:
        ValueError: for blocks that are not square.
        UnsupportedFormat: for an unknown rule or method, a p that is not finite or below 1, or blocks that the method
            does not support.

    >>> import torch
    >>> normalise(torch.tensor([[3.0, 0.5], [1.0, 0.0]]), "clip", 1).tolist()
    [[0.75, 0.5], [0.25, 0.0]]
    """
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"shape {tuple(A.shape)} does not fit: give blocks (…, b, b)")
    if rule not in RULES:
        raise UnsupportedFormat(f"column rule {rule!r} is not known: choose one of {', '.join(RULES)}")
    if not 1 <= p < math.inf:
        raise UnsupportedFormat(f"p = {p}: a column norm needs a finite p of at least 1")
    if method == "auto":
        method = choose_method(A)
    if method not in METHODS:
        raise UnsupportedFormat(f"method {method!r} is not known: choose one of auto, {', '.join(METHODS)}")
    return one_hot_columns(A, temperature) if rule == "onehot" else METHODS[method](A, rule, p)


def keeps(A: Tensor, rule: str) -> bool:
    """Return whether every method returns these blocks (…, b, b) unchanged, bit for bit, for every p.

    This holds for "none"; for "clip" if each column has at most one non-zero entry, which is 1 or −1 (T2 of
    docs/theory.md: such columns have norm 0 or 1 in exact arithmetic, for all methods and sizes); and for "onehot" if
    the columns are one-hot. No such argument is made for "paper".

    >>> import torch
    >>> keeps(torch.eye(3), "clip"), keeps(torch.eye(3) / 2, "clip"), keeps(torch.eye(3), "paper")
    (True, False, False)
    """
    if rule == "onehot":
        return bool(((A == 0) | (A == 1)).all() and ((A != 0).sum(-2) == 1).all())
    if rule != "clip":
        return rule == "none"
    sizes = A.abs()
    return bool(((sizes == 0) | (sizes == 1)).all() and ((sizes != 0).sum(-2) <= 1).all())


def choose_method(A: Tensor) -> str:
    """Return the method of "auto": "fused" if it supports A (…, b, b) and A is large enough to be worth compiling.

    >>> import torch
    >>> choose_method(torch.empty(128, 40, 8, 8, 8)), choose_method(torch.empty(5, 1, 8, 8))
    ('fused', 'reference')
    """
    return "fused" if takes(A) and A.numel() >= _WORTH_COMPILING else "reference"


def paper_rule_scale(b: int, p: float) -> float:
    """Return the factor by which a permutation of size b scales zero-sum vectors under the rule "paper"; NaN for b = 1.

    A centred one-hot column has one entry 1 − 1/b and b − 1 entries −1/b; the block is divided by its p-norm.

    >>> round(paper_rule_scale(8, 1.2), 2), round(paper_rule_scale(2, 1.2), 2)
    (0.74, 1.12)
    """
    if b == 1:
        return math.nan
    # ((1 − 1/b)^p + (b − 1) b^(−p))^(1/p) with (1 − 1/b) factored out (proof of T2): b^(−p) / (1 − 1/b)^p = (b −
    # 1)^(−p).
    return 1 / ((1 - 1 / b) * (1 + (b - 1.0) ** (1 - p)) ** (1 / p))


def bounded(p: float) -> float:
    """Return the exponent that the norms are computed with: p, or 2¹⁰⁰ if p is larger.

    |x|^p is 1 for |x| = 1; for any other float64 x it overflows or underflows from p = 2⁶⁵ on. So 2¹⁰⁰ gives the same
    as a larger p, and p − 1 and 1/p stay within the range of float32, in which the kernels hold them.

    >>> bounded(1.2), bounded(1e308) == bounded(1e39)
    (1.2, True)
    """
    return min(p, _STEEPEST)


def reference(A: Tensor, rule: str, p: float) -> Tensor:
    """Apply the column rule "clip", "paper" or "none" as `normalise` defines it: (…, b, b) -> (…, b, b)."""
    p = bounded(p)
    if rule == "clip":
        return A / vector_norm(A, ord=p, dim=-2, keepdim=True).clamp(min=1)
    if rule == "paper":
        centred = A - A.mean(dim=-2, keepdim=True)
        return centred / vector_norm(centred, ord=p, dim=-2, keepdim=True).amax(dim=-1, keepdim=True)
    return A


def one_hot_columns(logits: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """Return blocks with one-hot columns, 1 at the first largest entry of each column: (…, b, b) -> (…, b, b).

    The gradient is that of softmax(logits / temperature) at the same logits. NaN counts as the largest entry, so that
    the result is always one-hot.

    >>> one_hot_columns(torch.tensor([[0.0, 2.0], [1.0, 2.0]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return _hard(logits, logits.argmax(-2, keepdim=True), -2, temperature)


def one_hot_rows(logits: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """Return one-hot vectors, 1 at the first largest entry, (…, b) -> (…, b); gradient as in `one_hot_columns`."""
    return _hard(logits, logits.argmax(-1, keepdim=True), -1, temperature)


def _hard(logits: Tensor, largest: Tensor, dim: int, temperature: float) -> Tensor:
    # `largest` holds the first of equal entries, the choice on which T50 relies.
    hard = torch.zeros_like(logits, requires_grad=False).scatter_(dim, largest, 1)
    if not logits.requires_grad:
        return hard
    return straight_through(hard, (logits / temperature).softmax(dim))


def straight_through(value: Tensor, carrier: Tensor) -> Tensor:
    """Return `value`; the backward pass sends its gradient to `carrier` instead."""
    return _ValueOf.apply(value, carrier)  # type: ignore[no-any-return]


class _ValueOf(Function):
    @staticmethod
    def forward(_ctx: Context, value: Tensor, _carrier: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the names are the caller's
        _ctx: Context, *gradients: Tensor
    ) -> tuple[None, Tensor]:
        return None, gradients[0]


_TOGETHER = 32  # blocks whose powers are computed in one loop, and are still in the cache when they are summed


def _power(x: float, short: float, rest: float) -> float:
    """Return x^(short + rest) for x ≥ 0, where `short` has so few bits that its products with exponents are exact.

    This runs in kernels only, because a function call per number would dominate their time. x^q = 2^(q log₂ x). With
    x = 2^e m, m in [√½, √2) and s = (m−1)/(m+1), log₂ m = (2/ln 2)(s + s³/3 + s⁵/5 + …), and 2^f is the exponential
    series in f ln 2, |f| ≤ ½, both to the precision of the format. The result is exactly 1 for x = 1, 0 for x below the
    least normal number, also for x = 0, and some number for NaN.
    """
    raise NotImplementedError


@overload(_power, jit_options={"fastmath": {"contract"}, "error_model": "numpy", "forceinline": True})
def _power_in_kernels(x, short, rest):  # noqa: ARG001
    """Return the body of `_power` for numba, which inlines it in kernels; all numbers have the format of x."""
    # `whole` reads and writes the bits of a float of type `real`; its layout is sign, biased exponent, mantissa.
    real, whole = (np.float32, np.int32) if x == types.float32 else (np.float64, np.int64)
    mantissa, bias, log_terms, exp_terms = (23, 127, 5, 9) if x == types.float32 else (52, 1023, 11, 15)
    unit = whole(bias << mantissa)  # the bits of 1
    # Adding this to the bits makes the exponent field round at √½ · 2^e instead of at 2^e, so m lies in [√½, √2).
    from_half_root = whole(unit - real(math.sqrt(0.5)).view(whole))
    shift, nearest = whole(mantissa), real(1.5 * 2.0**mantissa)
    # The highest coefficient of the exponential series; the loop derives the lower ones from it.
    last = math.log(2) ** (exp_terms - 1) / math.factorial(exp_terms - 1)

    def power(x, short, rest):
        bits = real(x).view(whole)
        # The biased exponent e + bias of x = 2^e m.
        biased = whole(whole(bits + from_half_root) >> shift)
        m = whole(whole(bits - whole(biased << shift)) + unit).view(real)
        e = real(biased) - real(bias)
        s = (m - real(1)) / (m + real(1))
        series = real(0)
        for i in range(log_terms - 1, -1, -1):
            series = series * (s * s) + real(2 / math.log(2) / (2 * i + 1))
        # `series` has the even powers of s only, from log m = 2 artanh(s).
        log_m = s * series
        # q log₂ x = short·e + remainder: the first product is exact, so that the integer part cancels without error
        # below.
        remainder = short * log_m + rest * (e + log_m)
        # Clamped to the exponents of normal numbers, so that the shift below cannot run into the sign bit.
        y = min(max(short * e + remainder, real(1 - bias)), real(bias + 0.25))
        shifted = y + nearest  # the last bits are the nearest integer n
        n = shifted - nearest
        # |f| ≤ ½ within the clamped range; outside of it the bound of 1 only keeps the series finite.
        f = min(max((short * e - n) + remainder, real(-1)), real(1))
        coefficient = last  # of the exponential series, ln(2)^i / i!
        exponential = real(coefficient)
        for i in range(exp_terms - 1, 1, -1):
            coefficient = coefficient * (i / math.log(2))
            exponential = exponential * f + real(coefficient)
        exponential = exponential * f + real(1)
        # The low bits of `shifted` are n; added to the exponent field they multiply by 2^n.
        scaled = whole(real(exponential).view(whole) + whole(real(shifted).view(whole) << shift)).view(real)
        return real(0) if x < real(2.0 ** (1 - bias)) else scaled

    return power


class ColumnKernels(NamedTuple):
    """The kernels of one column rule for blocks of size b, on contiguous arrays (N,b,b); a call takes i0 … i1 − 1.

    p − 1 and 1/p − 1 are each given as leading bits and remainder (`_power`).

    - forward(A, y, norms, *powers, i0, i1): writes y (N,b,b), and norms (N,b) of the columns that are divided.
    - backward(y, norms, dy, dA, *powers, i0, i1): writes dA (N,b,b).
    """

    forward: Kernel
    backward: Kernel


@lru_cache
def kernels(rule: str, b: int) -> ColumnKernels:
    """Return the kernels for "clip" or "paper" and blocks of size b, constants to the compiler (see `compiled`)."""
    is_centred = rule == "paper"

    @kernel("contract")
    def forward(A, y, norms, short, rest, short_root, rest_root, i0, i1):
        lanes, one = A.shape[2], A.dtype.type(1)
        powers, divisors = np.empty(_TOGETHER * b * b, A.dtype), np.empty(b, A.dtype)
        for start in range(i0, i1, _TOGETHER):
            end = min(start + _TOGETHER, i1)
            out, norm = y[start:end], norms[start:end]
            # Under "paper" the output array holds the centred columns until they are divided.
            c = out if is_centred else A[start:end]
            if is_centred:
                for n in range(end - start):
                    for j in range(lanes):
                        total = A.dtype.type(0)
                        for i in range(b):
                            total += A[start + n, i, j]
                        for i in range(b):
                            out[n, i, j] = A[start + n, i, j] - total / A.dtype.type(b)
            flat, sums = c.reshape(-1), norm.reshape(-1)
            for k in range(flat.size):
                # One loop over all numbers of several blocks, without branches, so that the compiler can use vector
                # instructions.
                powers[k] = abs(flat[k]) * _power(abs(flat[k]), short, rest)
            for n in range(end - start):
                # Sums over rows run in the order of rows for each column, one vector lane per column.
                for j in range(lanes):
                    total = powers[n * b * b + j]
                    for i in range(1, b):
                        total += powers[(n * b + i) * b + j]
                    norm[n, j] = total
            for k in range(sums.size):
                # N^(1/p) = S · S^(1/p − 1) for the sum S of powers.
                sums[k] = sums[k] * _power(sums[k], short_root, rest_root)  # NaN, too, if the sum is
            for n in range(end - start):
                largest = norm[n, 0]
                for j in range(b):
                    if norm[n, j] > largest or norm[n, j] != norm[n, j]:
                        largest = norm[n, j]
                    # "clip" divides by max(1, norm). A NaN norm is not at most 1, so it is the divisor, and the
                    # column becomes NaN.
                    divisors[j] = one if norm[n, j] <= one else norm[n, j]
                for j in range(lanes):
                    divisor = largest if is_centred else divisors[j]
                    for i in range(b):
                        out[n, i, j] = c[n, i, j] / divisor

    @kernel("contract")
    def backward(y, norms, dy, dA, short, rest, i0, i1):
        lanes, one, zero = y.shape[2], y.dtype.type(1), y.dtype.type(0)
        powers = np.empty(_TOGETHER * b * b, y.dtype)
        dots, factors, divisors = np.empty(b, y.dtype), np.empty(b, y.dtype), np.empty(b, y.dtype)
        for start in range(i0, i1, _TOGETHER):
            end = min(start + _TOGETHER, i1)
            flat = y[start:end].reshape(-1)
            for k in range(flat.size):
                # sgn(y)|y|^(p−1), the derivative of the norm by an entry of the column.
                powers[k] = math.copysign(_power(abs(flat[k]), short, rest), flat[k])
            for n in range(start, end):
                for j in range(lanes):
                    total = zero
                    for i in range(b):
                        total += y[n, i, j] * dy[n, i, j]
                    dots[j] = total
                # The largest column divides all under "paper"; several share the gradient.
                largest, total, n_largest = norms[n, 0], zero, zero
                for j in range(b):
                    if norms[n, j] > largest or norms[n, j] != norms[n, j]:
                        largest = norms[n, j]
                for j in range(b):
                    total += dots[j]
                    n_largest += norms[n, j] == largest
                for j in range(b):
                    if is_centred:
                        # d(c/d) = dc/d − y·dd/d: every entry of the block depends on the largest norm, so its factor
                        # is the whole sum Σ y·dy.
                        factors[j], divisors[j] = total / n_largest if norms[n, j] == largest else zero, largest
                    else:
                        # Under "clip" a column depends on its own norm alone, and not on it at all below 1.
                        factors[j] = zero if norms[n, j] < one else dots[j]
                        divisors[j] = one if norms[n, j] <= one else norms[n, j]
                for j in range(lanes):
                    total = zero
                    for i in range(b):
                        value = dy[n, i, j] - factors[j] * powers[((n - start) * b + i) * b + j]
                        dA[n, i, j] = value / divisors[j]
                        total += dA[n, i, j]
                    # The transpose of subtracting the column's mean subtracts the mean of the gradient.
                    if is_centred:
                        for i in range(b):
                            dA[n, i, j] -= total / y.dtype.type(b)

    return ColumnKernels(forward, backward)


_PASSES = 8  # multiplications that the work on a number is worth, about


def takes(A: Tensor) -> bool:
    """Return whether the kernels support the device, dtype and block size of A (…, b, b)."""
    return A.device.type == "cpu" and A.dtype in DTYPES and A.shape[-1] >= 1


def fused(A: Tensor, rule: str, p: float) -> Tensor:
    """Apply "clip", "paper" or "none" by kernels, in one pass over A each way: (…, b, b) -> (…, b, b).

    Differentiable once. Raises `UnsupportedFormat` for a device, dtype or block size that the kernels do not take.
    """
    if not takes(A):
        raise UnsupportedFormat(
            f"blocks of size {A.shape[-1]}, {str(A.dtype).removeprefix('torch.')} on {A.device}: the fused column "
            'rules take float32 or float64 on the CPU, size 1 or more; convert them, or choose method="reference"'
        )
    return A if rule == "none" else _Normalise.apply(A, rule, bounded(p))  # type: ignore[no-any-return]


class _Normalise(Function):
    @staticmethod
    def forward(ctx: Context, A: Tensor, rule: str, p: float) -> Tensor:
        ctx.kernels, ctx.powers = kernels(rule, A.shape[-1]), _split(p - 1, A.dtype)
        blocks = A.reshape(-1, *A.shape[-2:]).contiguous()
        y, norms = torch.empty_like(blocks), blocks.new_empty(blocks.shape[:-1])
        _share(ctx.kernels.forward, (blocks, y, norms), (*ctx.powers, *_split(1 / p - 1, A.dtype)))
        ctx.save_for_backward(y, norms)
        return y.view(A.shape)

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Context, dy: Tensor) -> tuple[Tensor | None, ...]:
        y, norms = ctx.saved_tensors
        dA = torch.empty_like(y)
        _share(ctx.kernels.backward, (y, norms, dy.reshape(y.shape).contiguous(), dA), ctx.powers)
        return dA.view(dy.shape), None, None


def _split(q: float, dtype: torch.dtype) -> list[Any]:
    """Return leading bits of q, few enough for exact products with exponents, and the remainder, in the dtype."""
    exact = torch.tensor(q, dtype=torch.float64)
    # bfloat16 has 8 significant bits and an exponent of float32 at most 8 more; float32 has 24 and float64's exponent
    # 11.
    short = exact.to(torch.bfloat16 if dtype == torch.float32 else torch.float32)
    return [*torch.stack([short, exact - short]).to(dtype).numpy()]


def _share(kernel: Kernel, tensors: Sequence[Tensor], powers: Sequence[Any]) -> None:
    blocks = tensors[0]
    share(kernel, tensors, cuts(len(blocks), thread_count(blocks.numel() * _PASSES)), *powers)


METHODS = {"reference": reference, "fused": fused}
"""The implementations of "clip", "paper" and "none" by name: plain torch, and compiled kernels."""
