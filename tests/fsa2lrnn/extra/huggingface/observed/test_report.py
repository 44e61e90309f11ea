"""What is gathered of gates, what a report says of it, and its picture."""

import math
import re
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from fsa2lrnn.extra.huggingface.observed import report as drawing
from fsa2lrnn.extra.huggingface.observed.observer import replaced
from fsa2lrnn.extra.huggingface.observed.report import EIGENVALUE, GateObservations, ObservedHead, merged, svg
from fsa2lrnn.extra.huggingface.observed.values import BINS, QUANTILES, HeadValues, Measure

MEASURE = Measure(EIGENVALUE, low=-1, marks=(-1.0,))


def head(layer, number, values):
    gathered = HeadValues(MEASURE, 1)
    gathered.add(np.array(values)[:, None])
    return ObservedHead(layer, number, gathered.below_zero(0), {EIGENVALUE: gathered.spread(0)})


def observed(*heads, reach=(-1.0, 1.0)):
    return GateObservations("olmo-hybrid", {}, "a text", 4, reach, (MEASURE,), heads)


@pytest.mark.parametrize(
    ("heads", "reach", "said"),
    [
        (([-1.0, 0.5, 0.5, 0.5], [0.1, 0.2, 0.3, 0.4]), (-1.0, 1.0),
         "1 of 2 heads use negative eigenvalues, 0 of them at every second token or more; that is 12.50% of tokens and "
         "heads, and the least is -1 of -1"),
        (([-0.5, -0.25, 0.5, 0.5],), (-1.0, 1.0), "1 of 1 heads use negative eigenvalues, 1 of them at every second"),
        (([0.25, 0.5, 0.5, 0.5],), (-1.0, 1.0), "no eigenvalue is negative, though the layer reaches [-1, 1]: the "
         "least is 0.25"),
        (([0.0, 0.5, 0.5, 0.5],), (0.0, 1.0), "no eigenvalue can be negative: this layer reaches [0, 1]"),
    ],
)  # fmt: skip
def test_the_answer(heads, reach, said):
    found = observed(*(head(0, j, values) for j, values in enumerate(heads)), reach=reach)
    assert found.explain().startswith(said)


def test_heads_as_one_and_in_a_histogram():
    parts = [head(3, 0, [-1.0, 0.0]), head(3, 1, [0.5, 0.75])]
    one, whole = merged(parts, (MEASURE,)), head(3, -1, [-1.0, 0.0, 0.5, 0.75])
    assert one.to_json() == whole.to_json()
    assert (one.spreads[EIGENVALUE].counts == whole.spreads[EIGENVALUE].counts).all()
    found = observed(head(0, 0, [-1.0, 0.5]), head(2, 0, [0.5, 0.5]))
    value = found.to_json()
    assert (value["negative"], value["least"], list(found.by_layer())) == (0.25, -1.0, [0, 2])
    assert value["heads"][0]["eigenvalue"]["exactly"] == {"-1": 1}
    picture = svg(observed(head(0, 0, [-1.0, 0.5, 0.5, 0.5]), head(0, 1, [0.9] * 4), head(3, 2, [0.1] * 4)))
    ElementTree.fromstring(picture)
    assert picture.count(drawing._BELOW) == 1
    assert picture.count(drawing._ABOVE) == 3
    assert "layer 0, head 0: 1 of 4 below zero" in picture
    assert ">layer 3<" in picture
    (low,) = re.findall(rf'd="M([\d.]+) [\d.]+v-([\d.]+)h[^"]*" fill="{drawing._BELOW}"', picture)
    assert low == ("64.0", "20.0")  # at the left end, the root of a quarter high


@pytest.mark.parametrize(("low", "high", "width"), [(0.0, 1.0, 1 / BINS), (-1.0, 1.0, 2 / BINS), (0.0, math.inf, 0.01)])
def test_what_is_said_of_drawn_values(low, high, width):
    rng = np.random.default_rng(0)
    drawn = rng.uniform(low, min(high, 1.5), size=(4_000, 3))
    drawn[7, 1] = low
    gathered = HeadValues(Measure("x", low, high, (low, 0.25)), 3)
    for piece in np.split(drawn, [1, 5, 5, 900]):
        gathered.add(piece)
    for head in range(3):
        of_head, found = drawn[:, head], gathered.spread(head)
        assert (found.least, found.most, found.n) == (of_head.min(), of_head.max(), 4_000)
        assert math.isclose(found.mean, of_head.mean())
        assert np.abs(np.array(found.quantiles) - np.quantile(of_head, QUANTILES)).max() < width
        assert found.counts.sum() == 4_000
        assert gathered.below_zero(head) == (of_head < 0).sum()
        assert found.exactly == {low: int((of_head == low).sum()), 0.25: 0}


def test_values_gathered_in_little_memory():
    gathered = HeadValues(Measure("key"), 1)
    gathered.add(np.array([[1.0000002], [1.0], [-0.1]]))
    found = gathered.spread(0)
    assert (found.least, found.most, found.exactly) == (-0.1, 1.0000002, {0.0: 0, 1.0: 1})
    assert (found.counts[0], found.counts[-1]) == (1, 2)
    gathered = HeadValues(Measure("x"), 2)
    before = sum(part.nbytes for part in vars(gathered).values() if isinstance(part, np.ndarray))
    for _ in range(50):
        gathered.add(np.zeros((1_000, 2)))
    assert sum(part.nbytes for part in vars(gathered).values() if isinstance(part, np.ndarray)) == before


def test_functions_are_replaced_for_a_moment_and_all_or_none():
    file = SimpleNamespace(f=1, g=2)
    with replaced(file, f=3, g=4):
        assert (file.f, file.g) == (3, 4)
    assert (file.f, file.g) == (1, 2)
    file = SimpleNamespace(f=1)
    with pytest.raises(ZeroDivisionError), replaced(file, f=3):
        _ = 1 / 0
    assert file.f == 1
    with pytest.raises(AttributeError), replaced(file, f=3, g=4):
        pass
    assert vars(file) == {"f": 1}
