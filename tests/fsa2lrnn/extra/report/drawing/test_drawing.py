"""Drawn automata: layout, labels, boxes and curves."""

import io
import itertools
import math
import re
import string
import sys
import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import decompose
from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.errors import BudgetExceeded, MissingPackage
from fsa2lrnn.extra.report.drawing.automaton import LOOK, alone, automaton, notes
from fsa2lrnn.extra.report.drawing.boxes import boxes
from fsa2lrnn.extra.report.drawing.curves import Box, along, arc, between, head, loop, through, towards, widest_gap
from fsa2lrnn.extra.report.drawing.labels import HEIGHT, LabelRequest, overlap, place, short_list, width
from fsa2lrnn.extra.report.drawing.layout import DRAWN, lay_out
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine, transitions
from fsa2lrnn.extra.report.drawing.moore import png
from fsa2lrnn.extra.report.drawing.ranks import columns_of, distances, rank, spread

NASTY = '<b a="1">&'


def drawn(machine):
    return DrawnMachine.of(machine.delta, machine.outputs, machine.start, machine.alphabet, machine.labels)


@pytest.mark.parametrize("source", ["sum_mod(5)", "even_pair(5)", "group(S4)", "tomita(3)", "dyck(2, 3)"])
def test_every_state_and_arrow_is_drawn(source):
    machine = drawn(zoo.from_task(source).minimise())
    found = automaton(machine)
    assert found.count('class="node"') == len(machine.states)
    folded = len(re.findall('class="place folded"', found))
    assert found.count('class="edge"') == sum(
        not (folded and all(row[then] == then for row in machine.delta)) for _, then in machine.arrows
    )
    assert found.count('class="edge start"') == 1
    assert found == automaton(machine)


def test_single_states_rings_and_large_machines():
    found = automaton(drawn(MooreMachine([[0]], ["x"])))
    assert found.count('class="node"') == found.count('class="edge"') == 1
    assert automaton(drawn(zoo.parity())).count("node inner") == 1
    found = automaton(DrawnMachine(["p", "q"], ["a"], ["(1,2,3)", "quiescent"], [[1, 0]], 0))
    assert re.findall(r'class="label tiny faint">([^<]*)<', found) == ["(1,2,…", "quies…"]
    assert "node inner" not in found
    assert automaton(drawn(zoo.sum_mod(61))) is None
    assert alone(drawn(zoo.sum_mod(61))) is None


def test_text_is_escaped_and_notes_are_written():
    machine = DrawnMachine(["even", NASTY], ["a", NASTY], ["yes", "no"], [[0, 1], [1, 0]], 0)
    for text in (automaton(machine), alone(machine)):
        assert "<b" not in text
        titles = [title.text for title in ET.fromstring(text).iter() if title.tag.endswith("title")]
        assert "even → even: a" in titles
        assert f"{NASTY} → even: {NASTY}" in titles
        assert f"state {NASTY}, output no" in titles
    assert notes(drawn(MooreMachine.from_source("regex:abcd"))) == [
        "Letters that are not drawn lead to the sink 2, which none leaves."
    ]
    assert notes(drawn(zoo.sum_mod(5))) == []
    assert notes(drawn(zoo.sum_mod(61))) == ["It has 61 states; up to 60 are drawn."]
    assert "arrows have no room for their letters" in notes(drawn(zoo.mod_arith(5).minimise()))[1]


@pytest.mark.parametrize("letter", ["\0", "\x1b", "\x85", "\n", "\ud800"])
def test_letters_that_show_nothing_are_escaped_in_a_file_that_can_be_read(letter):
    machine = MooreMachine([[1, 1], [0, 0]], (letter, "x"), alphabet=(letter, "a"))
    found = ET.fromstring(machine.to_svg().encode())
    shown = letter.encode("unicode_escape").decode()
    assert shown in [part.text for part in found.iter() if "halo" in (part.get("class") or "")]
    assert machine.to_png().startswith(b"\x89PNG")


