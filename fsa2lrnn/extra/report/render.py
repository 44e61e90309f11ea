"""Render the templates of `pages/` to pages."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
import markupsafe

from fsa2lrnn.display.markup import Markup, visible


def render(template: str, **values: Any) -> str:
    """Return a template filled with values; all values but markup are escaped, also invisible characters."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fsa2lrnn.extra.report", "pages"),
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
    return markupsafe.Markup(files("fsa2lrnn.extra.report").joinpath("pages", name).read_text(encoding="utf-8"))


def _shown(value: Any) -> Any:
    if isinstance(value, Markup):
        return markupsafe.Markup(value)
    if isinstance(value, float):  # and those of numpy
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return value if hasattr(value, "__html__") else "" if value is None else visible(str(value))
