"""Show results: short `repr`s, and HTML and SVG elements whose text is escaped."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable
from dataclasses import fields
from html import escape
from typing import Any

MOST = 200  # characters of a `repr`
# Characters that XML forbids, that are invisible, or that reverse the text after them: controls except line feeds and
# tabs, lone surrogates, marks of direction.
_UNSEEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_VOID = ("meta", "br", "col", "wbr", "input")


class Brief:
    """A base class that limits the `repr` of a dataclass to 200 characters and shortens each field.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Result(Brief):
    ...     numbers: tuple[int, ...]
    ...     name: str
    >>> Result(tuple(range(10**6)), "large")
    Result(numbers=(0, 1, 2, 3, ...), name='large')
    """

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        # `dataclass` writes its own `__repr__` unless it finds one in the class itself, not in a base class.
        cls.__repr__ = Brief.__repr__

    def __repr__(self) -> str:
        parts = (f"{f.name}={_shorten.repr(getattr(self, f.name))}" for f in fields(self) if f.repr)  # pyright: ignore[reportArgumentType]
        text = f"{type(self).__name__}({', '.join(parts)})"
        return text if len(text) <= MOST else f"{text[: MOST - 2]}…)"


class _Shorten(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxtuple, self.maxlist, self.maxdict, self.maxother, self.maxstring = 2, 4, 4, 2, 60, 60

    def repr_ndarray(self, array: Any, _level: int) -> str:
        return f"array of shape {array.shape}"

    def repr_Tensor(self, tensor: Any, _level: int) -> str:
        return f"tensor of shape {tuple(tensor.shape)}"

    def repr_LRNN(self, _model: object, _level: int) -> str:
        return "LRNN(…)"  # the text of a module has many lines


_shorten = _Shorten()


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


def card(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a titled table of facts as HTML with inline styles; the text of `title` and `rows` is escaped.

    >>> "1 &lt; 2" in card("claim", [("said", "1 < 2")])
    True
    """
    cells = [
        tag(
            "tr",
            tag("td", name, style="text-align:left;vertical-align:top;opacity:.7;padding:1px 14px 1px 0"),
            tag("td", value, style="text-align:left;overflow-wrap:anywhere;padding:1px 0"),
        )
        for name, value in rows
    ]
    table = tag("table", tag("tbody", *cells), style="margin:4px 0;border:0") if cells else None
    head = tag("div", title, style="font-weight:600")
    return tag("div", head, table, style="border-left:4px solid #7a808a;padding:2px 0 2px 12px;margin:4px 0")


def blocks_text(sizes: Iterable[int]) -> str:
    """Return block sizes as text that calls blocks of size 1 channels.

    >>> blocks_text([5, 1, 4, 1]), blocks_text([1, 1])
    ('2 blocks of 5, 4 and 2 channels', '2 channels')
    """
    sizes = list(sizes)
    blocks, channels = [size for size in sizes if size > 1], sizes.count(1)
    parts = [f"{len(blocks)} block{'s' if len(blocks) > 1 else ''} of {', '.join(map(str, blocks))}"] if blocks else []
    return " and ".join([*parts, *([f"{channels} channel{'s' if channels > 1 else ''}"] if channels else [])])
