import io
import sys

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import BudgetExceeded, MissingPackage
from fsa2lrnn.extra.report.drawing.layout import lay_out
from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.drawing.moore import png


def drawn(machine):
    return DrawnMachine.of(machine.delta, machine.outputs, machine.start, machine.alphabet, machine.labels)


def test_circles_are_where_the_layout_has_them():
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


def test_dollars_are_letters():
    pytest.importorskip("matplotlib")
    assert png(DrawnMachine.of([[0], [0]], ["$x$"], 0, ["$", "\\frac{"]))[:4] == b"\x89PNG"


def test_what_is_refused(monkeypatch):
    with pytest.raises(BudgetExceeded, match="61 states and a drawing shows up to 60: minimise it, or write"):
        png(drawn(zoo.sum_mod(61)))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackage, match=r'pip install "fsa2lrnn\[plot\]", or write \.svg'):
        png(drawn(zoo.parity()))
