"""HTML and SVG as text: tags whose attributes and children are escaped unless they are markup already."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from importlib.resources import files

# What XML can't hold, and what shows nothing or turns the order of what follows: controls but line feeds and tabs,
# halves of characters, marks of direction.
_UNSEEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_VOID = ("meta", "br", "col", "wbr", "input")


class Markup(str):
    """Text that is markup, and is put into a tag as it is."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an HTML or SVG element; attributes whose value is None are left out.

    In an attribute's name `_` stands for `-`, and a trailing `_` is removed.

    >>> tag("text", "a < b", tag("br"), class_="label", text_anchor="end", x=1.25, title=None)
    '<text class="label" text-anchor="end" x="1.25">a &lt; b<br></text>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{join(*children)}</{name}>")


def join(*children: object) -> Markup:
    """Concatenate children; lists and tuples are flattened, and None is skipped."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, list | tuple):
            parts.append(join(*child))
        elif child is not None:
            parts.append(escape(_plain(child), quote=False))
    return Markup("".join(parts))


def _plain(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else visible(str(value))


def visible(text: str, lines: bool = True) -> str:
    r"""Return text with invisible and undrawable characters escaped as in Python; unless `lines`, also \n and \t.

    >>> visible("a\x1b\ud800&")
    'a\\x1b\\ud800&'
    """
    shown = _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return shown if lines else shown.replace("\n", "\\n").replace("\t", "\\t")


def cut(label: str, most: int) -> str:
    """Return a label of at most `most` characters; a longer one ends in "…".

    >>> cut("(1,2,3)", 7), cut("quiescent", 7)
    ('(1,2,3)', 'quiesc…')
    """
    return label if len(label) <= most else f"{label[: most - 1]}…"


def picture(width: float, height: float, title: str, *children: object, class_: str = "") -> Markup:
    """Return a scalable SVG drawing whose title screen readers announce."""
    return tag(
        "svg",
        tag("title", title),
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=title,
        class_=class_ or None,
        style=f"max-width:{width:g}px",
    )


def text(x: float, y: float, *content: object, anchor: str = "middle", class_: str = "label") -> Markup:
    """Return a line of text in a drawing."""
    return tag("text", *content, x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Return a straight line in a drawing."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


_ALONE = files("fsa2lrnn.display").joinpath("alone.css").read_text(encoding="utf-8")


def standing_alone(drawn: Markup, size: tuple[float, float]) -> str:
    """Return a drawing of class "automaton" as the text of an SVG file, with a background and its style sheet."""
    opening, rest = drawn.split("</title>", 1)
    of_file = f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]:g}" height="{size[1]:g}" '
    opening = opening.replace("<svg ", of_file, 1).replace('class="automaton', 'class="fsa2lrnn automaton', 1)
    paper = tag("rect", width="100%", height="100%", class_="paper")
    return f"{opening}</title>{tag('style', Markup(_ALONE))}{paper}{rest}\n"


@dataclass(frozen=True)
class Drawing:
    """An SVG drawing that a notebook shows; `str` is the text of the file."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Drawing({len(self.svg):,} characters of SVG)"
