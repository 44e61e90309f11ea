import math

import pytest

from fsa2lrnn.extra.report.drawing.curves import along, arc, between, head, loop, through, towards, widest_gap


def test_arrows_begin_on_their_circle_and_end_a_head_before_the_other():
    a, b, r = (0.0, 0.0), (200.0, 40.0), 20.0
    for curve in (arc(a, b, 0.1, r), between(a, b, r, 9.0), through([a, (100.0, 90.0), b], r)):
        assert len(curve) % 3 == 1
        assert math.dist(curve[0], a) == pytest.approx(r)
        assert math.dist(curve[-1], b) == pytest.approx(r + 5)
        assert all(math.dist(p, a) > r - 1 and math.dist(p, b) > r for p in along(curve))


def test_there_and_back_are_apart():
    a, b = (0.0, 0.0), (150.0, 0.0)
    for there, back in ((arc(a, b, 0, 20, True), arc(b, a, 0, 20, True)), (between(a, b, 20, 9), between(b, a, 20, 9))):
        middles = [along(curve)[6] for curve in (there, back)]
        assert abs(middles[0][1] - middles[1][1]) > 8


def test_a_curve_passes_its_waypoints_without_a_corner():
    points = [(0.0, 0.0), (100.0, 60.0), (200.0, -10.0), (300.0, 0.0)]
    curve = through(points, 10)
    assert curve[3] == points[1]
    assert curve[6] == points[2]
    before, after = ((q[0] - p[0], q[1] - p[1]) for p, q in ((curve[2], curve[3]), (curve[3], curve[4])))
    assert before[0] * after[1] == pytest.approx(before[1] * after[0])


def test_heads_point_the_way_of_the_curve():
    tip, left, right = head(((0, 0), (1, 0), (9, 0), (10, 0)))
    assert tip == (14, 0)
    assert left[0] == pytest.approx(right[0])
    assert left[0] < tip[0]
    assert left[1] == -right[1]


def test_loops_stand_in_their_direction():
    xs, ys = zip(*along(loop((0, 0), 20, -math.pi / 2)), strict=True)
    assert max(ys) < 0
    assert sum(xs) / len(xs) == pytest.approx(0, abs=1)


def test_gaps_and_directions():
    assert widest_gap([0.0], 1.0) == pytest.approx(math.pi, abs=1e-6) or widest_gap([0.0], 1.0) == pytest.approx(
        -math.pi
    )
    assert towards((0, 0), (10, 0), 4) == (4, 0)
    assert widest_gap([0.0, math.pi], -1.0) == pytest.approx(-math.pi / 2)
