"""Nothing of a drawing lies on anything else, for many machines."""

import math
from itertools import combinations

import numpy as np
import pytest

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.extra.report.drawing.curves import along
from fsa2lrnn.extra.report.drawing.layout import DRAWN, HEIGHT, lay_out, overlap, width
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine

TASKS = (
    "sum_mod(2)", "sum_mod(5)", "sum_mod(12)", "even_pair(5)", "group(S3)", "group(S4)", "tomita(3)", "tomita(5)",
    "dyck(2, 3)", "mod_arith(5)", "cycle_navigation(7)",
)  # fmt: skip
REGEXES = ("(ab)*", "(a|b)*abb(a|b)", "[0-9]+(\\.[0-9]+)?(e[0-9]+)?", "a(b|c)d*|aa(b|cc)*", "(a|b)(a|b)(a|b)(a|b)")


def drawn(machine):
    return DrawnMachine.of(machine.delta, machine.outputs, machine.start, machine.alphabet, machine.labels)


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


def test_arrows_pass_beside_circles_that_are_not_theirs():
    machine = drawn(MooreMachine.from_source("regex:(a|b)(a|b)(a|b)|c"))
    layout = lay_out(machine)
    for arrow in layout.arrows:
        for q, place in enumerate(layout.places):
            if q not in arrow.edge:
                assert min(math.dist(p, place) for p in along(arrow.curve)) > layout.radius


def test_a_sink_of_many_is_folded_and_one_of_few_is_not():
    machine = drawn(MooreMachine.from_source("regex:abcd"))
    layout = lay_out(machine)
    assert layout.folded is not None
    assert all(row[layout.folded] == layout.folded for row in machine.delta)
    assert len(layout.arrows) == 4
    assert lay_out(drawn(MooreMachine.from_source("regex:(ab)*"))).folded is None
    assert lay_out(drawn(zoo.sum_mod(5))).folded is None


def test_machines_that_turn_stand_on_a_circle_in_the_order_of_their_arrows():
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
