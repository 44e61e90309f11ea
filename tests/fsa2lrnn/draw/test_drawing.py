"""Drawn automata: layout, labels, boxes and files."""

import math
import string
import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from experiments.boxes import boxes
from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.draw.automaton import automaton, lay_out, notes, svg_file
from fsa2lrnn.draw.drawn_machine import DrawnMachine, letters_text, width
from fsa2lrnn.draw.figure import figure_of
from fsa2lrnn.draw.geometry import HEIGHT, boxes_around, gaps, overlap, place_labels, points_of
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.testing import strategies

NASTY = '<b a="1">&'


@pytest.mark.long
def test_text_is_escaped_and_notes_are_written():
    machine = DrawnMachine(["even", NASTY], ["a", NASTY], ["yes", "no"], [[0, 1], [1, 0]], 0)
    for text in (automaton(machine), svg_file(machine)):
        assert "<b" not in text
        titles = [title.text for title in ET.fromstring(text).iter() if title.tag.endswith("title")]
        assert "even → even: a" in titles
        assert f"{NASTY} → even: {NASTY}" in titles
        assert f"state {NASTY}, output no" in titles
    assert notes(DrawnMachine.of_machine(MooreMachine.from_source("regex:abcd"))) == [
        "Letters that are not drawn lead to the sink 2, which none leaves."
    ]
    assert notes(DrawnMachine.of_machine(zoo.sum_mod(5))) == []
    large = DrawnMachine.of_machine(zoo.sum_mod(61))
    assert notes(large) == ["It has 61 states; up to 60 are drawn."]
    assert lay_out(large) is automaton(large) is svg_file(large) is None
    assert "arrows have no room for their letters" in notes(DrawnMachine.of_machine(zoo.mod_arith(5).minimise()))[1]


@pytest.mark.parametrize("letter", ["\0", "\x1b", "\x85", "\n", "\ud800"])
def test_letters_that_show_nothing_are_escaped_in_a_file_that_can_be_read(letter):
    machine = MooreMachine([[1, 1], [0, 0]], (letter, "x"), alphabet=(letter, "a"))
    found = ET.fromstring(machine.to_svg().encode())
    shown = letter.encode("unicode_escape").decode()
    assert shown in [part.text for part in found.iter() if "halo" in (part.get("class") or "")]


def test_files_stand_alone():
    root = ET.fromstring(svg_file(DrawnMachine.of_machine(zoo.sum_mod(3))))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(root.get("width")) == float(root.get("viewBox").split()[2])
    style = next(child.text for child in root if child.tag.endswith("style"))
    used = {name for part in root.iter() for name in (part.get("class") or "").split()}
    assert all(f".{name}" in style for name in used - {"arrow", "place", "automaton", "start"})
    assert "var(" not in style
    svg = boxes("t", [["a"], ["b", "<long & longer>"], ["c"], ["d"]], [0, 0, 1, 2], [(0, 2), (2, 3), (1, 3)], [3])
    found = rects(svg)
    assert are_apart(np.array(found))
    assert found[0][1] == found[1][1] > found[2][1] > found[3][1]
    assert (svg.count('class="edge"'), svg.count('class="node"'), svg.count('class="node plain"')) == (3, 1, 3)
    size = [float(x) for x in ET.fromstring(svg).get("viewBox").split()]
    assert all(box[0] > 0 and box[1] > 0 and box[2] < size[2] and box[3] < size[3] for box in found)


def rects(svg):
    found = []
    for part in ET.fromstring(svg).iter():
        if part.tag.endswith("rect") and "node" in part.get("class"):
            x, y, width, height = (float(part.get(name)) for name in ("x", "y", "width", "height"))
            found.append((x, y, x + width, y + height))
    return found


def are_apart(drawn):
    return overlap(drawn, drawn).sum() == len(drawn)


def test_a_label_without_a_free_place_is_left_out():
    straight = {(0, 1): np.array([[0.0, 0], [33, 0], [67, 0], [100, 0]])}
    assert place_labels(straight, {(0, 1): 30.0}, np.array([[-100.0, -100, 300, 300]])) == {}
    assert place_labels(straight, {(0, 1): 30.0}, np.array([[0.0, -30, 100, 0]]))[0, 1][1] > 0
    assert place_labels({}, {}, np.empty((0, 4))) == {}


