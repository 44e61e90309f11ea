"""Growth of a block with bounded columns, and overflow of floats (S1, S2 of docs/theory.md, the paper's Eqs. 6, 7).

The bound is b^{1−1/p} per step and is attained, so a column norm with p > 1 guarantees no length. Lengths are computed
twice: exactly, in integers, for real arithmetic, and by running the recurrence in the format.
"""

from __future__ import annotations

from fractions import Fraction

import torch
from torch import Tensor

from fsa2lrnn.nn.normalise import normalise
from fsa2lrnn.nn.scans import scan

FORMATS = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


def growth_bound(b: int, p: float) -> float:
    """Return b^{1−1/p}: no block of size b with columns of p-norm at most 1 stretches a vector by more, in p-norm (S2).

    >>> round(growth_bound(8, 1.2), 3), growth_bound(8, 1)
    (1.414, 1.0)
    """
    return b ** (1 - 1 / p)


def witness(b: int, p: float, centred: bool = False) -> tuple[Tensor, Tensor]:
    """Return a block (b, b) with columns of p-norm 1 and a vector (b,) that it multiplies by `growth_bound(b, p)`.

    Both are float64. A = b^{−1/p} s sᵀ, s = 1; centred, half of s is −1, so that every column has mean zero and unit
    norm, which the published rule leaves unchanged. Raises `ValueError` for a centred witness of odd size.

    >>> A, s = witness(8, 1.2, centred=True)
    >>> bool(torch.allclose(A @ s, growth_bound(8, 1.2) * s)), float(A.sum(0).abs().max())
    (True, 0.0)
    """
    if centred and b % 2:
        raise ValueError(f"b = {b}: the centred witness has as many +1 as −1, give an even size")
    s = torch.ones(b, dtype=torch.float64)
    if centred:
        s[b // 2 :] = -1
    return b ** (-1 / p) * s[:, None] * s[None, :], s


def overflow_length(b: int, p: float, dtype: torch.dtype) -> int | None:
    """Return the first k at which b^{(1−1/p)k}, rounded once, is infinite in `dtype`; None for p = 1, without growth.

    With p = n/d, from its decimal notation, this is the first k with b^{(n−d)k} ≥ limit^n, computed in integers.

    >>> [overflow_length(8, 1.2, dtype) for dtype in FORMATS.values()]
    [32, 256, 256, 2048]
    """
    ratio = Fraction(str(p))
    n, d = ratio.numerator, ratio.denominator
    if n == d or b == 1:
        return None
    limit, step, power, k = overflow_threshold(dtype) ** n, b ** (n - d), 1, 0
    while power < limit:
        power, k = power * step, k + 1
    return k


def overflow_threshold(dtype: torch.dtype) -> int:
    """Return the least number that rounds to infinity: half a unit in the last place above the largest finite one."""
    largest = int(torch.finfo(dtype).max)
    above = 1 << largest.bit_length()
    return largest + (above - largest) // 2


def measured_overflow(
    b: int, p: float, dtype: torch.dtype, rule: str = "clip", longest: int = 4_096, method: str = "sequential"
) -> int | None:
    """Return the first k at which x_k = A x_{k−1} is not finite in `dtype`; None if all `longest` steps are finite.

    A is the witness, centred for the rule "paper", after that rule; x₀ is the vector that it stretches. Every step
    rounds, so in formats of few digits the length may differ from `overflow_length`.
    """
    A, s = witness(b, p, centred=rule == "paper")
    block = normalise(A.to(dtype), rule, p)
    x0 = s.to(dtype)[None]  # (1, b)
    x = scan(block.expand(1, longest, 1, b, b), torch.zeros(1, longest, 1, b, dtype=dtype), x0, method)
    broken = (~x.isfinite()).flatten(2).any(-1)[0].nonzero()
    return int(broken[0]) + 1 if len(broken) else None
