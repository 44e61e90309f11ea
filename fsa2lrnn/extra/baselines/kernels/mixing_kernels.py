"""Kernels for `mixing`: GELUs, and gates with the matrix products between them, a few rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from fsa2lrnn.extra.baselines.kernels.activations import Activations
from fsa2lrnn.lrnn.compiled.products import Products, add_product, multiply
from fsa2lrnn.lrnn.compiled.vectors import instruction, kernel
from fsa2lrnn.lrnn.compiled.widths import by_width

BESIDE, OWN, INPUT = range(3)  # what z gates: what lies beside it, its own input g, or the input y of all
_ROWS = 32  # that go all the way together
_APART = 16  # numbers between arrays of scratch: no two of them lie at the same place of their pages


def scratch(H: int) -> int:
    """How many numbers of scratch a part needs, where rows are H wide."""
    return _ROWS * 4 * H + 2 * _APART


class Gates(Activations, Products):
    """Instructions on rows of numbers: activations, and products of matrices."""


def _write_gelu(rows: Gates, y: Any, i: Any, g: Any, j: Any, slope: Any, k: Any, is_tanh: Any) -> None:
    def write(found: tuple[Any, Any]) -> None:
        rows.store(found[0], g, j)
        rows.store(found[1], slope, k)

    v = rows.load(y, i)
    rows.choose(is_tanh, lambda: write(rows.approximate_gelu(v)), lambda: write(rows.gelu(v)))


def _gated(rows: Gates, x: Any, j: Any, of_x: Any, z: Any, k: Any, b: Any, of_z: Any) -> tuple[Any, Any]:
    """σ(z), and what it lets through of x."""
    gate = rows.sigmoid(rows.plus(rows.load(z, k), rows.load(b, of_z)))
    return gate, rows.times(rows.plus(rows.load(x, j), rows.load(b, of_x)), gate)


def _write_gate(rows: Gates, x: Any, j: Any, of_x: Any, z: Any, k: Any, b: Any, of_z: Any, out: Any, i: Any) -> None:
    rows.store(_gated(rows, x, j, of_x, z, k, b, of_z)[1], out, i)


def _write_back_gate(
    rows: Gates, x: Any, j: Any, of_x: Any, z: Any, k: Any, b: Any, of_z: Any, dout: Any, i: Any, found: Any, m: Any,
    n: Any, sums: Any, sum_x: Any, sum_z: Any,
) -> None:  # fmt: skip
    gate, value = _gated(rows, x, j, of_x, z, k, b, of_z)
    given = rows.load(dout, i)
    dx, dz = rows.times(given, gate), rows.times(given, rows.times(value, rows.minus(rows.constant(1.0), gate)))
    for gradient, place, total in ((dx, m, sum_x), (dz, n, sum_z)):
        rows.store(gradient, found, place)
        rows.store(rows.plus(rows.load(sums, total), gradient), sums, total)


def _write_back_gelu(
    rows: Gates, dy: Any, i: Any, slope: Any, j: Any, dx: Any, k: Any, before: bool, after: bool
) -> None:
    found = rows.load(dy, i)
    found = rows.plus(found, rows.load(dx, k)) if before else found
    found = rows.times(found, rows.load(slope, j))
    rows.store(rows.plus(found, rows.load(dx, k)) if after else found, dy, i)


_gelu, _gate, _back_gate = (instruction(write, Gates) for write in (_write_gelu, _write_gate, _write_back_gate))
_back_gelu = instruction(partial(_write_back_gelu, before=False, after=False), Gates)
_back_own_gelu = instruction(partial(_write_back_gelu, before=True, after=False), Gates)
_back_input_gelu = instruction(partial(_write_back_gelu, before=False, after=True), Gates)


class Kernels(NamedTuple):
    """Kernels on flat arrays, `H` the width, `part` the rows (n0, n1) to do, with gates also the number of the
    part.

    - gelu(y, g, slope, is_tanh, H, part): writes g and its derivative (N, H).
    - forward(y, W, bias, out, kept, keeps, room, gated, is_tanh, H, part): W transposed (H, G), the biases of x and of
      z (2H,), room (parts, scratch(H)), x among `BESIDE`, `OWN` and `INPUT`; writes out (N, H), and if it `keeps` them
      the products W g (N, G).
    - backward(y, W, kept, bias, dout, dy, dW, db, room, gated, is_tanh, H, part): W (G, H); writes dy (N, H), adds to
      dW (shares, G, H) and to db (shares, 2H).
    """

    gelu: Callable[..., None]
    forward: Callable[..., None]
    backward: Callable[..., None]


@by_width
def kernels(width: int) -> Kernels:
    @kernel(Gates)
    def gelu(y, g, slope, is_tanh, H, part):  # type: ignore[no-untyped-def]
        for i in range(part[0] * H, part[1] * H, width):
            _gelu(width, (y, i, g, i, slope, i, is_tanh))

    @kernel(Gates)
    def forward(y, W, bias, out, kept, keeps, room, gated, is_tanh, H, part):  # type: ignore[no-untyped-def]
        G = 2 * H if gated == BESIDE else H
        g = part[2] * (_ROWS * 4 * H + 2 * _APART)
        slope = g + _ROWS * H + _APART
        made = kept if keeps else room
        for n in range(part[0], part[1], _ROWS):
            rows = min(_ROWS, part[1] - n)
            z = n * G if keeps else slope + _ROWS * H + _APART
            for i in range(0, rows * H, width):
                _gelu(width, (y, n * H + i, room, g + i, room, slope + i, is_tanh))
            multiply(width, (room, g, H, 1, W, 0, G, 1, made, z, G, rows, H, G))
            for r in range(rows):
                for h in range(0, H, width):
                    i, k = (n + r) * H + h, z + r * G + G - H + h
                    if gated == BESIDE:
                        _gate(width, (made, z + r * G + h, h, made, k, bias, H + h, out, i))
                    elif gated == OWN:
                        _gate(width, (room, g + r * H + h, h, made, k, bias, H + h, out, i))
                    else:
                        _gate(width, (y, i, h, made, k, bias, H + h, out, i))

    @kernel(Gates)
    def backward(y, W, kept, bias, dout, dy, dW, db, room, gated, is_tanh, H, part):  # type: ignore[no-untyped-def]
        G = 2 * H if gated == BESIDE else H
        g = part[2] * (_ROWS * 4 * H + 2 * _APART)
        slope = g + _ROWS * H + _APART
        found = slope + _ROWS * H + _APART  # gradients of x beside those of z
        of_W, of_b = part[2] * G * H, part[2] * 2 * H
        for n in range(part[0], part[1], _ROWS):
            rows = min(_ROWS, part[1] - n)
            for i in range(0, rows * H, width):
                _gelu(width, (y, n * H + i, room, g + i, room, slope + i, is_tanh))
            for r in range(rows):
                for h in range(0, H, width):
                    i, k, j = (n + r) * H + h, (n + r + 1) * G - H + h, found + 2 * r * H + h
                    d, e = of_b + h, of_b + H + h
                    if gated == BESIDE:
                        x = (n + r) * G + h
                        _back_gate(width, (kept, x, h, kept, k, bias, H + h, dout, i, room, j, j + H, db, d, e))
                    elif gated == OWN:
                        x = g + r * H + h
                        _back_gate(width, (room, x, h, kept, k, bias, H + h, dout, i, room, j, j + H, db, d, e))
                    else:
                        _back_gate(width, (y, i, h, kept, k, bias, H + h, dout, i, room, j, j + H, db, d, e))
            dz = found + 2 * H - G
            multiply(width, (room, dz, 2 * H, 1, W, 0, H, 1, dy, n * H, H, rows, G, H))
            add_product(width, (room, dz, 1, 2 * H, room, g, H, 1, dW, of_W, H, G, rows, H))
            for r in range(rows):
                for h in range(0, H, width):
                    i, j, k = (n + r) * H + h, slope + r * H + h, found + 2 * r * H + h
                    if gated == BESIDE:
                        _back_gelu(width, (dy, i, room, j, room, k))
                    elif gated == OWN:
                        _back_own_gelu(width, (dy, i, room, j, room, k))
                    else:
                        _back_input_gelu(width, (dy, i, room, j, room, k))

    return Kernels(gelu, forward, backward)
