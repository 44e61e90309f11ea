"""One-hot columns with a gradient: forward the largest entry of each column, backward a softmax (straight-through).

The value is a column one-hot matrix, in training as in evaluation, so nothing that judges a model has to switch
anything; only the gradient knows of the softmax. Columns of norm 1 for every p: they lie in the paper's class (Eq. 6).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.errors import UnsupportedFormat

TEMPERATURE = 0.4
"""Of the softmax whose gradient the rule "onehot" takes."""


def one_hot_columns(logits: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """e_i in column j, i the first row with the largest entry: (…, b, b) -> (…, b, b).

    The gradient is that of softmax(logits / temperature) in the same place. An entry that is no number counts as the
    largest, so that the value is one-hot whatever the entries.

    >>> one_hot_columns(torch.tensor([[0.0, 2.0], [1.0, 2.0]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return _hard(logits, logits.argmax(-2, keepdim=True), -2, temperature)


def one_hot_rows(logits: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """The same along the last axis, for a start state: (…, b) -> (…, b)."""
    return _hard(logits, logits.argmax(-1, keepdim=True), -1, temperature)


def check_temperature(temperature: float) -> None:
    """Raises `UnsupportedFormat` for what is no finite number above 0."""
    if type(temperature) not in (int, float) or not 0 < temperature < float("inf"):
        raise UnsupportedFormat(f"temperature = {temperature!r}: a softmax needs a finite one above 0")


def _hard(logits: Tensor, largest: Tensor, dim: int, temperature: float) -> Tensor:
    hard = torch.zeros_like(logits, requires_grad=False).scatter_(dim, largest, 1)
    if not logits.requires_grad:
        return hard
    return straight_through(hard, (logits / temperature).softmax(dim))


def straight_through(value: Tensor, carrier: Tensor) -> Tensor:
    """Return the value, with the gradient of the carrier."""
    return _ValueOf.apply(value, carrier)  # type: ignore[no-any-return]


class _ValueOf(Function):
    """The value of the first argument; the gradient goes to the second."""

    @staticmethod
    def forward(_ctx: Any, value: Tensor, _carrier: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] - the names are the caller's
        _ctx: Any, *gradients: Tensor
    ) -> tuple[None, Tensor]:
        return None, gradients[0]
