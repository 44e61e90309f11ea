"""The column rules in plain torch: the definition, on any device.

The forward pass of "onehot" is the same in training and in evaluation; its gradient is that of a softmax.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.linalg import vector_norm

from fsa2lrnn.errors import UnsupportedFormat

_STEEPEST = 2.0**100


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


TEMPERATURE = 0.4
"""The default temperature of the softmax that gives the rule "onehot" its gradient."""


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


def check_temperature(temperature: float) -> None:
    """Raise `UnsupportedFormat` unless the temperature is a finite number above 0."""
    if type(temperature) not in (int, float) or not 0 < temperature < float("inf"):
        raise UnsupportedFormat(f"temperature = {temperature!r}: a softmax needs a finite one above 0")


def _hard(logits: Tensor, largest: Tensor, dim: int, temperature: float) -> Tensor:
    hard = torch.zeros_like(logits, requires_grad=False).scatter_(dim, largest, 1)
    if not logits.requires_grad:
        return hard
    return straight_through(hard, (logits / temperature).softmax(dim))


def straight_through(value: Tensor, carrier: Tensor) -> Tensor:
    """Return `value`; the backward pass sends its gradient to `carrier` instead."""
    return _ValueOf.apply(value, carrier)  # type: ignore[no-any-return]


class _ValueOf(Function):
    @staticmethod
    def forward(_ctx: Any, value: Tensor, _carrier: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the names are the caller's
        _ctx: Any, *gradients: Tensor
    ) -> tuple[None, Tensor]:
        return None, gradients[0]
