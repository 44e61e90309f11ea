"""The liquid recurrence of every channel: x_k = (Ā + diag(B̄ u_k)) x_{k−1} + B̄ u_k, y_k = 2 Re Σ C x_k + D u_k.

The transition depends on the input, so there is no impulse response. `sequential` is the definition; `fused` is
compiled for the CPU, neighbouring channels being a vector. Going back it runs each word again and keeps the states of
that one word alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.extra.baselines.kernels.channels import System
from fsa2lrnn.extra.baselines.kernels.states import States
from fsa2lrnn.extra.baselines.kernels.transition import coefficients_of, from_planes, planes, twice_real
from fsa2lrnn.lrnn.autograd import typed_once_differentiable
from fsa2lrnn.lrnn.compiled import refuse, takes
from fsa2lrnn.lrnn.compiled.memory import empty
from fsa2lrnn.lrnn.compiled.threads import cuts, share, thread_count
from fsa2lrnn.lrnn.compiled.vectors import instruction, kernel
from fsa2lrnn.lrnn.compiled.widths import by_width
from fsa2lrnn.lrnn.scans import check_method

_WORTH_COMPILING = 1 << 13  # numbers; below, no number of calls makes up for seconds of compilation
_SHARES = 4  # of the batch, whose gradients of the coefficients are added up independently of the number of threads


def liquid(system: System, u: Tensor, state: Tensor, method: str = "auto") -> tuple[Tensor, Tensor]:
    """All outputs and the last state: u (B, T, H), state (B, H, 2n) -> (B, T, H), (B, H, 2n).

    `method` is one of `METHODS`, "auto" or "letters" for the fastest there is.

    Raises:
        UnsupportedFormat: for an unknown method.
    """
    check_method(method, {**METHODS, "letters": None})
    if method in ("auto", "letters"):
        is_worth_it = u.shape[1] * state.numel() >= _WORTH_COMPILING and takes(u, state)
        method = "fused" if is_worth_it else "sequential"
    return METHODS[method](system, u, state)


def sequential(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """`liquid` by the loop it says. The state is kept in double precision on the way."""
    outputs, x = [], state.double()
    for u_k in u.unbind(1):
        y, x = step(system, u_k, x)
        outputs.append(y)
    return torch.stack(outputs, dim=1) if outputs else u, x.to(state.dtype)


def step(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """One letter: u (B, H), state (B, H, 2n) -> y (B, H) and the next state."""
    x, arriving = from_planes(state), system.B * u.unsqueeze(-1)
    x = system.transition.times(x) + arriving * x + arriving
    return (twice_real(system.C * x) + system.D * u).to(u.dtype), planes(x).to(state.dtype)


def fused(system: System, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """`liquid` in compiled loops on the CPU; differentiable once."""
    if not takes(u, state):
        refuse("liquid recurrence", "sequential", u=u, state=state)
    (a, q, r), B, C, D = system
    none = torch.zeros_like(a)
    numbers = [a, none if q is None else q, none if r is None else r, B, C]
    coefficients = coefficients_of(numbers)  # (10, n, H)
    y, last = _Liquid.apply(coefficients.to(u.dtype), u, state.permute(0, 2, 1))
    return y + D.to(u.dtype) * u, last.permute(0, 2, 1)


METHODS: dict[str, Callable[[System, Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "sequential": sequential,
    "fused": fused,
}


class _Liquid(Function):
    @staticmethod
    def forward(ctx: Any, coefficients: Tensor, u: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        coefficients, u, state = coefficients.contiguous(), u.contiguous(), state.contiguous()
        y, last = empty(u.shape, u.dtype), torch.empty_like(state)
        (batch, length, channels), n = u.shape, coefficients.shape[1]
        parts = cuts(batch, thread_count(14 * n * u.numel()))
        share(kernels(channels).forward, (coefficients, u, state, y, last, (length, channels, n)), parts)
        ctx.save_for_backward(coefficients, u, state)
        ctx.set_materialize_grads(False)
        return y, last

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dy: Tensor | None, dlast: Tensor | None) -> tuple[Tensor | None, ...]:
        coefficients, u, state = ctx.saved_tensors
        (batch, length, channels), n = u.shape, coefficients.shape[1]
        dy = torch.zeros_like(u) if dy is None else dy.contiguous()
        g = torch.zeros_like(state) if dlast is None else dlast.clone(memory_format=torch.contiguous_format)
        parts = cuts(batch, _SHARES)
        shares = torch.zeros(len(parts), *coefficients.shape, dtype=u.dtype)
        du = empty(u.shape, u.dtype)
        numbered = [(*part, i) for i, part in enumerate(parts)]
        share(kernels(channels).backward, (coefficients, u, state, dy, g, du, shares, (length, channels, n)), numbered)
        return shares.sum(0), du, g


_KINDS = range(5)
_A, _Q, _R, _B, _C = _KINDS


def _write_mix(rows: States, x: Any, before: Any, k: Any, h: Any, H: Any, n: Any, s: Any, j: Any) -> None:
    def terms(i: Any) -> list[Any]:
        return [rows.real_product(rows.coefficient(_R, k, h, i, H, n), rows.pair(x, before, i, n))]

    (total,) = rows.totals(n, terms, 1)
    rows.store(rows.twice(total), s, j)


def _write_step(
    rows: States, x: Any, before: Any, after: Any, k: Any, h: Any, H: Any, n: Any, s: Any, j: Any, j_after: Any,
    u: Any, o: Any, y: Any,
) -> None:  # fmt: skip
    inflow, mixed = rows.load(u, o), rows.load(s, j)

    def terms(i: Any) -> list[Any]:
        a, q, r, b, c = (rows.coefficient(kind, k, h, i, H, n) for kind in _KINDS)
        arriving = rows.scaled(inflow, b)
        new = rows.product(
            rows.sum(a, arriving), rows.pair(x, before, i, n), rows.difference(arriving, rows.scaled(mixed, q))
        )
        rows.put(new, x, after, i, n)
        return [rows.real_product(c, new), rows.real_product(r, new)]

    read, mixing = rows.totals(n, terms, 2)
    rows.store(rows.twice(read), y, o)
    rows.store(rows.twice(mixing), s, j_after)


def _write_back(
    rows: States, x: Any, before: Any, after: Any, k: Any, h: Any, H: Any, n: Any, s: Any, j: Any, u: Any, o: Any,
    dy: Any, g: Any, zero: Any, du: Any, dk: Any, dh: Any,
) -> None:  # fmt: skip
    inflow, of_read = rows.load(u, o), rows.twice(rows.load(dy, o))
    minus_mixed = rows.minus(rows.constant(0.0), rows.load(s, j))

    def add(value: Any, kind: int, i: Any) -> None:
        rows.add(value, kind, dk, dh, i, H, n)

    def terms(i: Any) -> list[Any]:
        c, q = (rows.coefficient(kind, k, h, i, H, n) for kind in (_C, _Q))
        of_new = rows.sum(rows.pair(g, zero, i, n), rows.scaled(of_read, rows.conjugate(c)))
        rows.put(of_new, g, zero, i, n)
        add(rows.scaled(of_read, rows.conjugate(rows.pair(x, after, i, n))), _C, i)
        return [rows.plus(rows.times(of_new[0], q[0]), rows.times(of_new[1], q[1]))]

    (total,) = rows.totals(n, terms, 1)
    of_mixed = rows.minus(rows.constant(0.0), rows.twice(total))

    def further(i: Any) -> list[Any]:
        old, of_new = rows.pair(x, before, i, n), rows.pair(g, zero, i, n)
        a, r, b = (rows.coefficient(kind, k, h, i, H, n) for kind in (_A, _R, _B))
        of_factor = rows.against(old, of_new, (rows.constant(0.0), rows.constant(0.0)))
        of_arriving = rows.sum(of_factor, of_new)
        add(of_factor, _A, i)
        add(rows.scaled(minus_mixed, of_new), _Q, i)
        add(rows.scaled(of_mixed, rows.conjugate(old)), _R, i)
        add(rows.scaled(inflow, of_arriving), _B, i)
        factor = rows.sum(a, rows.scaled(inflow, b))
        rows.put(rows.against(factor, of_new, rows.scaled(of_mixed, rows.conjugate(r))), g, zero, i, n)
        return [rows.plus(rows.times(of_arriving[0], b[0]), rows.times(of_arriving[1], b[1]))]

    (of_inflow,) = rows.totals(n, further, 1)
    rows.store(of_inflow, du, o)


_mix = instruction(_write_mix, States)  # s = 2 Re Σ r x
_step = instruction(_write_step, States)  # the next x, its s, and y = 2 Re Σ C x
_back = instruction(_write_back, States)  # from the adjoint of a state to that of the one before


class Kernels(NamedTuple):
    """Kernels on flat arrays, `sizes` = (T, H, n), `part` the words to do, backward also the number of the share.

    - forward(coefficients, u, state, y, last, sizes, part): coefficients (10, n, H), u (B, T, H), state (B, 2n, H);
      writes y (B, T, H) and the last state.
    - backward(coefficients, u, state, dy, g, du, shares, sizes, part): turns the adjoint g (B, 2n, H) of the last state
      into that of the first, writes du, adds to `shares` (shares, 10, n, H).
    """

    forward: Callable[..., None]
    backward: Callable[..., None]


@by_width
def kernels(width: int) -> Kernels:
    @kernel(States)
    def forward(k, u, state, y, last, sizes, part):  # type: ignore[no-untyped-def]
        T, H, n = sizes
        size = 2 * n * width
        x, s = (
            np.empty(2 * size, k.dtype),
            np.empty(2 * width, k.dtype),
        )  # of this letter and of the one before, in turns
        for w in range(part[0], part[1]):
            for h in range(0, H, width):
                for i in range(2 * n):
                    for lane in range(width):
                        x[i * width + lane] = state[(w * 2 * n + i) * H + h + lane]
                _mix(width, (x, 0, k, h, H, n, s, 0))
                for t in range(T):
                    old, new = t % 2, (t + 1) % 2
                    o = (w * T + t) * H + h
                    _step(width, (x, old * size, new * size, k, h, H, n, s, old * width, new * width, u, o, y))
                for i in range(2 * n):
                    for lane in range(width):
                        last[(w * 2 * n + i) * H + h + lane] = x[T % 2 * size + i * width + lane]

    @kernel(States)
    def backward(k, u, state, dy, of_state, du, shares, sizes, part):  # type: ignore[no-untyped-def]
        T, H, n = sizes
        size = 2 * n * width
        x, s, y = np.empty((T + 1) * size, k.dtype), np.empty((T + 1) * width, k.dtype), np.empty(T * H, k.dtype)
        g = np.empty(size, k.dtype)
        dk = part[2] * 10 * n * H
        for w in range(part[0], part[1]):
            word = u[w * T * H : (w + 1) * T * H]
            for h in range(0, H, width):
                for i in range(2 * n):
                    for lane in range(width):
                        x[i * width + lane] = state[(w * 2 * n + i) * H + h + lane]
                        g[i * width + lane] = of_state[(w * 2 * n + i) * H + h + lane]
                _mix(width, (x, 0, k, h, H, n, s, 0))
                for t in range(T):
                    j = t * width
                    _step(width, (x, t * size, (t + 1) * size, k, h, H, n, s, j, j + width, word, t * H + h, y))
                for t in range(T - 1, -1, -1):
                    o = (w * T + t) * H + h
                    _back(
                        width,
                        (
                            x, t * size, (t + 1) * size, k, h, H, n, s, t * width, u, o,
                            dy, g, 0, du, shares, dk + h,
                        ),
                    )  # fmt: skip
                for i in range(2 * n):
                    for lane in range(width):
                        of_state[(w * 2 * n + i) * H + h + lane] = g[i * width + lane]

    return Kernels(forward, backward)
