"""Gradients without gradients of their own, as those of compiled loops are."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.autograd.function import once_differentiable

Backward = Callable[..., tuple[Tensor | None, ...]]


def typed_once_differentiable(backward: Backward) -> Backward:
    """torch's `once_differentiable` for the backward (ctx, gradients) of a `Function`: a second derivative is refused.

    torch's own hides the parameters' names from type checkers, to which the method is then none of a `Function`.

    >>> import torch
    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     @typed_once_differentiable
    ...     def backward(ctx, dy):
    ...         return (2 * ctx.saved_tensors[0] * dy,)
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(Square.apply(x), x)[0].item()
    6.0
    """
    return once_differentiable(backward)
