"""Bounds on the difference between two evaluations of the tables of selective layers (T27 of docs/theory.md)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from fsa2lrnn.nn.rounded_numbers import RoundedNumbers, fits, floor_of

UNIT_EPS = 1e-6  # of the norm that keys and queries are divided by
OPERATIONS = 64  # units in the last place that a few elementary functions in a row cost at most


class RoundedSteps(NamedTuple):
    """Bounds of the steps of a matrix state.

    They are decays, not their logarithms, (…, n, H, K) or (…, n, H, 1), the vectors e of the factors
    diag(decay) − k eᵀ, (…, n, H, K), or None for diagonal factors, keys k (…, n, H, K), and the values written along
    them, (…, n, H, V).
    """

    decay: RoundedNumbers
    erased: RoundedNumbers | None
    k: RoundedNumbers
    v: RoundedNumbers


def shaped(change: Callable[[Tensor], Tensor], x: RoundedNumbers) -> RoundedNumbers:
    """Apply a function that rearranges numbers without computing."""
    return RoundedNumbers(change(x.mid), change(x.off), x.kind)


def stacked(join: Callable[[list[Tensor]], Tensor], *parts: RoundedNumbers) -> RoundedNumbers:
    """Join bounds by a function that copies entries, such as `torch.cat`: no entry rounds."""
    return RoundedNumbers(join([x.mid for x in parts]), join([x.off for x in parts]), parts[0].kind)


def projected(u: RoundedNumbers, weight: Tensor) -> RoundedNumbers:
    """Return bounds of W u."""
    return u.linear(weight, weight.new_zeros(len(weight)))


def with_silu(x: RoundedNumbers) -> RoundedNumbers:
    """Return bounds of x·σ(x)."""
    return x * x.sigmoid()


def tame(function: Callable[[Tensor], Tensor], x: RoundedNumbers) -> RoundedNumbers:
    """Return bounds of a function that changes by at most its argument, and exceeds 1 by at most its argument.

    Such are tanh, sin, cos, softplus, and exp of numbers that are never positive.
    """
    return x.of(function(x.mid), x.off + OPERATIONS * x.kind.u * (1 + x.size))


def softmax(x: RoundedNumbers) -> RoundedNumbers:
    """Return bounds of the softmax p of the last axis.

    p_i is the sigmoid of x_i minus the logarithm of the sum of the others' exponentials. Where no x changes by more
    than m, this difference changes by at most 2m, and p_i by m/2.
    """
    u = (OPERATIONS + x.mid.shape[-1]) * x.kind.u
    return x.of(x.mid.softmax(-1), (x.off.amax(-1, keepdim=True) / 2 + u).expand_as(x.mid))


def softplus_of(x: RoundedNumbers) -> RoundedNumbers:
    """Return bounds of the softplus, which torch replaces by the identity above 20: they differ by less than 3e-9."""
    y = tame(torch.nn.functional.softplus, x)
    return x.of(y.mid, y.off + (x.size > 19) * 3e-9)


def with_unit_norm(x: RoundedNumbers, eps: float = UNIT_EPS) -> RoundedNumbers:
    """Return bounds of x / √(Σ x² + ε): the inverse root changes by at most half of (Σ x² + ε)^(−3/2) times the sum."""
    ones = RoundedNumbers.exact(torch.ones(x.mid.shape[-1], 1), x.kind)
    squares = (x * x) @ ones
    least = floor_of((1 - 4 * x.kind.u) * eps, x.kind)  # of the sum as it is computed
    low = (squares.mid - squares.off + eps).clamp(min=least)
    mid = (squares.mid + eps).rsqrt()
    # The derivative of s^(−½) is −½ s^(−3/2), largest in size at the least sum.
    apart = squares.off / (2 * low**1.5) + OPERATIONS * x.kind.u * low.rsqrt()
    return x * squares.of(mid, apart)


def with_rms_norm(x: RoundedNumbers, eps: float) -> RoundedNumbers:
    """Return bounds of x / √(mean of x² + ε), which is √n x / √(Σ x² + n ε)."""
    n = x.mid.shape[-1]
    return with_unit_norm(x, n * eps).scaled(math.sqrt(n))


def decays(z: RoundedNumbers, scale: Tensor) -> RoundedNumbers:
    """Return bounds of exp(scale·log σ(−z)), scale (H,) > 0, z (…, H): it changes by less than z does.

    With t = scale·log(1 + eᶻ), an error of m units in t changes exp(−t) by m·t·exp(−t) ≤ m/e units.
    """
    c = scale.detach().cpu().double()
    off = torch.where(fits(c, z.kind), z.off + OPERATIONS * z.kind.u, torch.inf)
    return z.of((c * torch.nn.functional.logsigmoid(-z.mid)).exp(), off)


def transition(steps: RoundedSteps) -> tuple[RoundedNumbers, RoundedNumbers]:
    """Return bounds of the tables that `MatrixLayer.tables` forms: (…, H·V, K, K) and (…, H·V, K)."""
    size, rows = steps.k.mid.shape[-1], steps.v.mid.shape[-1]
    A, v = None, None
    for j in range(steps.k.mid.shape[-3]):
        k = steps.k[..., j, :, :]
        factor = shaped(lambda x: torch.diag_embed(x.expand(*x.shape[:-1], size)), steps.decay[..., j, :, :])
        if steps.erased is not None:
            factor = factor - k[..., :, None] * steps.erased[..., j, :, :][..., None, :]
        A = factor if A is None else factor @ A
        written = steps.v[..., j, :, :, None] * k[..., None, :]
        # `RoundedNumbers` has no sum: adding is subtracting the negative, which is exact.
        v = written if v is None else v @ shaped(lambda x: x.mT, factor) - written.scaled(-1)
    assert A is not None
    assert v is not None
    lead = v.mid.shape[:-2]
    of_rows = shaped(lambda x: x.unsqueeze(-3).expand(*lead, rows, size, size).flatten(-4, -3), A)
    return of_rows, shaped(lambda x: x.flatten(-3, -2), v)