def test_files_stand_alone_and_cascades_have_boxes():
    root = ET.fromstring(alone(drawn(zoo.sum_mod(3))))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(root.get("width")) == float(root.get("viewBox").split()[2])
    style = next(child.text for child in root if child.tag.endswith("style"))
    used = {name for part in root.iter() for name in (part.get("class") or "").split()}
    assert all(f".{name}" in style for name in used - {"arrow", "place", "automaton", "start"})
    assert "var(" not in style
    assert "var(" in LOOK
    svg = boxes("t", [["a"], ["b", "<long & longer>"], ["c"], ["d"]], [0, 0, 1, 2], [(0, 2), (2, 3), (1, 3)], [3])
    found = rects(svg)
    assert not any(overlap(a, b) for i, a in enumerate(found) for b in found[:i])
    assert found[0][1] == found[1][1] > found[2][1] > found[3][1]
    assert svg.count('class="edge"') == 3
    assert svg.count('class="node"') == 1
    assert svg.count('class="node plain"') == 3
    size = [float(x) for x in ET.fromstring(svg).get("viewBox").split()]
    assert all(box[0] > 0 and box[1] > 0 and box[2] < size[2] and box[3] < size[3] for box in found)
    found = decompose(zoo.mod_arith(5))
    svg = found.cascade._repr_svg_()
    assert svg == found._repr_svg_()
    assert len(rects(svg)) == len(found.cascade.components)
    assert svg.count('class="edge"') == sum(len(component.reads) for component in found.cascade.components)


