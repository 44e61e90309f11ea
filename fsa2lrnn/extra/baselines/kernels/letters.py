"""What a linear layer gives out on words of few inputs: y_t = Σ_{l ≤ t} R[i_{t−l}, l], R the response to each input.

Where the inputs are letters, their responses are a small table, and a word's outputs are sums of its rows: no input is
multiplied twice, and no array has a row for each letter of each word but the outputs. `reference` says it in torch;
`fused` is compiled for the CPU, a stretch of neighbouring channels after the other, so that the table stays in the
cache. The gradient of the table is the same walk, adding the other way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.lrnn.autograd import typed_once_differentiable
from fsa2lrnn.lrnn.compiled import takes
from fsa2lrnn.lrnn.compiled.memory import empty
from fsa2lrnn.lrnn.compiled.threads import cuts, share, thread_count
from fsa2lrnn.lrnn.compiled.vectors import Rows, instruction, kernel
from fsa2lrnn.lrnn.compiled.widths import by_width

_WORTH_COMPILING = 1 << 15  # additions, twice; below, no number of calls makes up for seconds of compilation
_LARGEST = 1 << 10  # rows of a table that the cache holds
_LONGEST = 128  # letters of a word whose sums cost less than products do
_WIDE = 4  # vectors of neighbouring channels that are added at once, where there are so many
_SHARES = 4  # of the batch, whose gradients of the table are added up independently of the number of threads


def is_worth_it(index: Tensor, inputs: Tensor) -> bool:
    """Whether `respond` is the fast way: index (B, T), inputs (R, H), on the CPU, and few."""
    (batch, length), (rows, width) = index.shape, inputs.shape
    is_small = 0 < rows * length <= _LARGEST and length <= _LONGEST and 2 * rows <= batch
    return is_small and index.numel() * length * width >= _WORTH_COMPILING and takes(inputs)


def respond(index: Tensor, responses: Tensor) -> Tensor:
    """y_t = Σ_{l ≤ t} R[i_{t−l}, l]: index int64 (B, T), responses (R, T, H) -> (B, T, H).

    >>> respond(torch.tensor([[0, 1, 0]]), torch.tensor([[[1.0], [10.0], [100.0]], [[2.0], [20.0], [200.0]]])).tolist()
    [[[1.0], [12.0], [121.0]]]
    """
    is_large = index.numel() * responses[0].numel() >= _WORTH_COMPILING
    return (fused if is_large and takes(responses) else reference)(index, responses)


def reference(index: Tensor, responses: Tensor) -> Tensor:
    """`respond`, one distance after the other."""
    batch, length = index.shape
    y = responses.new_zeros(batch, length, responses.shape[2])
    for l in range(length):  # noqa: E741 - the index of R
        late = responses[:, l][index[:, : length - l]]
        y = y + torch.cat([late.new_zeros(batch, l, late.shape[2]), late], dim=1)
    return y


def fused(index: Tensor, responses: Tensor) -> Tensor:
    """`respond` in compiled loops on the CPU; differentiable once."""
    return _Respond.apply(index, responses)  # type: ignore[no-any-return]


class _Respond(Function):
    @staticmethod
    def forward(ctx: Any, index: Tensor, responses: Tensor) -> Tensor:
        index, responses = index.contiguous(), responses.contiguous()
        (batch, length), width = index.shape, responses.shape[2]
        y = empty((batch, length, width), responses.dtype)
        parts = cuts(batch, thread_count(y.numel() * length // 2))
        share(kernels(width).forward, (index, responses, y, (length, width)), parts)
        ctx.save_for_backward(index)
        ctx.shape = responses.shape
        return y

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        (index,), (_, length, width) = ctx.saved_tensors, ctx.shape
        parts = cuts(len(index), _SHARES)
        shares = torch.zeros(len(parts), *ctx.shape, dtype=dy.dtype)
        numbered = [(*part, i * shares[0].numel()) for i, part in enumerate(parts)]
        share(kernels(width).backward, (index, dy.contiguous(), shares, (length, width)), numbered)
        return None, shares.sum(0)


def _write_sum(rows: Rows, table: Any, a: Any, b: Any, c: Any, d: Any, y: Any, i: Any, n: int) -> None:
    for k in range(n):
        first, second = (rows.plus(rows.load(table, p, k), rows.load(table, q, k)) for p, q in ((a, b), (c, d)))
        rows.store(rows.plus(rows.load(y, i, k), rows.plus(first, second)), y, i, k)


def _write_spread(rows: Rows, dy: Any, i: Any, found: Any, a: Any, b: Any, c: Any, d: Any, n: int) -> None:
    for k in range(n):
        given = rows.load(dy, i, k)
        for place in (a, b, c, d):
            rows.store(rows.plus(rows.load(found, place, k), given), found, place, k)


def _write_one(rows: Rows, x: Any, i: Any, y: Any, j: Any, n: int) -> None:
    for k in range(n):
        rows.store(rows.plus(rows.load(y, j, k), rows.load(x, i, k)), y, j, k)


_sum, _wide_sum = (instruction(partial(_write_sum, n=n)) for n in (1, _WIDE))  # of four rows of the table, to y
_spread, _wide_spread = (instruction(partial(_write_spread, n=n)) for n in (1, _WIDE))  # of dy, to four rows
_one, _wide_one = (instruction(partial(_write_one, n=n)) for n in (1, _WIDE))  # y += x


class Kernels(NamedTuple):
    """Kernels on flat arrays, `sizes` = (T, H), `part` the words (n0, n1) to do, backward also where its share begins.

    - forward(index, table, y, sizes, part): writes y (B, T, H) from the table (R, T, H).
    - backward(index, dy, found, sizes, part): adds to `found` (shares, R, T, H).
    """

    forward: Callable[..., None]
    backward: Callable[..., None]


@by_width
def kernels(width: int) -> Kernels:
    @kernel()
    def forward(index, table, y, sizes, part):  # type: ignore[no-untyped-def]
        T, H = sizes
        is_wide = H % (_WIDE * width) == 0
        rows = np.empty(T, np.int64)  # where responses to each letter begin, less its place in the word
        for n in range(part[0], part[1]):
            for k in range(T):
                rows[k] = (index[n * T + k] * T - k) * H
            for t in range(T):
                now = (n * T + t) * H
                y[now : now + H] = 0
                for h in range(0, H, _WIDE * width if is_wide else width):
                    at = t * H + h
                    for k in range(0, t - 2, 4):
                        a, b, c, d = rows[k] + at, rows[k + 1] + at, rows[k + 2] + at, rows[k + 3] + at
                        if is_wide:
                            _wide_sum(width, (table, a, b, c, d, y, now + h))
                        else:
                            _sum(width, (table, a, b, c, d, y, now + h))
                    for k in range((t + 1) // 4 * 4, t + 1):
                        if is_wide:
                            _wide_one(width, (table, rows[k] + at, y, now + h))
                        else:
                            _one(width, (table, rows[k] + at, y, now + h))

    @kernel()
    def backward(index, dy, found, sizes, part):  # type: ignore[no-untyped-def]
        T, H = sizes
        is_wide = H % (_WIDE * width) == 0
        rows = np.empty(T, np.int64)
        for n in range(part[0], part[1]):
            for k in range(T):
                rows[k] = part[2] + (index[n * T + k] * T - k) * H
            for t in range(T):
                now = (n * T + t) * H
                for h in range(0, H, _WIDE * width if is_wide else width):
                    at = t * H + h
                    for k in range(0, t - 2, 4):
                        a, b, c, d = rows[k] + at, rows[k + 1] + at, rows[k + 2] + at, rows[k + 3] + at
                        if is_wide:
                            _wide_spread(width, (dy, now + h, found, a, b, c, d))
                        else:
                            _spread(width, (dy, now + h, found, a, b, c, d))
                    for k in range((t + 1) // 4 * 4, t + 1):
                        if is_wide:
                            _wide_one(width, (dy, now + h, found, rows[k] + at))
                        else:
                            _one(width, (dy, now + h, found, rows[k] + at))

    return Kernels(forward, backward)