TASKS = (
    "sum_mod(2)", "sum_mod(5)", "sum_mod(12)", "even_pair(5)", "group(S3)", "group(S4)", "tomita(3)", "tomita(5)",
    "dyck(2, 3)", "mod_arith(5)", "cycle_navigation(7)",
)  # fmt: skip
REGEXES = ("(ab)*", "(a|b)*abb(a|b)", "[0-9]+(\\.[0-9]+)?(e[0-9]+)?", "a(b|c)d*|aa(b|cc)*", "(a|b)(a|b)(a|b)(a|b)")


def check(machine):
    """Circles, labels and borders keep apart, and arrows lead from circle to circle; return the layout."""
    layout = lay_out(machine)
    r, places = layout.radius, layout.places
    assert min((math.dist(a, b) for a, b in combinations(places, 2)), default=99) > 2 * r + 6
    labels = [
        boxes_around(arrow.label, width(arrow.letters), HEIGHT)
        for arrow in layout.arrows
        if arrow.label is not None and not layout.is_dense
    ]
    drawn = np.array([*labels, *boxes_around(places, 2 * r, 2 * r)])
    assert are_apart(drawn)
    assert (drawn[:, :2] >= 0).all()
    assert (drawn[:, 2:] <= layout.size).all()
    curves = {arrow.edge: arrow.curve for arrow in layout.arrows}
    assert set(curves) == {e for e in machine.arrows if e[1] != layout.folded}
    for (q, then), curve in curves.items():
        assert math.dist(curve[0], places[q]) == pytest.approx(r)
        assert math.dist(curve[3], places[then]) == pytest.approx(r + 5)
        if q < then and (then, q) in curves:
            there, back = (points_of(curves[edge])[20] for edge in ((q, then), (then, q)))
            assert math.dist(there, back) > 8
    assert lay_out(machine) is layout
    return layout, len(labels)


@pytest.mark.long_cases("task:mod_arith(5)", "task:sum_mod(12)")
@pytest.mark.parametrize("source", [*(f"task:{task}" for task in TASKS), *(f"regex:{regex}" for regex in REGEXES)])
def test_known_machines_have_a_label_an_arrow_and_every_state(source):
    machine = DrawnMachine.of_machine(MooreMachine.from_source(source).minimise())
    layout, n_labels = check(machine)
    assert layout.is_dense or n_labels == len(layout.arrows)
    assert layout.folded is None or all(row[layout.folded] == layout.folded for row in machine.delta)
    if source not in ("task:sum_mod(12)", "task:group(S4)", "task:mod_arith(5)"):
        assert not ambiguous(layout)
    found = automaton(machine)
    assert found.count('class="node"') == len(machine.states)
    assert found.count("node inner") == sum(machine.accepting or [])
    assert found.count('class="edge"') == len(layout.arrows)
    assert found.count('class="edge start"') == 1


def ambiguous(layout):
    """The edges whose label is not nearer to its own arrow than to any other."""
    found = []
    for arrow in layout.arrows:
        if arrow.label is None:
            continue
        box = boxes_around(arrow.label, width(arrow.letters), HEIGHT)[None]
        others = [other.curve for other in layout.arrows if other is not arrow]
        own, *rest = (gaps(box, np.tile(points_of(curve), 2)).min() for curve in (arrow.curve, layout.start, *others))
        if own >= min(rest):
            found.append(arrow.edge)
    return found


@pytest.mark.long
@given(strategies.machines(max_states=12))
@settings(max_examples=30)
def test_what_is_drawn_keeps_apart(machine):
    check(DrawnMachine.of_machine(machine))


