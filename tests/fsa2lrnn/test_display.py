"""What notebooks show, of every kind of object: well formed, its text escaped, no style but its own."""

import xml.etree.ElementTree as ET

import pytest

from fsa2lrnn import zoo
from fsa2lrnn.display import Markup, join, tag
from fsa2lrnn.draw.svg import picture, text

NASTY = '<b a="1">&'


def test_a_machine_is_a_picture_unless_it_is_too_large():
    assert zoo.parity()._repr_svg_().startswith("<svg")
    assert zoo.sum_mod(61)._repr_svg_() is None


def test_markup_is_escaped_and_named():
    inner = tag("b", "1 < 2 & 3")
    assert inner == "<b>1 &lt; 2 &amp; 3</b>"
    assert tag("p", inner, '"x"', title='"<') == '<p title="&quot;&lt;"><b>1 &lt; 2 &amp; 3</b>"x"</p>'
    assert join("<", Markup("<"), None, [inner, ("&",)]) == "&lt;<<b>1 &lt; 2 &amp; 3</b>&amp;"
    assert isinstance(join("a"), Markup)
    assert tag("rect", x=1.0, y=2.345, font_size=3, class_="c", fill=None) == (
        '<rect x="1" y="2.35" font-size="3" class="c"></rect>'
    )
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'
    drawn = picture(10, 20, "a < b", text(1, 2, "<"))
    assert drawn.startswith('<svg viewBox="0 0 10 20" role="img" aria-label="a &lt; b"')
    assert "<title>a &lt; b</title>" in drawn
    assert '<text x="1" y="2" text-anchor="middle" class="label">&lt;</text>' in drawn


@pytest.mark.parametrize("letter", ["\0", "\x1b", "\x85", "\r", "\ud800", "\ufffe", "\u202e", "&", "<", '"', "é", "😀"])
def test_whatever_a_letter_is_the_drawing_is_xml(letter):
    """A control character made a file that no reader took."""
    drawn = picture(10, 20, letter, text(1, 2, letter))
    found = ET.fromstring(drawn.encode())
    shown = letter if letter in '&<"é😀' else letter.encode("unicode_escape").decode()
    assert (found.get("aria-label"), found[0].text, found[1].text) == (shown, shown, shown)