def rects(svg):
    found: list[Box] = []
    for part in ET.fromstring(svg).iter():
        if part.tag.endswith("rect") and "node" in part.get("class"):
            x, y, width, height = (float(part.get(name)) for name in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def boxes_of_labels(found, wanted):
    width = {label.key: label.width for label in wanted}
    return [(x - width[k] / 2, y - HEIGHT / 2, x + width[k] / 2, y + HEIGHT / 2) for k, (x, y) in found.items()]


def test_labels_keep_apart_or_are_left_out():
    curves = {(0, i): arc((0, 0), (200, 14.0 * i), 0.05, 10) for i in range(6)}
    wanted = [LabelRequest(key, 30, along(curve)) for key, curve in curves.items()]
    taken = [(-12.0, -12.0, 12.0, 12.0), (90.0, 0.0, 110.0, 60.0)]
    found = place(wanted, taken)
    assert len(found) == 6
    assert not any(overlap(a, b) for a, b in combinations([*boxes_of_labels(found, wanted), *taken], 2))
    wanted = [LabelRequest((0, 1), 30, [(0, 0), (50, 0), (100, 0)])]
    assert place(wanted, [(-100, -100, 300, 300)]) == {}
    assert place(wanted, [(0, -30, 100, 0)])[0, 1][1] > 0


TASKS = (
    "sum_mod(2)", "sum_mod(5)", "sum_mod(12)", "even_pair(5)", "group(S3)", "group(S4)", "tomita(3)", "tomita(5)",
    "dyck(2, 3)", "mod_arith(5)", "cycle_navigation(7)",
)  # fmt: skip
REGEXES = ("(ab)*", "(a|b)*abb(a|b)", "[0-9]+(\\.[0-9]+)?(e[0-9]+)?", "a(b|c)d*|aa(b|cc)*", "(a|b)(a|b)(a|b)(a|b)")


@pytest.mark.parametrize("source", [*(f"task:{task}" for task in TASKS), *(f"regex:{regex}" for regex in REGEXES)])
def test_circles_labels_and_borders_keep_apart(source):
    machine = drawn(MooreMachine.from_source(source).minimise())
    layout = lay_out(machine)
    r = layout.radius
    assert min((math.dist(a, b) for a, b in combinations(layout.places, 2)), default=99) > 2 * r + 6
    circles = [(x - r, y - r, x + r, y + r) for x, y in layout.places]
    labels = []
    for arrow in layout.arrows:
        if arrow.label is not None and not layout.is_dense:
            (x, y), half = arrow.label, width(arrow.letters) / 2
            labels.append((x - half, y - HEIGHT / 2, x + half, y + HEIGHT / 2))
    assert not any(overlap(label, other) for label in labels for other in circles)
    assert not any(overlap(a, b) for a, b in combinations(labels, 2))
    for left, top, right, bottom in [*labels, *circles]:
        assert left >= 0
        assert top >= 0
        assert right <= layout.size[0]
        assert bottom <= layout.size[1]
    assert layout.is_dense or len(labels) == len(layout.arrows)
    assert {arrow.edge for arrow in layout.arrows} == {e for e in machine.arrows if e[1] != layout.folded}
    assert lay_out(machine) == layout


def test_arrows_keep_their_distance_and_sinks_are_folded():
    machine = drawn(MooreMachine.from_source("regex:(a|b)(a|b)(a|b)|c"))
    layout = lay_out(machine)
    for arrow in layout.arrows:
        for q, centre in enumerate(layout.places):
            if q not in arrow.edge:
                assert min(math.dist(p, centre) for p in along(arrow.curve)) > layout.radius
    machine = drawn(MooreMachine.from_source("regex:abcd"))
    layout = lay_out(machine)
    assert layout.folded is not None
    assert all(row[layout.folded] == layout.folded for row in machine.delta)
    assert len(layout.arrows) == 4
    assert lay_out(drawn(MooreMachine.from_source("regex:(ab)*"))).folded is None
    assert lay_out(drawn(zoo.sum_mod(5))).folded is None
    delta = np.array([[3, 4, 0, 5, 2, 1]])  # 0 → 3 → 5 → 1 → 4 → 2 → 0
    layout = lay_out(DrawnMachine.of(delta, range(6), 0, "a"))
    q, order = 0, [0]
    while len(order) < 6:
        q = delta[0, q]
        order.append(q)
    steps = [math.dist(layout.places[a], layout.places[b]) for a, b in zip(order, [*order[1:], 0], strict=True)]
    assert max(steps) < 1.35 * min(steps)


@pytest.mark.parametrize("n", [1, DRAWN, DRAWN + 1])
def test_sizes(n):
    layout = lay_out(DrawnMachine.of([[(q + 1) % n for q in range(n)], [0] * n], range(n), 0, "ab"))
    assert (layout is None) == (n > DRAWN)


def test_letters_of_arrows_and_wide_characters():
    letters = [*string.ascii_lowercase, "_"]
    assert short_list(range(26), letters) == "a–z"
    assert short_list(range(27), letters) == "any"
    assert short_list([0, 1, 2, 25], letters) == "a, b, c, z"
    assert short_list([*range(3), *range(4, 27)], letters) == "not d"
    assert short_list(range(0, 26, 2), letters) == "a, c, e, g, i, …"
    assert short_list([0, 1], ["0", "1"]) == "0, 1"
    assert short_list([1], ["-", "tick tock"]) == "tick tock"
    assert short_list([1, 2], ["-", "tick tock", "two"]) == "not -"
    assert short_list([0, 1, 3], ["0", "1", "2?", "2?"], names_others=False) == "0, 1, 2?"
    assert short_list([0, 1, 2], ["0", "1", "2"], names_others=False) == "0, 1, 2"
    assert width("文字") > width("ab")
    assert width("") < width("a")


pytestmark = pytest.mark.extra("report")


def program(folder, text):
    path = folder / "dot"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_graphviz_draws_where_it_is_installed(tmp_path, monkeypatch):
    machine = zoo.parity()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.draw()._repr_svg_() == str(machine.draw()) == machine.to_svg()
    with pytest.raises(BudgetExceeded, match="states"):
        zoo.group("S5").draw()
    program(tmp_path, "while read -r line; do :; done; echo '<?xml?><svg>by Graphviz</svg>'")
    assert str(machine.draw()) == "<svg>by Graphviz</svg>\n"
    assert repr(machine.draw()) == "Drawing(23 characters of SVG)"
    program(tmp_path, "exit 1")
    assert str(machine.draw()) == machine.to_svg()


def test_machines_as_drawn_and_as_tables():
    def named(*labels):
        return DrawnMachine.of([[0] * len(labels)], labels, 0, "a", labels).names

    assert named("p", "q") == ["p", "q"]
    assert named("p", "much too long") == ["1", "2"]
    assert named(1, "1") == ["1", "2"]
    machine = DrawnMachine.of([[1, 1], [1, 0]], [False, True], 0, [("x", 1), "b"])
    assert machine.accepting == [False, True]
    assert machine.alphabet == ["x, 1", "b"]
    assert machine.arrows == {(0, 1): [0, 1], (1, 1): [0], (1, 0): [1]}
    assert DrawnMachine.of([[1, -1], [-1, -1]], [0, 1], 0, "ab").arrows == {(0, 1): [0]}
    assert DrawnMachine.of([[0]], ["True enough"], 0, "a").accepting is None
    found = transitions(DrawnMachine.of([[1, 0], [0, 0]], ["<", "y"], 1, ["a", "b"], ["first <one>", "second"]))
    assert found.count("<tr>") == 3
    assert "<td>first &lt;one&gt;</td><td>&lt;</td><td>2</td><td>1</td>" in found
    assert "2 (start)" in found


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
