"""The layers on the page: a drawing a head, and what each reads, in words."""

import xml.etree.ElementTree as ET

from fsa2lrnn.extra.report.drawing.machine import DrawnMachine
from fsa2lrnn.extra.report.facts import LayerHead, Learning
from fsa2lrnn.extra.report.page import layers

BIT = DrawnMachine(["1", "2"], ["0", "1?", "1?"], ["1", "2"], [[0, 1], [0, 1], [1, 0]], 0)


def learned(*heads):
    return Learning("known", [0], 1, 0, 1, 0.0, is_whole=True, layers=list(heads))


def test_every_head_is_drawn_in_the_row_of_its_layer():
    found = layers(
        learned(
            LayerHead(0, 0, 2, 2, [], False, BIT), LayerHead(0, 1, 2, 1, [], False, None),
            LayerHead(1, 0, 2, 2, [0], True, BIT), LayerHead(1, 1, 99, 99, [0, 1], False, None),
        )
    )  # fmt: skip
    root = ET.fromstring(f"<div>{found}</div>")
    assert [title.text for title in root.iter("h4")] == ["Layer 1", "Layer 2"]
    captions = [caption.text for caption in root.iter("figcaption")]
    assert captions == [
        "head 1: 2 states of a block of 2; reads the letter.",
        "head 2: stays in one state",
        "head 1: 2 states of a block of 2; reads the letter, the one before and head 1 of layer 1.",
        "head 2: 99 states of a block of 99; reads the letter, head 1 of layer 1 and head 2 of layer 1; too many "
        "states to draw",
    ]
    assert len(list(root.iter("svg"))) == 2
    titles = [title.text for title in root.iter("title")]
    assert titles.count("1 → 2: 1?") == titles.count("2 → 2: 0, 1?") == 2


def test_of_a_single_layer_nothing_is_shown():
    assert layers(learned()) is None
