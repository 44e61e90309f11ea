"""Sets of model states as zonotopes, and their images under gates, column rules, products and LayerNorm.

A zonotope is {mid + shared·ε + e : |ε_k| ≤ 1, |e| ≤ own}: numbers that depend on common unknowns ε, each with an error
of its own. Images keep the coefficients of ε, so that the differences and products of numbers that depend on the same
state remain tight (affine arithmetic: Comba and Stolfi, 1993). What is not linear is enclosed between two parallel
lines, and the distance of these, like all rounding, is added to `own`. Rounding is bounded as in `rounded_numbers`,
whose operations apply where this module has none of its own; they forget ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fsa2lrnn.checker.rounding import FloatFormat
from fsa2lrnn.nn.affine import EPS
from fsa2lrnn.nn.rounded_numbers import RoundedNumbers, both, floor_of, moments_fit, norm_bounds

_SLIP = 2.0**-40  # relative, of a sum of up to 2^12 products of coefficients in float64
_OUTWARD = 1 + 2.0**-30
_LEAST_NORM = 1e-12  # that keys are divided by
_ZERO, _LARGE = 1e-300, 1e300


@dataclass(frozen=True, eq=False)
class Zonotopes(RoundedNumbers):
    """Numbers that every evaluation in a format computes within `own` of mid + shared·ε, for one ε in [−1, 1]^g.

    `off` bounds the whole distance from `mid`, so that every operation of the base class is sound.

    Args:
        shared: float64 (…, g), the coefficients of ε.
        own: float64 (…).

    >>> x = Zonotopes.boxes(torch.tensor([[1.0]]).double(), torch.tensor([[0.5]]).double(), FloatFormat.of("float32"))
    >>> float((x - x).off) < 1e-6, float((x * x).off) < 1.26
    (True, True)
    """

    shared: Tensor
    own: Tensor

    @classmethod
    def boxes(cls, mid: Tensor, radius: Tensor, kind: FloatFormat) -> Zonotopes:
        """Return the boxes |x − mid| ≤ radius, with one ε for each coordinate: float64 (N, W) twice."""
        return cls(mid, radius, kind, torch.diag_embed(radius), torch.zeros_like(mid))

    @classmethod
    def joined(cls, parts: Sequence[Zonotopes], dim: int = -1) -> Zonotopes:
        """Return the numbers of several zonotopes of the same ε, concatenated along an axis counted from the end."""
        mid, off, own = (torch.cat([getattr(part, name) for part in parts], dim) for name in ("mid", "off", "own"))
        return cls(mid, off, parts[0].kind, torch.cat([part.shared for part in parts], dim - 1), own)

    def like(self, other: RoundedNumbers) -> Zonotopes:
        """Return numbers as zonotopes with the ε of these, on which they may not depend."""
        if isinstance(other, Zonotopes):
            return other
        # A number without ε has zero coefficients, and its whole distance from `mid` is its own.
        none = self.mid.new_zeros(()).expand(*other.mid.shape, self.shared.shape[-1])
        return Zonotopes(other.mid, other.off, other.kind, none, other.off)

    def _with(self, mid: Tensor, shared: Tensor, own: Tensor) -> Zonotopes:
        # The factor covers the rounding of this computation in float64. `of` gives up numbers that may overflow.
        own = own * _OUTWARD
        whole = self.of(mid, shared.abs().sum(-1) + own)
        is_bounded = whole.off.isfinite()
        return Zonotopes(
            whole.mid, whole.off, self.kind, shared.where(is_bounded[..., None], 0), own.where(is_bounded, torch.inf)
        )

    def _each(self, change: Callable[[Tensor], Tensor], of_shared: Callable[[Tensor], Tensor]) -> Zonotopes:
        return Zonotopes(change(self.mid), change(self.off), self.kind, of_shared(self.shared), change(self.own))

    def where(self, mask: Tensor) -> Zonotopes:
        return self._each(lambda x: x.where(mask, 0), lambda x: x.where(mask[..., None], 0))

    def unflatten(self, sizes: tuple[int, ...]) -> Zonotopes:
        return self._each(lambda x: x.unflatten(-1, sizes), lambda x: x.unflatten(-2, sizes))

    def flatten(self) -> Zonotopes:
        """Return the same numbers with the last two axes as one."""
        return self._each(lambda x: x.flatten(-2), lambda x: x.flatten(-3, -2))

    def __getitem__(self, key: object) -> Zonotopes:
        whole = key if isinstance(key, tuple) else (key, ...)
        return self._each(lambda x: x[whole], lambda x: x[(*whole, slice(None))])  # type: ignore[index]

    def scaled(self, factor: float) -> Zonotopes:
        # _SLIP times the sizes bounds the rounding of the coefficients of ε, which float64 computes here.
        own = self.own * abs(factor) + _SLIP * self.off * abs(factor) + self.scale_rounding(factor)
        return self._with(self.mid * factor, self.shared * factor, own)

    def linear(self, W: Tensor, b: Tensor) -> Zonotopes:
        W, b = W.detach().cpu().double(), b.detach().cpu().double()
        own = self.own + _SLIP * self.off
        return self._with(self.mid @ W.T + b, W @ self.shared, own @ W.abs().T + self.linear_rounding(W, b))

    def relu(self) -> Zonotopes:
        low, high = self.mid - self.off * _OUTWARD, self.mid + self.off * _OUTWARD
        is_bent = (low < 0) & (high > 0)
        # T60: between its ends relu lies between slope·x and slope·x − slope·low. The middle line is used, in error
        # by half the gap.
        slope = torch.where(is_bent, high / (high - low), (low >= 0).double())
        gap = torch.where(is_bent, -slope * low / 2, 0)  # the positive part is at most this from slope·x + gap
        own = slope * self.own + gap + torch.where(is_bent, _SLIP * self.size, 0)
        return self._with(slope * self.mid + gap, slope[..., None] * self.shared, own)

    def __mul__(self, other: RoundedNumbers) -> Zonotopes:
        right = self.like(other)
        # T60: (m + Gε)(m' + G'ε) without its quadratic part, which is at most off·off' and goes to `own`.
        shared = self.mid[..., None] * right.shared + right.mid[..., None] * self.shared
        own = self.mid.abs() * right.own + self.own * right.mid.abs() + self.off * right.off
        slip = _SLIP * (self.size * right.off + self.off * right.size)
        return self._with(self.mid * right.mid, shared, own + slip + self.product_rounding(right))

    def __rmul__(self, other: RoundedNumbers) -> Zonotopes:
        return self * other

    def __add__(self, other: RoundedNumbers) -> Zonotopes:
        right = self.like(other)
        own = self.own + right.own + _SLIP * (self.off + right.off)
        # The format and float64 each round the sum once, by a unit of its size.
        own = own + both(self.kind) * (self.size + right.size) + 2 * self.kind.tiny
        return self._with(self.mid + right.mid, self.shared + right.shared, own)

    def __sub__(self, other: RoundedNumbers) -> Zonotopes:
        return self + self.like(other)._negated()

    def __rsub__(self, other: RoundedNumbers) -> Zonotopes:
        return self.like(other) + self._negated()

    def _negated(self) -> Zonotopes:
        return Zonotopes(-self.mid, self.off, self.kind, -self.shared, self.own)

    def __matmul__(self, other: RoundedNumbers) -> Zonotopes:
        right = self.like(other)
        # As for a product of two numbers, entry by entry: i and k are the axes of the result, j the summed one, g
        # that of ε.
        shared = torch.einsum("...ij,...jkg->...ikg", self.mid, right.shared)
        shared = shared + torch.einsum("...ijg,...jk->...ikg", self.shared, right.mid)
        own = self.mid.abs() @ right.own + self.own @ right.mid.abs() + self.off @ right.off
        slip = _SLIP * (self.size @ right.off + self.off @ right.size)
        return self._with(self.mid @ right.mid, shared, own + slip + self.products_rounding(right))

    def __rmatmul__(self, other: RoundedNumbers) -> Zonotopes:
        return self.like(other) @ self

    def normalised(self) -> Zonotopes:
        columns = self[..., None]
        return (columns * columns._inverse_norms(2.0, floor_of(_LEAST_NORM, self.kind)))[..., 0]

    def columns(self, rule: str, p: float) -> RoundedNumbers:
        if rule == "none":
            return self
        if rule == "clip":
            # The rule divides by max(1, norm). Where the upper bound of the norm is at most 1, every evaluation keeps
            # the column.
            is_unchanged = (norm_bounds(self, p)[2] <= 1).expand_as(self.mid)  # division by 1 is exact
            return self._chosen(is_unchanged, self * self._inverse_norms(p, 1.0))
        centred = self.centred()
        low, _, high = norm_bounds(centred, p)
        # The block is divided by its largest column norm. If one column's lower bound exceeds all other upper bounds,
        # that column has it in all states of the set, and its coefficients of ε can be kept.
        first = low.argmax(-1, keepdim=True)
        is_largest = high.scatter(-1, first, 0).amax(-1, keepdim=True) <= low.gather(-1, first)  # (…, 1, 1)
        scales = centred._inverse_norms(p, 0.0)
        at = first[..., None].expand(*first.shape, self.shared.shape[-1])
        scale = scales._each(lambda x: x.gather(-1, first), lambda x: x.gather(-2, at))
        # Otherwise only an interval of the divisor is known, without ε.
        bounds = 1 / high.amax(-1, keepdim=True), 1 / low.amax(-1, keepdim=True)
        unsure = self._with(
            (bounds[0] + bounds[1]) / 2, 0 * scale.shared, (bounds[1] - bounds[0]) / 2 + _SLIP * bounds[1]
        )
        return centred * scale._chosen(is_largest, unsure)

    def _chosen(self, mask: Tensor, other: Zonotopes) -> Zonotopes:
        """Return these numbers where a mask of their shape is true, and others elsewhere."""
        shared = self.shared.where(mask[..., None], other.shared)
        mid, off, own = (getattr(self, name).where(mask, getattr(other, name)) for name in ("mid", "off", "own"))
        return Zonotopes(mid, off, self.kind, shared, own)

    def centred(self) -> Zonotopes:
        sums = self.size.sum(-2, keepdim=True)
        rounding = (2 * self.mid.shape[-2] + 48) * both(self.kind) * self.size.amax(-2, keepdim=True)
        rounding = self._bounded(rounding, sums)
        own = self.own + self.own.mean(-2, keepdim=True) + rounding + 8 * self.kind.tiny
        # The mean is linear, so its coefficients of ε are the means of the coefficients. The last axis is ε, so the
        # rows are axis −3.
        shared = self.shared - self.shared.mean(-3, keepdim=True)
        return self._with(self.mid - self.mid.mean(-2, keepdim=True), shared, own)

    def layer_norm(self, norm: nn.LayerNorm) -> Zonotopes:
        """Return LayerNorm(x) along the last axis, computed in any of the ways that `ReadoutError` bounds.

        σ √n is the Euclidean norm of the centred entries and √(n ε).
        """
        n, u = self.mid.shape[-1], both(self.kind)
        weight, bias = norm.weight.detach().cpu().double(), norm.bias.detach().cpu().double()
        centred = self[..., None].centred()  # (…, n, 1)
        constant = torch.full_like(centred.mid[..., :1, :], math.sqrt(n * EPS))
        # With √(n ε) as one more entry, LayerNorm's divisor √(var + ε), times √n, is a plain 2-norm.
        extended = Zonotopes.joined([centred, self.like(RoundedNumbers.exact(constant, self.kind))], -2)
        least = norm_bounds(extended, 2.0)[0][..., 0] / math.sqrt(n)
        largest = self.size.amax(-1, keepdim=True)
        # The relative error of the computed variance; below 1/4, that of 1/σ is at most the same plus a few units.
        wrong = ((16 * n + 128) * u * largest * largest + 8 * u * EPS) / (least * least)
        is_known = (wrong < 0.25) & moments_fit(largest, n, self.kind)
        wrong = torch.where(is_known, wrong + 8 * u, torch.inf)  # the relative error of the computed 1/σ
        normed = (centred * extended._inverse_norms(2.0, 0.0))[..., 0].scaled(math.sqrt(n))
        rounding = (2 * n + 48) * u * largest / least + wrong * normed.size + 2.0**44 * self.kind.tiny * largest / least
        own = weight.abs() * (normed.own + rounding + _SLIP * normed.off) + 8 * u * bias.abs()
        own = own + 2.0**13 * self.kind.tiny * (1 + weight.abs())
        own = self._bounded(own, weight.abs() * (normed.size + rounding) + bias.abs())  # these may cancel
        return self._with(normed.mid * weight + bias, normed.shared * weight[:, None], own)

    def _inverse_norms(self, p: float, least: float) -> Zonotopes:
        """Return 1 / max(least, ‖·‖_p) of columns, as evaluated: (…, b, c) -> (…, 1, c).

        The gradient of the norm has the entries sgn(x)(|x| / ‖x‖)^(p − 1); bounds on these over the set bound what the
        norm differs from its linear approximation by (mean value theorem).
        """
        # Three steps: bound the norm, enclose it by a linear function of ε, and enclose 1 / max(least, norm) by a
        # line in the norm.
        low, middle, high = norm_bounds(self, p)
        b, size = self.mid.shape[-2], self.mid.abs()
        slope = (size / middle.clamp(min=_ZERO)).clamp(max=1) ** (p - 1)
        most = ((size + self.off) / low.clamp(min=_ZERO)).clamp(max=1) ** (p - 1)
        fewest = ((size - self.off).clamp(min=0) / high.clamp(min=_ZERO)).clamp(max=1) ** (p - 1)
        # An entry that may change its sign moves the derivative from slope to −most; otherwise it stays within
        # [fewest, most].
        bend = torch.where(size > self.off, torch.maximum(most - slope, slope - fewest), slope + most)
        logs = torch.maximum(high.clamp(min=_ZERO).log().abs(), low.clamp(min=max(least / 2, _ZERO)).log().abs())
        # T27: the relative error of a p-norm of b entries; the second term stands for powers that underflow.
        rounding = 2 * (b + 64 + 2 * logs) * both(self.kind) * high + (b * self.kind.tiny * 2.0**42) ** (1 / p)
        shared = (slope.copysign(self.mid)[..., None] * self.shared).sum(-3, keepdim=True)
        own = (slope * self.own + (bend + _SLIP) * self.off).sum(-2, keepdim=True) + rounding
        norms = self._with(middle, shared, own)
        # Both enclosures of the norm hold, so their intersection does.
        low = torch.maximum(low, norms.mid - norms.off)
        high = torch.maximum(low, torch.minimum(high, norms.mid + norms.off))
        ends = 1 / low.clamp(min=least), 1 / high.clamp(min=least)
        # The chord of 1/max(least, x). In a narrow interval its slope would be a quotient of two rounding errors; 0
        # is valid, too.
        slope = torch.where(high - low > 1e-12 * high, (ends[1] - ends[0]) / (high - low), 0)  # at most 0
        bent = (1 / (-slope).sqrt()).clamp(max=_LARGE)  # where 1/x has that slope
        # The distance of the curve from the chord is extreme at an end, at the kink x = least or where 1/x is
        # parallel to the chord.
        places = [low, high, *(x.clamp(low, high) for x in (torch.full_like(low, least), bent))]
        gaps = torch.stack([1 / x.clamp(min=least) - slope * x for x in places])
        top, bottom = gaps.amax(0), gaps.amin(0)
        # T60: the middle of the two parallel lines is used; half their distance is the error.
        own = slope.abs() * norms.own + (top - bottom) / 2 + _SLIP * (ends[0] + slope.abs() * norms.size)
        if least not in (0.0, 1.0):  # the format rounds the floor
            own = own + 4 * both(self.kind) * ends[0]
        return self._with(slope * norms.mid + (top + bottom) / 2, slope[..., None] * norms.shared, own)
