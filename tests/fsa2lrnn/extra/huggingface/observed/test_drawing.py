"""The picture: a histogram a head, heights by counts, negative bars in their own colour."""

import re
from xml.etree import ElementTree

import numpy as np

from fsa2lrnn.extra.huggingface.observed import report as drawing
from fsa2lrnn.extra.huggingface.observed.report import EIGENVALUE, GateObservations, ObservedHead, svg
from fsa2lrnn.extra.huggingface.observed.values import HeadValues, Measure

MEASURE = Measure(EIGENVALUE, low=-1)


def observed(heads):
    found = []
    for layer, values in heads:
        gathered = HeadValues(MEASURE, 1)
        gathered.add(np.array(values)[:, None])
        found.append(ObservedHead(layer, len(found), gathered.below_zero(0), {EIGENVALUE: gathered.spread(0)}))
    return GateObservations("olmo-hybrid", {}, "a text", 4, (-1.0, 1.0), (MEASURE,), tuple(found))


def test_a_histogram_a_head():
    picture = svg(observed([(0, [-1.0, 0.5, 0.5, 0.5]), (0, [0.9] * 4), (3, [0.1] * 4)]))
    ElementTree.fromstring(picture)
    assert picture.count(drawing._BELOW) == 1
    assert picture.count(drawing._ABOVE) == 3
    assert "layer 0, head 0: 1 of 4 below zero" in picture
    assert ">layer 3<" in picture
    (low,) = re.findall(rf'd="M([\d.]+) [\d.]+v-([\d.]+)h[^"]*" fill="{drawing._BELOW}"', picture)
    assert low == ("64.0", "20.0")  # at the left end, the root of a quarter high


def test_of_many_heads_each_layer_has_one(monkeypatch):
    monkeypatch.setattr(drawing, "_MOST", 2)
    picture = svg(observed([(0, [-1.0, 0.5]), (0, [0.9] * 2), (1, [0.1] * 2)]))
    assert "layer 0, all heads: 1 of 4 below zero" in picture
    assert picture.count("<title>layer") == 2
