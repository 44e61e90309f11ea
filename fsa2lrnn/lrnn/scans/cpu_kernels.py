"""Compiled CPU kernels of the scan x_k = A_k x_{k-1} + v_k and of its gradient, on flat arrays, without torch.

The gradient runs the recurrence backwards: with g_k = ∂L/∂x_k + A_{k+1}ᵀ g_{k+1} it is dA_k = g_k x_{k-1}ᵀ, dv_k = g_k
and dx_0 = A_1ᵀ g_1. So a backward step takes one product with a block and one outer product.

For blocks of size up to `WIDEST` these are vector instructions with one vector per row. Larger blocks use plain loops.
A sum's order is fixed by b, so that results depend neither on the number of threads nor on the run.

Arrays are C-contiguous and one-dimensional; the callers check their sizes and the tokens, the kernels do not. numba
compiles each kernel at its first use, in about half a second, and stores the machine code on disk next to this file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from fsa2lrnn.lrnn.compiled.vectors import WIDEST, fence, instruction, kernel


def _write_product(rows, A, a, x, i, v, j, out, k):
    factor = rows.load(x, i)
    terms = [rows.times(rows.load(A, a, row), factor) for row in range(rows.n)]
    rows.store(rows.plus(rows.sums(terms), rows.load(v, j)), out, k)


def _transposed(rows, A, a, g, v):
    sums = [v, rows.times(rows.repeat(g, 0), rows.load(A, a))]  # two independent sums, computed in parallel
    for row in range(1, rows.n):
        term = rows.times(rows.repeat(g, row), rows.load(A, a, row))
        sums = [sums[1], rows.plus(sums[0], term)]
    return rows.plus(*sums)


def _write_transposed(rows, A, a, g, i, v, j, out, k):
    rows.store(_transposed(rows, A, a, rows.load(g, i), rows.load(v, j)), out, k)


# The backward steps load before they store: a load from A would wait for a store to dA whose address differs by a
# multiple of the page size.
def _write_back(rows, A, a, g, i, v, j, out, k, x, m, dA):
    left, right = rows.load(g, i), rows.load(x, m)
    rows.store(_transposed(rows, A, a, left, rows.load(v, j)), out, k)
    for row in range(rows.n):
        rows.stream(rows.times(rows.repeat(left, row), right), dA, a, row)


def _write_back_adding(rows, A, a, g, i, v, j, out, k, x, m, dA, dv, c):
    left, right = rows.load(g, i), rows.load(x, m)
    rows.store(_transposed(rows, A, a, left, rows.load(v, j)), out, k)
    for row in range(rows.n):
        rows.store(rows.plus(rows.load(dA, a, row), rows.times(rows.repeat(left, row), right)), dA, a, row)
    rows.store(rows.plus(rows.load(dv, c), left), dv, c)


_product = instruction(_write_product)  # out = A x + v
_transposed_product = instruction(_write_transposed)  # out = Aᵀ g + v
_back = instruction(_write_back)  # out = Aᵀ g + v and dA = g xᵀ
_back_adding = instruction(_write_back_adding)  # out = Aᵀ g + v, dA += g xᵀ and dv += g


@njit(fastmath={"reassoc", "contract"})  # lets the sum of a row be kept in several parts
def _product_loop(b, A, a, x, i, v, j, out, k):
    for row in range(b):
        total = v[j + row]
        for column in range(b):
            total += A[a + row * b + column] * x[i + column]
        out[k + row] = total


@njit(fastmath={"contract"})
def _transposed_product_loop(b, A, a, g, i, v, j, out, k):
    for column in range(b):
        out[k + column] = v[j + column]
    for row in range(b):
        for column in range(b):
            out[k + column] += g[i + row] * A[a + row * b + column]


@njit
def _outer_loop(b, g, i, x, j, dA, a):
    for row in range(b):
        for column in range(b):
            dA[a + row * b + column] = g[i + row] * x[j + column]


@njit(fastmath={"contract"})
def _add_loop(b, g, i, x, j, dA, a, dv, k):
    for row in range(b):
        dv[k + row] += g[i + row]
        for column in range(b):
            dA[a + row * b + column] += g[i + row] * x[j + column]


class BlockScanKernels(NamedTuple):
    """The kernels for blocks of one size. `sizes` is (T, H, b), `part` the range of words and heads (n0, n1, h0, h1).

    For T = 0 they write nothing, not even dx0.

    - forward(A, v, x0, x, sizes, part): writes x (B,T,H,b) from A (B,T,H,b,b), v (B,T,H,b), x0 (B,H,b).
    - backward(A, x0, x, dx, dA, dv, dx0, with_A, sizes, part): writes dv, dx0 and, if `with_A`, dA (64-byte aligned).
    - forward_tokens(tokens, AT, v, x0, x, sizes, part): blocks (N,H,b,b), *transposed*, and v (N,H,b) by token (B,T).
    - backward_tokens(tokens, A, x0, x, dx, dA, dv, dx0, sizes, part): writes dx0 and adds to dA and dv.
    """

    forward: Callable[..., None]
    backward: Callable[..., None]
    forward_tokens: Callable[..., None]
    backward_tokens: Callable[..., None]


def kernels(b: int) -> BlockScanKernels:
    """Return the kernels for blocks of size b: compiled for each b up to `WIDEST`, and once for all larger sizes."""
    return _kernels(b if b <= WIDEST else 0)


@lru_cache
def _kernels(width: int) -> BlockScanKernels:
    # `width` is a constant to the compiler, which drops the branch that is not taken; 0 stands for any size. A kernel
    # that closed over a compiled function, such as a product chosen here, would not be found on disk again.
    @kernel()
    def forward(A, v, x0, x, sizes, part):
        T, H, b = sizes
        n0, n1, h0, h1 = part
        for n in range(n0, n1):
            for t in range(T):
                for h in range(h0, h1):
                    now = (n * T + t) * H + h
                    before, i = (x, (now - H) * b) if t else (x0, (n * H + h) * b)
                    if width:
                        _product(width, (A, now * b * b, before, i, v, now * b, x, now * b))
                    else:
                        _product_loop(b, A, now * b * b, before, i, v, now * b, x, now * b)

    @kernel()
    def backward(A, x0, x, dx, dA, dv, dx0, with_A, sizes, part):
        T, H, b = sizes
        n0, n1, h0, h1 = part
        zero = np.zeros(b, A.dtype)
        for n in range(n0, n1):
            if T:
                last = (n * T + T - 1) * H * b
                for i in range(last + h0 * b, last + h1 * b):
                    dv[i] = dx[i]
            for t in range(T - 1, -1, -1):
                for h in range(h0, h1):
                    now = (n * T + t) * H + h
                    start = (n * H + h) * b
                    before, i = (x, (now - H) * b) if t else (x0, start)
                    above, j = (dx, i) if t else (zero, 0)
                    below, k = (dv, i) if t else (dx0, start)
                    if width:
                        if with_A:
                            _back(width, (A, now * b * b, dv, now * b, above, j, below, k, before, i, dA))
                        else:
                            _transposed_product(width, (A, now * b * b, dv, now * b, above, j, below, k))
                    else:
                        if with_A:
                            _outer_loop(b, dv, now * b, before, i, dA, now * b * b)
                        _transposed_product_loop(b, A, now * b * b, dv, now * b, above, j, below, k)
        fence()

    @kernel()
    def forward_tokens(tokens, AT, v, x0, x, sizes, part):
        T, H, b = sizes
        n0, n1, h0, h1 = part
        for n in range(n0, n1):
            for t in range(T):
                cell = tokens[n * T + t] * H
                for h in range(h0, h1):
                    now = (n * T + t) * H + h
                    table = cell + h
                    before, i = (x, (now - H) * b) if t else (x0, (n * H + h) * b)
                    if width:
                        _transposed_product(width, (AT, table * b * b, before, i, v, table * b, x, now * b))
                    else:
                        _transposed_product_loop(b, AT, table * b * b, before, i, v, table * b, x, now * b)

    @kernel()
    def backward_tokens(tokens, A, x0, x, dx, dA, dv, dx0, sizes, part):
        T, H, b = sizes
        n0, n1, h0, h1 = part
        zero = np.zeros(b, A.dtype)
        g = np.empty(2 * H * b, A.dtype)  # that of this step and of the one before, in turns
        for n in range(n0, n1):
            if T:
                last = (n * T + T - 1) * H * b
                for i in range(h0 * b, h1 * b):
                    g[(T - 1) % 2 * H * b + i] = dx[last + i]
            for t in range(T - 1, -1, -1):
                cell = tokens[n * T + t] * H
                for h in range(h0, h1):
                    now = (n * T + t) * H + h
                    start = (n * H + h) * b
                    table, turn, other = cell + h, (t % 2 * H + h) * b, ((t + 1) % 2 * H + h) * b
                    before, i = (x, (now - H) * b) if t else (x0, start)
                    above, j = (dx, i) if t else (zero, 0)
                    below, k = (g, other) if t else (dx0, start)
                    if width:
                        _back_adding(
                            width, (A, table * b * b, g, turn, above, j, below, k, before, i, dA, dv, table * b)
                        )
                    else:
                        _add_loop(b, g, turn, before, i, dA, table * b * b, dv, table * b)
                        _transposed_product_loop(b, A, table * b * b, g, turn, above, j, below, k)

    return BlockScanKernels(forward, backward, forward_tokens, backward_tokens)
