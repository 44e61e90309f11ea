"""Make SVG files that stand alone."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from fsa2lrnn.display.markup import Markup, tag

_ALONE = files("fsa2lrnn.display").joinpath("alone.css").read_text(encoding="utf-8")


def standing_alone(drawn: Markup, size: tuple[float, float]) -> str:
    """A drawing of class "automaton" as a file of its own: on paper, with its styles."""
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
