"""Impulse responses: the states Ā^l B̄ of every channel, and K_l = 2 Re Σ C ⊙ Ā^l B̄.

`reference` is the definition; `fused` is compiled for the CPU, neighbouring channels being a vector; `doubled`, in
⌈log₂ length⌉ rounds, is for GPUs, where each operation is a launch. All compute in double precision, whatever the layer
does: there are few numbers, and powers gather errors. Numbers of a state smaller than `least` become 0: where a layer
computes in single precision, products with them would be denormal, which is slow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from fsa2lrnn.extra.baselines.kernels.states import States
from fsa2lrnn.extra.baselines.kernels.transition import Transition, coefficients_of, from_planes, planes, reading
from fsa2lrnn.lrnn.autograd import typed_once_differentiable
from fsa2lrnn.lrnn.compiled.threads import cuts, share, thread_count
from fsa2lrnn.lrnn.compiled.vectors import WIDEST, instruction, kernel
from fsa2lrnn.lrnn.compiled.widths import by_width

_WORTH_COMPILING = 1 << 13  # numbers; below, no number of calls makes up for seconds of compilation


class Response(NamedTuple):
    """K (length, H), and the states as planes (H, length, 2n), where they were asked for."""

    K: Tensor
    states: Tensor | None


def respond(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """The response for l < length: complex128 B, C (H, n), float64 results; differentiable in all.

    >>> half = Transition(torch.full((1, 1), 0.5 + 0j))
    >>> respond(half, torch.ones(1, 1) + 0j, torch.ones(1, 1) + 0j, 4).K.flatten().tolist()
    [2.0, 1.0, 0.5, 0.25]
    """
    if B.device.type != "cpu":
        return doubled(transition, B, C, length, least, with_states)
    is_worth_it = length * B.numel() >= _WORTH_COMPILING
    return (fused if is_worth_it else reference)(transition, B, C, length, least, with_states)


def reference(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """`respond`, a step at a time."""
    x, found = planes(B), []
    for l in range(length):  # noqa: E741 - the index of K
        x = planes(transition.times(from_planes(x))) if l else x
        x = torch.where(x.abs() < least, 0, x)
        found.append(x)
    states = torch.stack(found, dim=1) if found else x.unsqueeze(1)[:, :0]
    return Response((states @ reading(C).unsqueeze(-1)).squeeze(-1).T, states if with_states else None)


def doubled(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """`respond`, all states that are known times the power of Ā that leads beyond them, round by round.

    It agrees with `reference` but for numbers of states about as small as `least`.
    """
    x, (a, q, _) = planes(B).unsqueeze(1), transition  # (H, known, 2n)
    M = None if q is None else transition.matrix()
    while x.shape[1] < length:
        more = x[:, : length - x.shape[1]]
        if M is None:
            x, a = torch.cat([x, planes(a.unsqueeze(1) * from_planes(more))], 1), a * a
        else:
            x, M = torch.cat([x, more @ M], 1), M @ M
    states = x[:, :length]
    states = torch.where(states.abs() < least, 0, states)
    return Response((states @ reading(C).unsqueeze(-1)).squeeze(-1).T, states if with_states else None)


def fused(
    transition: Transition, B: Tensor, C: Tensor, length: int, least: float = 0.0, with_states: bool = False
) -> Response:
    """`respond` in compiled loops on the CPU; differentiable once."""
    a, q, r = transition
    none = torch.zeros_like(a)
    numbers = [a, none if q is None else q, none if r is None else r, C, B]
    coefficients = coefficients_of(numbers)  # (10, n, H)
    K, states = _Respond.apply(coefficients, length, least, with_states)
    return Response(K, states.permute(0, 3, 1, 2).flatten(0, 1) if with_states else None)


class _Respond(Function):
    """K (L, H), and states (H/w, L, 2n, w) in stretches of w channels."""

    @staticmethod
    def forward(
        ctx: Any, coefficients: Tensor, length: int, least: float, with_states: bool
    ) -> tuple[Tensor, Tensor | None]:
        coefficients = coefficients.contiguous()
        _, n, channels = coefficients.shape
        width = math.gcd(channels, WIDEST)
        K = torch.empty(length, channels, dtype=torch.float64)
        states = torch.empty(channels // width, length if with_states else 0, 2 * n, width, dtype=torch.float64)
        arguments = (coefficients, K, states, least, with_states, (length, channels, n))
        share(kernels(channels).forward, arguments, _parts(coefficients, length))
        ctx.save_for_backward(coefficients)
        ctx.least, ctx.length = least, length
        ctx.set_materialize_grads(False)
        return K, states if with_states else None

    @staticmethod
    @typed_once_differentiable
    def backward(ctx: Any, dK: Tensor | None, dstates: Tensor | None) -> tuple[Tensor | None, ...]:
        (coefficients,) = ctx.saved_tensors
        (_, n, channels), length = coefficients.shape, ctx.length
        dK = coefficients.new_zeros(length, channels) if dK is None else dK.contiguous()
        of_states = coefficients.new_empty(0) if dstates is None else dstates.contiguous()
        found = torch.zeros_like(coefficients)
        arguments = (coefficients, dK, of_states, dstates is not None, found, ctx.least, (length, channels, n))
        share(kernels(channels).backward, arguments, _parts(coefficients, length))
        return found, None, None, None


def _parts(coefficients: Tensor, length: int) -> list[tuple[int, int]]:
    """Channels, in whole vectors."""
    channels = coefficients.shape[2]
    width = math.gcd(channels, WIDEST)
    stretches = cuts(channels // width, thread_count(length * coefficients.numel()))
    return [(width * first, width * end) for first, end in stretches]


_KINDS = range(4)
_A, _Q, _R, _C = _KINDS


def _write_read(rows: States, x: Any, at: Any, k: Any, h: Any, H: Any, n: Any, s: Any, j: Any, K: Any, o: Any) -> None:
    def terms(i: Any) -> list[Any]:
        state = rows.pair(x, at, i, n)
        return [rows.real_product(rows.coefficient(kind, k, h, i, H, n), state) for kind in (_C, _R)]

    read, mixed = rows.totals(n, terms, 2)
    rows.store(rows.twice(read), K, o)
    rows.store(rows.twice(mixed), s, j)


def _write_step(
    rows: States, x: Any, before: Any, after: Any, k: Any, h: Any, H: Any, n: Any, s: Any, j: Any, least: Any, zero: Any
) -> None:
    minus_mixed, bound = rows.minus(rows.constant(0.0), rows.load(s, j)), rows.load(least, zero)

    def terms(i: Any) -> list[Any]:
        a, q = (rows.coefficient(kind, k, h, i, H, n) for kind in (_A, _Q))
        new = rows.product(a, rows.pair(x, before, i, n), rows.scaled(minus_mixed, q))
        rows.put((rows.at_least(new[0], bound), rows.at_least(new[1], bound)), x, after, i, n)
        return []

    rows.totals(n, terms, 0)


def _write_back_read(
    rows: States, x: Any, at: Any, k: Any, h: Any, H: Any, n: Any, dK: Any, o: Any, g: Any, zero: Any, dk: Any
) -> None:
    of_read = rows.twice(rows.load(dK, o))

    def terms(i: Any) -> list[Any]:
        c = rows.coefficient(_C, k, h, i, H, n)
        rows.put(rows.sum(rows.pair(g, zero, i, n), rows.scaled(of_read, rows.conjugate(c))), g, zero, i, n)
        rows.add(rows.scaled(of_read, rows.conjugate(rows.pair(x, at, i, n))), _C, dk, h, i, H, n)
        return []

    rows.totals(n, terms, 0)


def _write_back_step(
    rows: States, x: Any, before: Any, k: Any, h: Any, H: Any, n: Any, s: Any, j: Any, g: Any, zero: Any, dk: Any
) -> None:
    def terms(i: Any) -> list[Any]:
        of_new, q = rows.pair(g, zero, i, n), rows.coefficient(_Q, k, h, i, H, n)
        return [rows.plus(rows.times(of_new[0], q[0]), rows.times(of_new[1], q[1]))]

    (total,) = rows.totals(n, terms, 1)
    of_mixed = rows.minus(rows.constant(0.0), rows.twice(total))
    minus_mixed = rows.minus(rows.constant(0.0), rows.load(s, j))

    def further(i: Any) -> list[Any]:
        old, of_new = rows.pair(x, before, i, n), rows.pair(g, zero, i, n)
        a, r = (rows.coefficient(kind, k, h, i, H, n) for kind in (_A, _R))
        rows.add(rows.against(old, of_new, (rows.constant(0.0), rows.constant(0.0))), _A, dk, h, i, H, n)
        rows.add(rows.scaled(minus_mixed, of_new), _Q, dk, h, i, H, n)
        rows.add(rows.scaled(of_mixed, rows.conjugate(old)), _R, dk, h, i, H, n)
        rows.put(rows.against(a, of_new, rows.scaled(of_mixed, rows.conjugate(r))), g, zero, i, n)
        return []

    rows.totals(n, further, 0)


_read = instruction(_write_read, States)  # K_l = 2 Re Σ C x and s = 2 Re Σ r x
_step = instruction(_write_step, States)  # the next x
_back_read = instruction(_write_back_read, States)  # what K_l gives to the adjoint of x, and to that of C
_back_step = instruction(_write_back_step, States)  # from the adjoint of a state to that of the one before


class Kernels(NamedTuple):
    """Kernels on flat arrays, `sizes` = (L, H, n), `part` the channels to do, whole vectors.

    - forward(coefficients, K, states, least, keep, sizes, part): coefficients (10, n, H) of a, q, r, C and the first
      state; writes K (L, H), and states (H/w, L, 2n, w) if it shall `keep` them.
    - backward(coefficients, dK, dstates, with_states, found, least, sizes, part): adds to `found`, of the shape of the
      coefficients.
    """

    forward: Callable[..., None]
    backward: Callable[..., None]


@by_width
def kernels(width: int) -> Kernels:
    @kernel(States)
    def forward(k, K, states, least, keep, sizes, part):  # type: ignore[no-untyped-def]
        L, H, n = sizes
        size, bound, s = 2 * n * width, np.full(width, least), np.empty(width)
        two = np.empty(2 * size)  # this state and the one before, in turns
        for h in range(part[0], part[1], width):
            x = states[h // width * L * size : (h // width + 1) * L * size] if keep else two
            for t in range(L):
                now, before = (t * size, (t - 1) * size) if keep else (t % 2 * size, (t + 1) % 2 * size)
                if t:
                    _step(width, (x, before, now, k, h, H, n, s, 0, bound, 0))
                else:
                    for i in range(2 * n):
                        for lane in range(width):
                            number = k[(8 * n + i) * H + h + lane]
                            x[i * width + lane] = 0 if abs(number) < least else number
                _read(width, (x, now, k, h, H, n, s, 0, K, t * H + h))

    @kernel(States)
    def backward(k, dK, dstates, with_states, found, least, sizes, part):  # type: ignore[no-untyped-def]
        L, H, n = sizes
        size, bound = 2 * n * width, np.full(width, least)
        x, s, K, g = np.empty(max(L, 1) * size), np.empty(max(L, 1) * width), np.empty(width), np.empty(size)
        for h in range(part[0], part[1], width):
            for i in range(2 * n):
                for lane in range(width):
                    number = k[(8 * n + i) * H + h + lane]
                    x[i * width + lane] = 0 if abs(number) < least else number
            for t in range(L):
                if t:
                    _step(width, (x, (t - 1) * size, t * size, k, h, H, n, s, (t - 1) * width, bound, 0))
                _read(width, (x, t * size, k, h, H, n, s, t * width, K, 0))
            g[:] = 0
            for t in range(L - 1, -1, -1):
                _back_read(width, (x, t * size, k, h, H, n, dK, t * H + h, g, 0, found))
                if with_states:
                    more = dstates[(h // width * L + t) * size : (h // width * L + t + 1) * size]
                    for i in range(size):
                        g[i] += more[i]
                if t:
                    _back_step(width, (x, (t - 1) * size, k, h, H, n, s, (t - 1) * width, g, 0, found))
            for i in range(2 * n):
                for lane in range(width):
                    found[(8 * n + i) * H + h + lane] = g[i * width + lane]

    return Kernels(forward, backward)
