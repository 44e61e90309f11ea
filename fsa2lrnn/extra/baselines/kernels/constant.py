"""Scans with one dense matrix for all letters: x_k = A x_{k−1} + v_k.

`sequential` is the reference. `fused` performs the same steps within one autograd function, so that the gradient of A
is a single product; it needs no compiler and runs on any device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import linear

from fsa2lrnn.lrnn.compiled import typed_once_differentiable
from fsa2lrnn.lrnn.scans import check_method


def scan_constant(A: Tensor, v: Tensor, x0: Tensor, method: str = "auto") -> Tensor:
    """Return all states: A (n, n), v (B, T, n), x0 (B, n) -> x_1 … x_T (B, T, n).

    `method` is one of `METHODS`, or "auto" or "letters" for the fastest one. The result is differentiable, with "fused"
    only once.

    Raises:
        UnsupportedFormat: for an unknown method.

    >>> swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> scan_constant(swap, torch.zeros(1, 3, 2), torch.tensor([[1.0, 2.0]]))[0].tolist()
    [[2.0, 1.0], [1.0, 2.0], [2.0, 1.0]]
    """
    check_method(method, {**METHODS, "letters": None})
    return METHODS["fused" if method in ("auto", "letters") else method](A, v, x0)


def sequential(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute `scan_constant` letter by letter, with autograd."""
    x, states = x0, []
    for v_k in v.unbind(1):
        x = linear(x, A) + v_k
        states.append(x)
    return torch.stack(states, dim=1) if states else v


def fused(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    """Compute `scan_constant` as a single node of the autograd graph."""
    return _Scan.apply(A, v, x0).transpose(0, 1)  # type: ignore[no-any-return]


METHODS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {"sequential": sequential, "fused": fused}


class _Scan(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
        batch, length, n = v.shape
        x = v.new_empty(length + 1, batch, n)  # x_0 … x_T
        x[0], x[1:] = x0, v.transpose(0, 1)
        for k in range(length):
            x[k + 1].addmm_(x[k], A.T)
        ctx.save_for_backward(A, x)
        return x[1:]

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dx: Tensor) -> tuple[Tensor | None, ...]:
        A, x = ctx.saved_tensors
        g = dx.clone(memory_format=torch.contiguous_format)  # of x_1 … x_T
        for k in reversed(range(len(g) - 1)):
            g[k].addmm_(g[k + 1], A)
        dA = g.flatten(0, 1).T @ x[:-1].flatten(0, 1)
        return dA, g.transpose(0, 1), g[0] @ A if len(g) else torch.zeros_like(x[0])
