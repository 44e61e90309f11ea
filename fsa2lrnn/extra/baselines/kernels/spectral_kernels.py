"""Kernels for `spectral`: a recurrence with a matrix before and one behind it, a stretch of a word at a time.

A stretch's inputs, states and outputs stay in the cache, while products go in and out of them. On the way back each
stretch is read from its end, and the gradient of the state before it is carried over to the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fsa2lrnn.extra.baselines.kernels.diagonal import Planes
from fsa2lrnn.lrnn.compiled.products import Products, add_product, multiply
from fsa2lrnn.lrnn.compiled.vectors import instruction, kernel
from fsa2lrnn.lrnn.compiled.widths import by_width

_STRETCH = 64  # letters


def scratch(P: int) -> int:
    """How many numbers of scratch a part needs on the way back, with P states."""
    return (_STRETCH + 1) * 2 * P


class Spectra(Planes, Products):
    """Instructions on planes of complex numbers, and products of matrices."""


def _write_skip(rows: Spectra, D: Any, h: Any, u: Any, i: Any, y: Any, j: Any) -> None:
    rows.store(rows.times(rows.load(D, h), rows.load(u, i)), y, j)


def _write_back_skip(
    rows: Spectra, D: Any, h: Any, u: Any, i: Any, dy: Any, j: Any, du: Any, k: Any, dD: Any, m: Any
) -> None:
    given = rows.load(dy, j)
    rows.store(rows.times(rows.load(D, h), given), du, k)
    rows.store(rows.plus(rows.load(dD, m), rows.times(given, rows.load(u, i))), dD, m)


def _write_sum(rows: Spectra, x: Any, i: Any, y: Any, j: Any) -> None:
    rows.store(rows.plus(rows.load(x, i), rows.load(y, j)), y, j)


_step, _back = instruction(Planes.step, Spectra), instruction(Planes.back, Spectra)
_skip, _back_skip, _sum = (instruction(write, Spectra) for write in (_write_skip, _write_back_skip, _write_sum))


class Kernels(NamedTuple):
    """Kernels on flat arrays, `sizes` = (T, U, H, P) with U ≤ T the letters of a word that have an input, the first
    ones; `part` the words (n0, n1) to do, backward also the number of the share.

    - forward(a, B, C, D, u, x0, x, y, last, sizes, part): B transposed (H, 2P), C transposed (2P, H); writes the states
      x (B, T, 2P), y (B, T, H), and the states `last` (B, 2P).
    - backward(a, B, C, D, u, x0, x, dy, dlast, du, dx0, found, room, sizes, part): B (2P, H), C (H, 2P), room
      (shares, scratch(P)); writes du (B, U, H) and dx0, adds to `found` (shares, 2P + H + 2·H·2P): the gradients of λ,
      D, C, and of B transposed.
    """

    forward: Callable[..., None]
    backward: Callable[..., None]


@by_width
def kernels(width: int) -> Kernels:
    @kernel(Spectra)
    def forward(a, B, C, D, u, x0, x, y, last, sizes, part):  # type: ignore[no-untyped-def]
        T, U, H, P = sizes
        W = 2 * P
        for n in range(part[0], part[1]):
            before, i = x0, n * W
            for t in range(0, T, _STRETCH):
                rows = min(_STRETCH, T - t)
                given = max(0, min(rows, U - t))
                of_u, of_x, of_y = (n * U + t) * H, (n * T + t) * W, (n * T + t) * H
                multiply(width, (u, of_u, H, 1, B, 0, W, 1, x, of_x, W, given, H, W))
                x[of_x + given * W : of_x + rows * W] = 0
                for r in range(rows):
                    now = of_x + r * W
                    for p in range(0, P, width):
                        q = P + p
                        _step(width, (a, p, q, before, i + p, i + q, x, now + p, now + q, x, now + p, now + q))
                    before, i = x, now
                for r in range(given):
                    for h in range(0, H, width):
                        _skip(width, (D, h, u, of_u + r * H + h, y, of_y + r * H + h))
                y[of_y + given * H : of_y + rows * H] = 0
                add_product(width, (x, of_x, W, 1, C, 0, H, 1, y, of_y, H, rows, W, H))
            last[n * W : (n + 1) * W] = before[i : i + W]

    @kernel(Spectra)
    def backward(a, B, C, D, u, x0, x, dy, dlast, du, dx0, found, room, sizes, part):  # type: ignore[no-untyped-def]
        T, U, H, P = sizes
        W = 2 * P
        da = part[2] * (W + H + 2 * H * W)
        dD, dC = da + W, da + W + H
        dB = dC + H * W
        carried = part[2] * (_STRETCH + 1) * W  # before the rows of a stretch
        g = carried + W
        for n in range(part[0], part[1]):
            start = n * W
            room[carried:g] = dlast[start : start + W]
            for t in range((T - 1) // _STRETCH * _STRETCH, -1, -_STRETCH):
                rows = min(_STRETCH, T - t)
                given = max(0, min(rows, U - t))
                of_u, of_x, of_y = (n * U + t) * H, (n * T + t) * W, (n * T + t) * H
                multiply(width, (dy, of_y, H, 1, C, 0, W, 1, room, g, W, rows, H, W))
                for p in range(0, W, width):
                    _sum(width, (room, carried + p, room, carried + rows * W + p))
                room[carried:g] = 0
                for r in range(rows - 1, -1, -1):
                    now = g + r * W
                    before, i = (x, of_x + (r - 1) * W) if t + r else (x0, start)
                    for p in range(0, P, width):
                        q = P + p
                        _back(
                            width,
                            (
                                a, p, q, room, now + p, now + q, room, now - W + p, now - W + q, room, now - W + p,
                                now - W + q, before, i + p, i + q, found, da + p, da + q,
                            ),
                        )  # fmt: skip
                for r in range(given):
                    for h in range(0, H, width):
                        j = r * H + h
                        _back_skip(width, (D, h, u, of_u + j, dy, of_y + j, du, of_u + j, found, dD + h))
                add_product(width, (room, g, W, 1, B, 0, H, 1, du, of_u, H, given, W, H))
                add_product(width, (u, of_u, 1, H, room, g, W, 1, found, dB, W, H, given, W))
                add_product(width, (dy, of_y, 1, H, x, of_x, W, 1, found, dC, W, H, rows, W))
            dx0[start : start + W] = room[carried:g]

    return Kernels(forward, backward)
