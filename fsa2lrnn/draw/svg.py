"""Render the templates of `pages/`, and write SVG drawings for pages and as files with their own style sheet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
import markupsafe

from fsa2lrnn.display import Markup, tag, visible


def render(template: str, **values: object) -> str:
    """Return a template filled with values; all values but markup are escaped, also invisible characters."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fsa2lrnn.draw", "pages"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["source"] = source
    return environment


def source(name: str) -> markupsafe.Markup:
    """Return the text of a style sheet or a program of `pages/`, unescaped."""
    return markupsafe.Markup(files("fsa2lrnn.draw").joinpath("pages", name).read_text(encoding="utf-8"))


def _shown(value: object) -> Any:
    if isinstance(value, Markup):
        return markupsafe.Markup(value)
    if isinstance(value, float):  # and those of numpy
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return value if hasattr(value, "__html__") else "" if value is None else visible(str(value))


def standing_alone(drawn: Markup, size: tuple[float, float]) -> str:
    """Return a drawing of class "automaton" as an SVG file with a background and a style sheet; `size` in pixels."""
    opening, rest = drawn.split("</title>", 1)
    of_file = f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]:g}" height="{size[1]:g}" '
    opening = opening.replace("<svg ", of_file, 1).replace('class="automaton', 'class="fsa2lrnn automaton', 1)
    paper = tag("rect", width="100%", height="100%", class_="paper")
    return f"{opening}</title>{tag('style', Markup(source('alone.css')))}{paper}{rest}\n"


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