def test_letters_of_arrows_and_wide_characters():
    letters = [*string.ascii_lowercase, "_"]
    assert (letters_text(range(26), letters), letters_text(range(27), letters)) == ("a–z", "any")
    assert letters_text([0, 1, 2, 25], letters) == "a, b, c, z"
    assert letters_text([*range(3), *range(4, 27)], letters) == "not d"
    assert (letters_text(range(0, 26, 2), letters), letters_text([0, 1], ["0", "1"])) == (
        "a, c, e, g, i, k, m, o, q, s, u, w, y",
        "0, 1",
    )
    assert letters_text([1], ["-", "tick tock"]) == "tick tock"
    assert letters_text([1, 2], ["-", "tick tock", "two"]) == "not -"
    assert letters_text([0, 1, 3], ["0", "1", "2?", "2?"], names_others=False) == "0, 1, 2?"
    assert letters_text([0, 1, 2], ["0", "1", "2"], names_others=False) == "0, 1, 2"
    assert width("文字") > width("ab")
    assert width("") < width("a")


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

    assert (named("p", "q"), named("p", "much too long"), named(1, "1")) == (["p", "q"], ["0", "1"], ["0", "1"])
    machine = DrawnMachine.of([[1, 1], [1, 0]], [False, True], 0, [("x", 1), "b"])
    assert (machine.accepting, machine.alphabet) == ([False, True], ["x, 1", "b"])
    assert machine.arrows == {(0, 1): [0, 1], (1, 1): [0], (1, 0): [1]}
    assert DrawnMachine.of([[1, -1], [-1, -1]], [0, 1], 0, "ab").arrows == {(0, 1): [0]}
    assert DrawnMachine.of([[0]], ["True enough"], 0, "a").accepting is None


def test_labels_of_long_events_and_outputs_differ_in_every_drawing_and_stand_in_its_legend():
    events = [f"the user opens document {i} and closes it" for i in range(3)]
    machine = MooreMachine([[1, 1, 2], [2, 2, 2], [0, 1, 0]], ["warning low", "warning high", "ok"], alphabet=events)
    drawn = [part.text for part in ET.fromstring(machine.to_svg()).iter() if part.tag.endswith("text")]
    marks = [mark.text for mark in figure_of(machine).marks if mark.kind == "text"]
    for texts in (drawn, marks):
        cut = sorted({text for text in texts if "…" in text and ":" not in text})
        lines = [text.split(": ", 1) for text in texts if ": " in text]
        assert cut == sorted(label for label, _ in lines)
        whole = [text for _, text in lines]
        assert len(set(whole)) == len(whole)
        assert {*events[1:], "warning low", "warning high"} < set(whole)
    page = " ".join(notes(DrawnMachine.of_machine(machine)))
    assert all(f"{label}: {text}." in page for label, text in lines)
    assert all(event in machine.to_dot() for event in events)


def test_a_machine_too_large_for_a_drawing_is_refused():
    with pytest.raises(BudgetExceeded, match="61 states and a drawing shows up to 60: minimise it, or write"):
        zoo.sum_mod(61).to_svg()


def test_a_figure_shows_matrices_and_long_names_whole():
    delta, labels = [[1, 1, 2], [0, 2, 1], [2, 0, 0]], ["quiescent", "active", "draining the queue"]
    outputs = ["idle", "busy", "waiting for release"]
    machine = MooreMachine(delta, outputs, alphabet=["get", "put_50%_back", "release_everything_now"], labels=labels)
    figure = figure_of(machine, matrices=True)
    texts = [mark.text for mark in figure.marks if mark.kind == "text"]
    assert {"A(release_everything_now)", "2: draining the queue", "wait…1: waiting for release"} <= set(texts)
    assert {"release_everyt…1", "release_everyt…1: release_everything_now"} <= set(texts)
    cells = [mark.text for mark in figure.marks if mark.text in "01" and mark.size == 12 and mark.line != "#1c1e21"]
    for a, row in enumerate(delta):  # from left to right, and in a column from the top
        columns = np.array(cells[9 * a : 9 * a + 9], int).reshape(3, 3)
        assert columns.argmax(1).tolist() == row
        assert columns.sum() == 3
    assert r"{A(put\_50\%\_back)}" in figure.to_tikz()
    assert r"\resizebox{\linewidth}{!}{\input{…}}" in figure.to_tikz()
    assert "resizebox" not in figure_of(zoo.parity()).to_tikz()
    assert ET.fromstring(figure.to_svg()).tag.endswith("svg")
    for mark in figure.marks:
        assert (mark.points >= 0).all()
        assert (mark.points <= figure.size).all()
