"""Write HTML and SVG elements whose attributes and text are escaped."""

from __future__ import annotations

import re
from html import escape

# Characters that XML forbids, that are invisible, or that reverse the text after them: controls except line feeds and
# tabs, lone surrogates, marks of direction.
_UNSEEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_VOID = ("meta", "br", "col", "wbr", "input")


class Markup(str):
    """A string of HTML or SVG, which `tag` and `join` do not escape."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an HTML or SVG element with children and attributes; text is escaped, and None is left out.

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
    """Return children as one markup: text is escaped, lists and tuples are flattened, and None is left out."""
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
    r"""Return text with invisible characters escaped as in Python; unless `lines` is true, also \n and \t.

    >>> visible("a\x1b\ud800&")
    'a\\x1b\\ud800&'
    """
    shown = _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return shown if lines else shown.replace("\n", "\\n").replace("\t", "\\t")
