"""The pictures are those of the machine and the results, and what a browser can read."""

from xml.etree import ElementTree

import pytest

from experiments import pictures
from fsa2lrnn import zoo

DRAWN = pictures.pictures()
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_regenerated_as_it_stands(name):
    assert (pictures.FOLDER / name).read_text(encoding="utf-8") == DRAWN[name]


@pytest.mark.parametrize("name", DRAWN)
def test_all_of_a_picture_is_in_sight(name):
    drawn = ElementTree.fromstring(DRAWN[name])
    width, height = float(drawn.get("width")), float(drawn.get("height"))
    for text in drawn.iter(f"{SVG}text"):
        half = 4 * len(text.text)
        assert half <= float(text.get("x")) <= width - (2 * half if text.get("text-anchor") == "start" else half)
        assert 10 <= float(text.get("y")) <= height


def test_a_matrix_has_a_one_in_every_column():
    machine = zoo.sum_mod(2)
    drawn = ElementTree.fromstring(pictures.two_letters(machine))
    texts = [(text.get("fill"), text.text) for text in drawn.iter(f"{SVG}text")]
    assert texts.count(("white", "1")) == len(machine.alphabet) * machine.n_states
    assert texts.count(("#aaa", "0")) == len(machine.alphabet) * machine.n_states
