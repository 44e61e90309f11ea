"""What notebooks show, of every kind of object: well formed, its text escaped, no style but its own."""

from fsa2lrnn import zoo
from fsa2lrnn.display import Markup, join, tag

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
