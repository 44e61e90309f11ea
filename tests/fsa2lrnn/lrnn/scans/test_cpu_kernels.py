"""The compiled loops against the definition in exact integers, word by word, and that a part leaves the rest alone."""

import numpy as np
import pytest

from fsa2lrnn.lrnn.compiled.vectors import WIDEST
from fsa2lrnn.lrnn.scans.cpu_kernels import kernels

SIZES = [1, 2, 3, 4, 5, 7, 8, 16, 17, 20]


def integers(rng, *shape):
    return rng.integers(-2, 3, shape).astype(np.float64)


def definition(A, v, x0, dx):
    """x, dA, dv, dx0 for A (T,b,b), v (T,b), x0 (b,), dx (T,b)."""
    x, g, states, dA, dv = x0, np.zeros_like(x0), [x0], [], []
    for A_k, v_k in zip(A, v, strict=True):
        x = A_k @ x + v_k
        states.append(x)
    for k in range(len(A) - 1, -1, -1):
        g = g + dx[k]
        dv.append(g)
        dA.append(np.outer(g, states[k]))
        g = A[k].T @ g
    b = len(x0)
    return np.reshape(states[1:], (-1, b)), np.reshape(dA[::-1], (-1, b, b)), np.reshape(dv[::-1], (-1, b)), g


@pytest.mark.parametrize("b", SIZES)
@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_part_is_done_by_the_definition_and_the_rest_left_alone(length, b):
    rng, batch, heads = np.random.default_rng(b), 3, 3
    A, v = integers(rng, batch, length, heads, b, b), integers(rng, batch, length, heads, b)
    x0, dx = integers(rng, batch, heads, b), integers(rng, batch, length, heads, b)
    x, dA, dv, dx0 = (np.full_like(like, 77) for like in (v, A, v, x0))
    sizes, part = (length, heads, b), (1, 3, 0, 2)
    run = kernels(b)
    run.forward(A.ravel(), v.ravel(), x0.ravel(), x.ravel(), sizes, part)
    aligned = aligned_copy(dA)
    gradients = [aligned.ravel(), dv.ravel(), dx0.ravel()]
    run.backward(A.ravel(), x0.ravel(), x.ravel(), dx.ravel(), *gradients, True, sizes, part)
    without = [np.full(dA.size, 77.0), dv.copy().ravel(), dx0.copy().ravel()]
    run.backward(A.ravel(), x0.ravel(), x.ravel(), dx.ravel(), *without, False, sizes, part)
    assert (without[0] == 77).all()
    for one, other in zip(gradients[1:], without[1:], strict=True):
        assert np.array_equal(one, other)
    for n in range(batch):
        for h in range(heads):
            done = 1 <= n < 3 and h < 2
            found = x[n, :, h], aligned[n, :, h], dv[n, :, h], dx0[n, h]
            wanted = definition(A[n, :, h], v[n, :, h], x0[n, h], dx[n, :, h])
            for one, other in zip(found, wanted, strict=True):
                assert np.array_equal(one.ravel(), other.ravel()) if done else (one == 77).all()


@pytest.mark.parametrize("b", SIZES)
@pytest.mark.parametrize("length", [1, 2, 6])
def test_tables_are_looked_up_and_their_gradients_added_up(length, b):
    rng, batch, heads, n_rows = np.random.default_rng(b), 3, 3, 2
    tokens = rng.integers(0, n_rows, (batch, length))
    A, v, x0 = integers(rng, n_rows, heads, b, b), integers(rng, n_rows, heads, b), integers(rng, batch, heads, b)
    dx = integers(rng, batch, length, heads, b)
    x, dA, dv, dx0 = np.full_like(dx, 77), np.zeros_like(A), np.zeros_like(v), np.full_like(x0, 77)
    run, sizes, part = kernels(b), (length, heads, b), (0, 2, 1, 3)
    transposed = np.ascontiguousarray(A.swapaxes(-1, -2))
    run.forward_tokens(tokens.ravel(), transposed.ravel(), v.ravel(), x0.ravel(), x.ravel(), sizes, part)
    gradients = [dA.ravel(), dv.ravel(), dx0.ravel()]
    run.backward_tokens(tokens.ravel(), A.ravel(), x0.ravel(), x.ravel(), dx.ravel(), *gradients, sizes, part)
    wanted_dA, wanted_dv = np.zeros_like(A), np.zeros_like(v)
    for n in range(batch):
        for h in range(heads):
            if n == 2 or h == 0:
                assert (x[n, :, h] == 77).all()
                assert (dx0[n, h] == 77).all()
                continue
            word = tokens[n]
            states, of_A, of_v, of_x0 = definition(A[word, h], v[word, h], x0[n, h], dx[n, :, h])
            assert np.array_equal(x[n, :, h], states)
            assert np.array_equal(dx0[n, h], of_x0)
            np.add.at(wanted_dA[:, h], word, of_A.reshape(-1, b, b))
            np.add.at(wanted_dv[:, h], word, of_v)
    assert np.array_equal(dA, wanted_dA)
    assert np.array_equal(dv, wanted_dv)


def aligned_copy(array):
    """The same at a multiple of 64 bytes, as the kernels want what they stream into."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[:] = array
    return copy


@pytest.mark.parametrize("b", [3, 17])
def test_no_letters_no_work(b):
    empty, some = np.empty(0), [np.full(b, 7.0) for _ in range(2)]
    run, rest = kernels(b), ((0, 1, b), (0, 1, 0, 1))
    run.forward(empty, empty, some[0], empty, *rest)
    run.backward(empty, some[0], empty, empty, empty, empty, some[1], True, *rest)
    assert all((array == 7).all() for array in some)


def test_one_compilation_serves_all_large_blocks():
    assert kernels(WIDEST + 1) is kernels(51)
    assert kernels(WIDEST) is not kernels(WIDEST + 1)
    assert kernels(8) is kernels(8)
