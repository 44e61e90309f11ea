"""Write SVG drawings for pages, and as files with their own style sheet."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from fsa2lrnn.display.markup import Markup, tag


def cut(label: str, most: int) -> str:
    """Return a label of at most `most` characters; a longer one ends in "…".

    >>> cut("(1,2,3)", 7), cut("quiescent", 7)
    ('(1,2,3)', 'quiesc…')
    """
    return label if len(label) <= most else f"{label[: most - 1]}…"


def picture(width: float, height: float, title: str, *children: object, class_: str = "") -> Markup:
    """Return an SVG drawing of a width and height in pixels; screen readers announce its title."""
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
    """Return a line of text at a point of a drawing; `anchor` is "start", "middle" or "end"."""
    return tag("text", *content, x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Return a straight line between two points of a drawing."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


_ALONE = files("fsa2lrnn.display").joinpath("alone.css").read_text(encoding="utf-8")


def standing_alone(drawn: Markup, size: tuple[float, float]) -> str:
    """Return a `picture` of class "automaton" as an SVG file with a background and a style sheet; `size` in pixels."""
    opening, rest = drawn.split("</title>", 1)
    of_file = f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]:g}" height="{size[1]:g}" '
    opening = opening.replace("<svg ", of_file, 1).replace('class="automaton', 'class="fsa2lrnn automaton', 1)
    paper = tag("rect", width="100%", height="100%", class_="paper")
    return f"{opening}</title>{tag('style', Markup(_ALONE))}{paper}{rest}\n"


@dataclass(frozen=True)
class Drawing:
    """An SVG drawing that notebooks show as a picture; `str(drawing)` is the text of its file."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Drawing({len(self.svg):,} characters of SVG)"
