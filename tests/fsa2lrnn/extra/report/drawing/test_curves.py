"""Curves, ranks and rasters."""

import io
import itertools
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import BudgetExceeded, MissingPackage
from fsa2lrnn.extra.report.drawing.curves import along, arc, between, head, loop, through, towards, widest_gap
from fsa2lrnn.extra.report.drawing.layout import lay_out
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.drawing.moore import png
from fsa2lrnn.extra.report.drawing.ranks import columns_of, distances, rank, spread


def test_arrows_end_at_circles_and_there_and_back_are_apart():
    a, b, r = (0.0, 0.0), (200.0, 40.0), 20.0
    for curve in (arc(a, b, 0.1, r), between(a, b, r, 9.0), through([a, (100.0, 90.0), b], r)):
        assert len(curve) % 3 == 1
        assert math.dist(curve[0], a) == pytest.approx(r)
        assert math.dist(curve[-1], b) == pytest.approx(r + 5)
        assert all(math.dist(p, a) > r - 1 and math.dist(p, b) > r for p in along(curve))
    a, b = (0.0, 0.0), (150.0, 0.0)
    for there, back in ((arc(a, b, 0, 20, True), arc(b, a, 0, 20, True)), (between(a, b, 20, 9), between(b, a, 20, 9))):
        middles = [along(curve)[6] for curve in (there, back)]
        assert abs(middles[0][1] - middles[1][1]) > 8


def test_curves_pass_waypoints_and_loops_their_direction():
    points = [(0.0, 0.0), (100.0, 60.0), (200.0, -10.0), (300.0, 0.0)]
    curve = through(points, 10)
    assert curve[3] == points[1]
    assert curve[6] == points[2]
    before, after = ((q[0] - p[0], q[1] - p[1]) for p, q in ((curve[2], curve[3]), (curve[3], curve[4])))
    assert before[0] * after[1] == pytest.approx(before[1] * after[0])
    tip, left, right = head(((0, 0), (1, 0), (9, 0), (10, 0)))
    assert tip == (14, 0)
    assert left[0] == pytest.approx(right[0])
    assert left[0] < tip[0]
    assert left[1] == -right[1]
    xs, ys = zip(*along(loop((0, 0), 20, -math.pi / 2)), strict=True)
    assert max(ys) < 0
    assert sum(xs) / len(xs) == pytest.approx(0, abs=1)
    assert widest_gap([0.0], 1.0) == pytest.approx(math.pi, abs=1e-6) or widest_gap([0.0], 1.0) == pytest.approx(
        -math.pi
    )
    assert towards((0, 0), (10, 0), 4) == (4, 0)
    assert widest_gap([0.0, math.pi], -1.0) == pytest.approx(-math.pi / 2)


def crossings(columns, edges):
    """By looking at every pair of edges."""
    place = {node: (c, i) for c, column in enumerate(columns) for i, node in enumerate(column)}
    ends = [sorted((place[a], place[b])) for a, b in edges]
    return sum(
        (a[1] - c[1]) * (b[1] - d[1]) < 0
        for (a, b), (c, d) in itertools.combinations(ends, 2)
        if a[0] == c[0] and b[0] == d[0]
    )


def test_knots_and_long_edges():
    edges = [(0, 6), (1, 5), (2, 4), (3, 4), (4, 9), (5, 8), (6, 7)]
    found = rank([0] * 4 + [1] * 3 + [2] * 3, edges, 50, 20)
    assert crossings(found.columns, edges) == 0
    found = rank([0, 1, 2, 3], [(0, 1), (1, 2), (2, 3), (0, 3), (3, 1)], 50, 20)
    assert [len(found.routes[edge]) for edge in ((0, 1), (0, 3), (3, 1))] == [0, 2, 1]
    where = {node: c for c, column in enumerate(found.columns) for node in column}
    assert [where[node] for node in found.routes[0, 3]] == [1, 2]
    assert where[found.routes[3, 1][0]] == 2
    assert all(not route for route in rank([0, 1, 2], [(0, 2)], 50, None).routes.values())


def test_columns_and_levels():
    edges = [(0, q) for q in range(1, 8)] + [(q, 8) for q in range(4, 8)]
    steps = distances(9, edges, 0)
    assert steps == [0] + [1] * 7 + [2]
    found = columns_of(steps, edges, 4)
    assert found[0] == 0
    assert sorted(found[1:8]) == [1] * 4 + [2] * 3
    assert found[8] == 3
    assert set(found[4:7]) <= {1, 2}
    assert found[1] == found[2] == found[3] == 1  # what leads on comes last
    found = rank([0, 1, 1, 2], [(0, 1), (1, 3)], 50, 20)
    assert found.height[0] == pytest.approx(found.height[1], abs=0.1) == pytest.approx(found.height[3], abs=0.1)


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(1, 5)), min_size=1, max_size=6))
def test_places_are_apart_and_no_shift_of_a_part_is_nearer(pairs):
    wanted, halves = (list(part) for part in zip(*pairs, strict=True))
    found = spread(wanted, halves)
    gaps = np.diff(found) - (np.array(halves[:-1]) + halves[1:])
    assert (gaps > -1e-9).all()
    cost = np.square(np.subtract(found, wanted)).sum()
    for i, j, step in itertools.product(range(len(found)), range(len(found)), (-1e-3, 1e-3)):
        moved = np.array(found)
        moved[min(i, j) : max(i, j) + 1] += step
        if (np.diff(moved) - (np.array(halves[:-1]) + halves[1:]) > -1e-9).all():
            assert np.square(moved - wanted).sum() > cost - 1e-9


def drawn(machine):
    return DrawnMachine.of(machine.delta, machine.outputs, machine.start, machine.alphabet, machine.labels)


def test_circles_of_the_layout_and_dollars():
    image = pytest.importorskip("matplotlib.image")
    machine = drawn(zoo.even_pair(5).minimise())
    layout, pixels = lay_out(machine), image.imread(io.BytesIO(png(machine)))
    height, width = pixels.shape[:2]
    assert abs(width - 2 * layout.size[0]) <= 2
    assert abs(height - 2 * layout.size[1]) <= 2
    for x, y in layout.places:
        inside = pixels[round(2 * (y - layout.radius + 5)), round(2 * x), :3]
        assert np.abs(inside - np.array([0xEA, 0xF0, 0xFC]) / 255).max() < 0.02
    assert (pixels[0, :, :3] == 1).all()
    pytest.importorskip("matplotlib")
    assert png(DrawnMachine.of([[0], [0]], ["$x$"], 0, ["$", "\\frac{"]))[:4] == b"\x89PNG"


def test_what_is_refused(monkeypatch):
    with pytest.raises(BudgetExceeded, match="61 states and a drawing shows up to 60: minimise it, or write"):
        png(drawn(zoo.sum_mod(61)))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackage, match=r'pip install "fsa2lrnn\[plot\]", or write \.svg'):
        png(drawn(zoo.parity()))
