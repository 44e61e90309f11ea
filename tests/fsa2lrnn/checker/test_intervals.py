"""Every operation on balls encloses the exact result, for exact elements of the balls: python-flint is the judge."""

from contextlib import suppress

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.checker.errors import UnsupportedInput
from fsa2lrnn.checker.rounding import LONGEST_SUM, Ball, above, inverse, norm, spectral_norm

flint.ctx.prec = 200
numbers = st.floats(-1e3, 1e3, allow_subnormal=False) | st.sampled_from([0.0, 1.0, -1 / 3, 1e-12, 3e15])
radii = st.sampled_from([0.0, 1e-16, 1e-9, 0.25])


@st.composite
def balls(draw, shape):
    """A ball of that shape and, of its elements, one near its edge or its middle, as rational numbers."""
    count = int(np.prod(shape))
    mid = np.array(draw(st.lists(numbers, min_size=count, max_size=count))).reshape(shape)
    rad = np.full(shape, draw(radii))
    weights = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=count, max_size=count))
    pairs = zip(mid.ravel(), rad.ravel(), weights, strict=True)
    return Ball(mid, rad), [rational(m) + w * rational(r) for m, r, w in pairs]


def rational(x):
    return flint.fmpq(*map(int, float(x).as_integer_ratio()))


def holds(ball, exact):
    """Whether the ball holds these numbers: exactly for rational ones, to 200 bits for arb."""
    entries = zip(ball.mid.ravel(), ball.rad.ravel(), exact, strict=True)
    return all(abs(rational(m) - x) <= rational(r) for m, r, x in entries)


@given(balls((3,)), balls((3,)))
def test_entrywise_operations(left, right):
    (a, xs), (b, ys) = left, right
    assert holds(a + b, [x + y for x, y in zip(xs, ys, strict=True)])
    assert holds(a - b, [x - y for x, y in zip(xs, ys, strict=True)])
    assert holds(a * b, [x * y for x, y in zip(xs, ys, strict=True)])
    for x, low, high, size in zip(xs, *a.bounds(), a.size, strict=True):
        assert rational(low) <= x <= rational(high)
        assert abs(x) <= rational(size)


@given(balls((3, 2)), balls((2, 2)))
def test_products_of_matrices(left, right):
    (a, xs), (b, ys) = left, right
    exact = [sum(xs[2 * i + k] * ys[2 * k + j] for k in range(2)) for i in range(3) for j in range(2)]
    assert holds(a @ b, exact)
    assert holds((b.mT @ a.mT).mT, exact)


@pytest.mark.parametrize("n", [64, LONGEST_SUM])
def test_long_sums_with_cancellation(n):
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=(1, n)) * 1e8, rng.normal(size=(n, 1))
    found = Ball.exact(x) @ Ball.exact(y)
    exact = sum((rational(a) * rational(b) for a, b in zip(x[0], y[:, 0], strict=True)), flint.fmpq(0))
    assert holds(found, [exact])
    assert rational(above((np.abs(x) @ np.abs(y))[0, 0])) >= sum(
        (abs(rational(a) * rational(b)) for a, b in zip(x[0], y[:, 0], strict=True)), flint.fmpq(0)
    )


def test_sums_that_are_too_long_are_refused():
    x = Ball.exact(np.ones((1, LONGEST_SUM + 1)))
    with pytest.raises(UnsupportedInput, match=r"a sum of 1,025 terms"):
        x @ x.mT


@given(balls((3, 3)))
def test_inverses(drawn):
    ball, _ = drawn
    matrix = ball.mid
    try:
        found = inverse(matrix)
    except (ZeroDivisionError, np.linalg.LinAlgError):
        return
    exact = flint.fmpq_mat(3, 3, [rational(x) for x in matrix.ravel()]).inv()
    assert holds(found, [exact[i, j] for i in range(3) for j in range(3)])


def test_singular_matrices_have_no_inverse():
    for matrix in (np.zeros((2, 2)), np.array([[1.0, 1.0], [1.0, 1.0 + 1e-17]]), np.full((2, 2), np.nan)):
        with pytest.raises((ZeroDivisionError, np.linalg.LinAlgError), match=r"[Ss]ingular"):
            inverse(matrix)


@given(balls((3, 2)), st.lists(st.integers(-5, 5), min_size=2, max_size=2))
def test_spectral_norms_bound_every_product(drawn, vector):
    ball, xs = drawn
    image = [sum(xs[2 * i + k] * vector[k] for k in range(2)) for i in range(3)]
    squares = sum(x * x for x in image), sum(v * v for v in vector)
    assert squares[0] <= rational(spectral_norm(ball)) ** 2 * squares[1]


def test_spectral_norms_are_close():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(50, 6, 6))
    bound, computed = spectral_norm(Ball.exact(M)), np.linalg.norm(M, 2, axis=(-2, -1))
    assert (bound >= computed).all()
    assert (bound <= computed * (1 + 1e-9)).all()
    assert spectral_norm(Ball.exact(np.zeros((4, 0, 3)))).tolist() == [0] * 4


@pytest.mark.parametrize("entry", [np.nan, np.inf, 1e200])
def test_what_is_not_finite_has_no_finite_spectral_norm(entry):
    M = np.eye(3)
    M[0, 1] = entry
    with np.errstate(all="ignore"), suppress(ArithmeticError, np.linalg.LinAlgError):
        assert not np.isfinite(spectral_norm(Ball.exact(M)))


@given(st.lists(numbers, min_size=4, max_size=4))
def test_norms(entries):
    squares = sum((rational(x) ** 2 for x in entries), flint.fmpq(0))
    assert rational(norm(np.abs(np.array(entries)))) ** 2 >= squares
