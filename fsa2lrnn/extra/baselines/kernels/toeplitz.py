"""Causal convolutions of short words, channel by channel: y_t = Σ_{l ≤ t} K_l u_{t−l}.

`reference` writes the Toeplitz matrices out. `fused` is compiled for the CPU: neighbouring channels are a vector, and
a few outputs at a time stay in registers. Its gradients are convolutions too: that of u is one of the reversed
gradient with K, that of K, reversed, one of the reversed gradient with u.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from llvmlite import ir
from numba.core import cgutils
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import pad

from fsa2lrnn.lrnn.autograd import typed_once_differentiable
from fsa2lrnn.lrnn.compiled import takes
from fsa2lrnn.lrnn.compiled.memory import empty
from fsa2lrnn.lrnn.compiled.threads import cuts, share, thread_count
from fsa2lrnn.lrnn.compiled.vectors import Rows, instruction, kernel
from fsa2lrnn.lrnn.compiled.widths import by_width

_WORTH_COMPILING = 1 << 15  # multiplications, twice; below, no number of calls makes up for seconds of compilation
_TOGETHER = 8  # outputs kept in registers
_SHARES = 4  # of the batch, whose gradients of K are added up independently of the number of threads


def convolve(u: Tensor, K: Tensor) -> Tensor:
    """y_t = Σ_{l ≤ t} K_l u_{t−l}: u (B, T, H), K (T, H) -> (B, T, H), compiled where that can be."""
    is_worth_it = u.numel() * u.shape[1] >= _WORTH_COMPILING
    return fused(u, K) if is_worth_it and takes(u, K) else reference(u, K)


def reference(u: Tensor, K: Tensor) -> Tensor:
    """`convolve` by matrices."""
    return torch.einsum("bjh,hjt->bth", u, matrices(K.T))


def matrices(K: Tensor) -> Tensor:
    """Toeplitz matrices with K_{t−j} in row j and column t ≥ j, 0 elsewhere: (H, T) -> (H, T, T).

    >>> matrices(torch.tensor([[1.0, 2.0, 3.0]]))[0].tolist()
    [[1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]]
    """
    channels, length = K.shape
    rows = pad(K, (0, length)).unsqueeze(1).expand(-1, length, -1)  # (H, T, 2T)
    # read in rows that are shorter by one, each is moved by one against the row above
    return rows.reshape(channels, -1)[:, : length * (2 * length - 1)].view(channels, length, max(2 * length - 1, 0))[
        ..., :length
    ]


def fused(u: Tensor, K: Tensor) -> Tensor:
    """`convolve` in compiled loops on the CPU; differentiable once."""
    return _Convolve.apply(u, K)  # type: ignore[no-any-return]


class _Convolve(Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, K: Tensor) -> Tensor:
        u, K = u.contiguous(), K.contiguous()
        y = empty(u.shape, u.dtype)
        batch, length, channels = u.shape
        share(kernels(channels).convolve, (u, K, y, False, (length, channels)), cuts(batch, _threads(u)))
        ctx.save_for_backward(u, K)
        return y

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        (u, K), (with_u, with_K) = ctx.saved_tensors, ctx.needs_input_grad
        dy, (batch, length, channels) = dy.contiguous(), u.shape
        du = dK = None
        if with_u:
            du = empty(u.shape, u.dtype)
            share(kernels(channels).convolve, (dy, K, du, True, (length, channels)), cuts(batch, _threads(u)))
        if with_K:
            parts = cuts(batch, _SHARES)
            shares = torch.zeros(len(parts), length, channels, dtype=K.dtype)
            numbered = [(*part, i) for i, part in enumerate(parts)]
            share(kernels(channels).backward_taps, (dy, u, shares, (length, channels)), numbered)
            dK = shares.sum(0)
        return du, dK


def _threads(u: Tensor) -> int:
    return thread_count(u.numel() * u.shape[1] // 2)


class _Tiles(Rows):
    """Instructions on rows, and a loop that keeps its sums in registers."""

    def convolve(
        self, x: Any, i: Any, dx: Any, z: Any, j: Any, dz: Any, out: Any, k: Any, dk: Any, t: Any, n: int
    ) -> None:
        """out_{t+r} += Σ_{m ≤ t+r} x_m z_{t+r−m} for r < n, row m of x lying at i + m·dx, and so on."""
        build, integer = self._builder, t.type

        def at(start: Any, step: Any, number: Any) -> Any:
            return build.add(start, build.mul(step, number))

        def constant(value: int) -> Any:
            return ir.Constant(integer, value)

        ends = [at(k, dk, build.add(t, constant(r))) for r in range(n)]
        sums = [cgutils.alloca_once_value(build, self.load(out, end)) for end in ends]

        def add(r: int, left: Any, right: Any) -> None:
            build.store(self.plus(build.load(sums[r]), self.times(left, right)), sums[r])

        with cgutils.for_range(build, build.add(t, constant(1)), intp=integer) as loop:
            left, after = self.load(x, at(i, dx, loop.index)), build.sub(t, loop.index)
            for r in range(n):
                add(r, left, self.load(z, at(j, dz, build.add(after, constant(r)))))
        for s in range(1, n):
            left = self.load(x, at(i, dx, build.add(t, constant(s))))
            for r in range(s, n):
                add(r, left, self.load(z, at(j, dz, constant(r - s))))
        for r in range(n):
            self.store(build.load(sums[r]), out, ends[r])


def _write_tile(rows: _Tiles, *given: Any) -> None:
    rows.convolve(*given, n=_TOGETHER)


def _write_one(rows: _Tiles, *given: Any) -> None:
    rows.convolve(*given, n=1)


_tile, _one = instruction(_write_tile, _Tiles), instruction(_write_one, _Tiles)


class Kernels(NamedTuple):
    """Kernels on flat arrays, `sizes` = (T, H), `part` the words (n0, n1) to do, for dK also the number of the share.

    - convolve(x, K, y, backwards, sizes, part): writes y, or with `backwards` du from dy, both read from their ends.
    - backward_taps(dy, u, dK, sizes, part): adds to dK (shares, T, H).
    """

    convolve: Callable[..., None]
    backward_taps: Callable[..., None]


@by_width
def kernels(width: int) -> Kernels:
    @kernel(_Tiles)
    def convolve(x, K, y, backwards, sizes, part):  # type: ignore[no-untyped-def]
        T, H = sizes
        first, step = ((T - 1) * H, -H) if backwards else (0, H)
        for n in range(part[0], part[1]):
            y[n * T * H : (n + 1) * T * H] = 0
            for h in range(0, H, width):
                i, t = n * T * H + first + h, 0
                while t < T:
                    if t + _TOGETHER <= T:
                        _tile(width, (x, i, step, K, h, H, y, i, step, t))
                        t += _TOGETHER
                    else:
                        _one(width, (x, i, step, K, h, H, y, i, step, t))
                        t += 1

    @kernel(_Tiles)
    def backward_taps(dy, u, dK, sizes, part):  # type: ignore[no-untyped-def]
        T, H = sizes
        for n in range(part[0], part[1]):
            for h in range(0, H, width):
                i, k, t = n * T * H + h, (part[2] * T + T - 1) * H + h, 0
                while t < T:
                    if t + _TOGETHER <= T:
                        _tile(width, (dy, i + (T - 1) * H, -H, u, i, H, dK, k, -H, t))
                        t += _TOGETHER
                    else:
                        _one(width, (dy, i + (T - 1) * H, -H, u, i, H, dK, k, -H, t))
                        t += 1

    return Kernels(convolve, backward_taps)
