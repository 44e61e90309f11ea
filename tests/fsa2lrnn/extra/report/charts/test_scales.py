import pytest

from fsa2lrnn.extra.report.charts.horizon import fit, linear, logarithmic, symmetric


def test_ends_go_to_ends():
    assert [linear(2, 4, 10, 30)(x) for x in (2, 3, 4)] == [10, 20, 30]
    assert linear(2, 2, 10, 30)(7) == 20
    assert [logarithmic(1, 100, 0, 2)(x) for x in (1, 10, 100)] == pytest.approx([0, 1, 2])


def test_the_symmetric_logarithm():
    assert [symmetric(x) for x in (-1, -0.1, 0, 1e-5, -1e-6, 0.01, 1)] == pytest.approx([-5, -4, 0, 0, 0, 3, 5])


def test_points_fit_into_a_square_y_upwards():
    place = fit([(2.0, 0.0), (0.0, -1.0)], 100, 10)
    assert place(2, 0) == pytest.approx((90, 50))
    assert place(0, -1) == pytest.approx((50, 70))
    assert fit([], 100, 10)(0, 0) == (50, 50)
