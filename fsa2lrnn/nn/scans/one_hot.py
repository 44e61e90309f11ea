"""The scan of one-hot transitions by letter, computed from their logits: states are indices, and no matrix is formed.

The forward pass is a lookup, x_k = e_{f(a_k, q_{k−1})}. The backward pass is one, too: with e_k the gradient of the
loss with respect to x_k,

    g_k = e_k + A_{k+1}ᵀ g_{k+1},    (A_{k+1}ᵀ g)[j] = g[f(a_{k+1}, j)].

The gradient of A(a) is the sum of g_k in the column q_{k−1}, over every k with a_k = a. The softmax of the
straight-through rule is applied once to these sums. So each token costs H·b operations, not H·b², and the result is
that of `scan_tokens` with `normalise(logits, "onehot")`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.nn.compiled import DTYPES, at_once, cuts, thread_count, typed_once_differentiable
from fsa2lrnn.nn.normalise import TEMPERATURE

_PASSES = 4  # multiplications that an entry of a state is worth, about


def takes(index: Tensor, logits: Tensor, state: Tensor) -> bool:
    """Return whether the kernels support device and dtype, and states are one-hot: (B,T), (N,H,b,b), (B,H,b)."""
    if any(tensor.device.type != "cpu" for tensor in (index, logits, state)):
        return False
    return logits.dtype in DTYPES and state.dtype == logits.dtype and _is_one_hot(state)


def hard_scan(index: Tensor, logits: Tensor, state: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """Return x_1 … x_T with A(a) = `one_hot_columns(logits[a])`, v = 0: (B,T), (N,H,b,b), one-hot (B,H,b) -> (B,T,H,b).

    Differentiable once, in the logits and in the state. Raises `UnsupportedFormat` unless `takes`.

    >>> swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).reshape(1, 1, 2, 2)
    >>> hard_scan(torch.tensor([[0, 0, 0]]), swap, torch.tensor([[[1.0, 0.0]]])).argmax(-1).flatten().tolist()
    [1, 0, 1]
    """
    if not takes(index, logits, state):
        raise UnsupportedFormat(
            f"logits {str(logits.dtype).removeprefix('torch.')} on {logits.device}, states "
            f"{str(state.dtype).removeprefix('torch.')} on {state.device}: the hard scan takes float32 or float64 on "
            "the CPU, the same for both, and one-hot states; use scan_tokens"
        )
    return _HardScan.apply(index, logits, state, temperature)  # type: ignore[no-any-return]


def _is_one_hot(state: Tensor) -> bool:
    return bool(((state != 0).sum(-1) == 1).all() and (state.amax(-1) == 1).all()) if state.numel() else True


class _HardScan(Function):
    @staticmethod
    def forward(ctx: Any, index: Tensor, logits: Tensor, state: Tensor, temperature: float) -> Tensor:
        (batch, length), (heads, b) = index.shape, state.shape[1:]
        rows = logits.detach().argmax(-2)  # (N, H, b)
        states = torch.empty(batch, length + 1, heads, dtype=torch.int64)
        states[:, 0] = state.detach().argmax(-1)
        x = state.new_empty(batch, length, heads, b)
        arrays = [tensor.numpy() for tensor in (index.contiguous(), rows, states, x)]
        n_threads = thread_count(x.numel())
        at_once([partial(_forward, *arrays, *part) for part in cuts(batch, n_threads)], n_threads)
        ctx.save_for_backward(index, rows, states, logits)
        ctx.temperature = temperature
        return x

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dx: Tensor) -> tuple[Tensor | None, ...]:
        index, rows, states, logits = ctx.saved_tensors
        batch, _, heads, b = dx.shape
        # The gradient of A(a) is summed transposed, so that the entries of one column of A are neighbours in memory.
        of_columns = torch.zeros(*rows.shape, b, dtype=dx.dtype)  # (N, H, column, row)
        of_state = torch.zeros(batch, heads, b, dtype=dx.dtype)
        arrays = [tensor.numpy() for tensor in (index.contiguous(), rows, states, dx.contiguous())]
        n_threads = thread_count(dx.numel() * _PASSES)
        results = of_columns.numpy(), of_state.numpy()
        # Threads divide the heads, not the words: all words add to the same table, and heads do not share an entry of
        # it.
        at_once([partial(_backward, *arrays, *results, *part) for part in cuts(heads, n_threads)], n_threads)
        of_logits = _through_softmax(logits, of_columns.mT, ctx.temperature) if ctx.needs_input_grad[1] else None
        return None, of_logits, of_state, None


def _through_softmax(logits: Tensor, gradient: Tensor, temperature: float) -> Tensor:
    p = (logits / temperature).softmax(-2)
    # The Jacobian of a softmax over rows, p_i (δ_ij − p_j) / temperature, is applied without forming it.
    weighted = p * gradient
    return weighted.addcmul_(p, weighted.sum(-2, keepdim=True), value=-1).div_(temperature)


@njit(cache=True, nogil=True)
def _forward(index, rows, states, x, first, last):
    """Write states (B,T+1,H), of which the first are set, and x (B,T,H,b), for the words first … last − 1."""
    _, length, heads, _ = x.shape
    for i in range(first, last):
        x[i] = 0
        for h in range(heads):
            q = states[i, 0, h]
            for k in range(length):
                # `rows[a, h, j]` is the row of the 1 in column j of A(a): the next state after j.
                q = rows[index[i, k], h, q]
                states[i, k + 1, h] = q
                x[i, k, h, q] = 1


@njit(cache=True, nogil=True)
def _backward(index, rows, states, dx, of_columns, of_state, first, last):
    """Add to of_columns (N,H,b,b), whose rows are A's columns; write of_state (B,H,b), for heads first … last − 1."""
    batch, length, heads, b = dx.shape
    flat_rows, flat_dx, flat_columns = rows.reshape(-1), dx.reshape(-1), of_columns.reshape(-1)
    g, after = np.empty(b, dx.dtype), np.empty(b, dx.dtype)
    for h in range(first, last):
        for i in range(batch):
            g[:] = 0
            for k in range(length - 1, -1, -1):
                # Offsets into the flat arrays: the map of this letter and head, and the gradient of this step's
                # state.
                map_at, dx_at = (index[i, k] * heads + h) * b, ((i * length + k) * heads + h) * b
                # Only the column of the state before the letter had an effect on x_k, so only this column gets a
                # gradient.
                column_at = (map_at + states[i, k, h]) * b
                for j in range(b):
                    y = g[j] + flat_dx[dx_at + j]
                    after[j] = y
                    flat_columns[column_at + j] += y
                for j in range(b):
                    # A_kᵀ g has at j the entry of g at the row to which column j leads: a lookup instead of a
                    # product.
                    g[j] = after[flat_rows[map_at + j]]
            of_state[i, h] = g
