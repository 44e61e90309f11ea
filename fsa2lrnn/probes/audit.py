"""Prove a computation exact, by watching every torch operation and bounding the bits of every intermediate result.

Theorem (dyadic sums). Let the terms of a sum be integer multiples of u = 2^e with Σ|terms| ≤ 2^p u. Then every partial
sum, in every order and grouping and with or without fused multiplication, is a multiple of u of at most 2^p u: a format
with p significant bits represents it exactly (within its exponent range), so no operation rounds and the result is one
value. `Audit` verifies the premise for every sum and product that a program computes, and for exponentials that their
arguments are 0 or so negative that the result is 0. The program's inputs are float64, wide enough that the program
itself is exact while it is watched, and its backward pass is watched as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

BITS = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}
SUM_BITS = 24  # matrix products accumulate in float32
# Below this argument exp rounds to 0 in float32, after a conversion to base 2 as well: exp(−104) < 2⁻¹⁵⁰, half of the
# least subnormal number. The forms, which run in float64, return 0 there (`forms.exp`).
ZERO_BELOW = -104.0

# Operations whose results contain only entries of their arguments, up to sign, and zeros and ones.
_COPIES = frozenset(
    """
    _to_copy _unsafe_view alias arange as_strided bitwise_and bitwise_not cat clone constant_pad_nd copy_ detach
    diag_embed diagonal_copy empty empty_like empty_strided eq expand eye fill_ flip full full_like ge gt index
    index_put_ index_select le lift_fresh logical_and logical_not lt masked_fill masked_fill_ movedim narrow ne neg
    new_empty new_empty_strided new_full new_ones new_zeros ones ones_like permute repeat roll scalar_tensor scatter
    select select_backward select_scatter slice slice_backward slice_scatter split split_with_sizes squeeze stack t
    transpose tril tril_ triu triu_ unbind unfold unsqueeze view where zero_ zeros zeros_like diagonal gather
    reshape
    """.split()  # noqa: SIM905
)  # fmt: skip
_ENTRYWISE = frozenset(("mul", "mul_", "exp", "exp2"))


class InexactProbe(ValueError):
    """Raised for inputs on which an operation may round; the message names the operation."""


def significant_bits(x: Tensor) -> Tensor:
    """Return the number of significant bits that each entry of a finite float64 tensor needs: int, the same shape.

    >>> significant_bits(torch.tensor([0.0, 1.0, 1.5, 5.0], dtype=torch.float64)).tolist()
    [0, 1, 2, 3]
    """
    mantissa = (torch.frexp(x).mantissa * 2.0**53).to(torch.int64)
    # The lowest bit that is set; the significant bits reach from it to the highest, which is bit 52.
    lowest = (mantissa & -mantissa).clamp(min=1).double()
    return torch.where(mantissa == 0, 0, 54 - torch.frexp(lowest).exponent)


def unit(x: Tensor) -> float:
    """Return the largest power of two of which every entry of a finite float64 tensor is a multiple; 1 for zeros."""
    mantissa, exponent = torch.frexp(x)
    whole = (mantissa * 2.0**53).to(torch.int64)
    lowest = torch.frexp((whole & -whole).clamp(min=1).double()).exponent - 1
    exponents = torch.where(whole == 0, 1024, exponent - 53 + lowest)
    least = int(exponents.min()) if exponents.numel() else 1024
    return 1.0 if least == 1024 else 2.0**least


class Audit(TorchDispatchMode):
    """A context that watches all torch operations and raises `InexactProbe` at the first that may round.

    Args:
        dtype: the format in which a kernel may store any intermediate tensor.
        sums: the number of significant bits of accumulators; `None` for that of the dtype.

    Attributes:
        operations: the number of operations that were checked.
        bits: the largest number of significant bits that a stored entry needed.
        sum_bits: the largest number of bits that a sum may need, over all orders.
    """

    def __init__(self, dtype: torch.dtype, sums: int | None = SUM_BITS) -> None:
        super().__init__()
        self.dtype, self.limit = dtype, BITS[dtype]
        self.sums = sums or BITS[dtype]
        self.operations, self.bits, self.sum_bits = 0, 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        with _disable_current_modes():
            self._check(name, args, out)
        return out

    def _check(self, name: str, args: Sequence[Any], out: object) -> None:
        floats = [t for t in tree_leaves(out) if isinstance(t, Tensor) and t.is_floating_point()]
        if name in _COPIES or not floats:
            return
        self.operations += 1
        first = args[0].detach() if isinstance(args[0], Tensor) else args[0]
        if name in ("exp", "exp2") and bool((inexact := (first != 0) & (first >= ZERO_BELOW)).any()):
            raise InexactProbe(f"{name} of {float(first[inexact][0])}: not 0 and not below {ZERO_BELOW:.0f}")
        for result in floats:
            self._stored(name, result.detach())
        if name in ("sum", "cumsum"):
            # The sum of absolute values bounds all partial sums, and all terms are multiples of the unit: no order
            # rounds if the quotient fits.
            self._sum(name, first.abs().sum(*args[1:2]), unit(first))
        elif name in ("mm", "bmm", "dot", "mv"):
            second = args[1].detach()
            self._sum(name, getattr(torch, name)(first.abs(), second.abs()), unit(first) * unit(second))
        elif name in ("add", "add_", "sub", "sub_", "rsub"):
            second = torch.as_tensor(args[1], dtype=torch.float64).detach()
            self._sum(name, first.abs() + second.abs(), min(unit(first), unit(second)))
        elif name == "scatter_add":
            added = args[3].detach()
            self._sum(name, first.abs().scatter_add(args[1], args[2], added.abs()), min(unit(first), unit(added)))
        elif name not in _ENTRYWISE:
            raise InexactProbe(f"{name} is not an operation that the audit can prove exact: write the form without it")

    def _stored(self, name: str, x: Tensor) -> None:
        if x.dtype != torch.float64:
            raise InexactProbe(f"{name} returned {x.dtype}: the audit needs float64 throughout")
        if not bool(x.isfinite().all()):
            raise InexactProbe(f"{name} returned an infinity or NaN")
        if not x.numel():
            return
        size, info = x.abs(), torch.finfo(self.dtype)
        bits = int(significant_bits(x).max())
        least = float(torch.where(size == 0, 1.0, size).min())
        if bits > self.limit or float(size.max()) > info.max or least < info.smallest_normal:
            raise InexactProbe(f"a result of {name} needs {bits} significant bits, and {self.dtype} has {self.limit}")
        self.bits = max(self.bits, bits)

    def _sum(self, name: str, total: Tensor, step: float) -> None:
        bits = float(total.max()) / step if total.numel() else 0.0
        needed = max(0, (int(bits) - 1).bit_length())
        if bits > 2.0**self.sums:
            raise InexactProbe(
                f"a sum in {name} may need {needed} bits in some order, and accumulators have {self.sums}"
            )
        self.sum_bits = max(self.sum_bits, needed)
