"""The figures are those of the results, and what a browser can read."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest

from experiments import figures, results_io

CHAINS = results_io.read("block_sizes")["results"]["chains"]


@pytest.mark.parametrize("source", CHAINS)
def test_a_figure_is_regenerated_as_it_stands(source):
    assert figures.path_of(source).read_text(encoding="utf-8") == figures.chain(CHAINS[source])


@pytest.mark.parametrize("source", CHAINS)
def test_every_copy_and_every_class_has_its_box(source):
    levels = CHAINS[source]["levels"]
    drawn = ElementTree.fromstring(figures.chain(CHAINS[source]))
    boxes = [one for one in drawn.iter("{http://www.w3.org/2000/svg}rect") if one.get("rx")]
    assert len(boxes) == sum(len(level["enters"]) + max(level["classes"]) + 1 for level in levels)
    assert max(float(box.get("x")) + float(box.get("width")) for box in boxes) <= float(drawn.get("width"))
    texts = list(drawn.iter("{http://www.w3.org/2000/svg}text"))
    heads = [(float(text.get("x")), text.text) for text in texts if text.get("y") == "20"]
    assert all(x + 8 * len(head) < after for (x, head), (after, _) in pairwise(heads))
    assert max(float(text.get("x")) + 8 * len(text.text) for text in texts) <= float(drawn.get("width"))
    assert max(float(box.get("y")) + 30 for box in boxes) <= float(drawn.get("height"))
