"""Show results: short `repr`s, cards for notebooks, and HTML and SVG elements whose text is escaped."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import Any, Protocol

MOST = 200  # characters of a `repr`
GOOD, BAD, OPEN, PLAIN = "#2f8f62", "#c2413f", "#b8860b", "#7a808a"  # proved, refuted, neither, no verdict
_FIRST, _LAST = 10, 16  # letters shown of a long word, before the gap and up to the first wrong output
_AFTER = 3  # letters shown behind it
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

    def __init_subclass__(cls, **options: Any) -> None:
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

    def repr_LRNN(self, _model: Any, _level: int) -> str:
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


def card(title: str, rows: Iterable[tuple[str, str]], colour: str = PLAIN, *more: Markup) -> str:
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
    return tag("div", head, table, *more, style=f"border-left:4px solid {colour};padding:2px 0 2px 12px;margin:4px 0")


def blocks_text(sizes: Iterable[int]) -> str:
    """Return block sizes as text that calls blocks of size 1 channels.

    >>> blocks_text([5, 1, 4, 1]), blocks_text([1, 1])
    ('2 blocks of 5, 4 and 2 channels', '2 channels')
    """
    sizes = list(sizes)
    blocks, channels = [size for size in sizes if size > 1], sizes.count(1)
    parts = [f"{len(blocks)} block{'s' if len(blocks) > 1 else ''} of {', '.join(map(str, blocks))}"] if blocks else []
    return " and ".join([*parts, *([f"{channels} channel{'s' if channels > 1 else ''}"] if channels else [])])


class CounterexampleTrace(Protocol):
    """The attributes of `fsa2lrnn.verdicts.Counterexample` that this module reads."""

    @property
    def word(self) -> Sequence[Hashable]: ...
    @property
    def wanted(self) -> Sequence[Hashable]: ...
    @property
    def given(self) -> Sequence[Hashable]: ...
    @property
    def counts(self) -> Sequence[bool] | None: ...
    @property
    def position(self) -> int: ...


def failing(failure: CounterexampleTrace) -> Markup:
    """Return a counterexample as an HTML table: letters, the machine's and the model's outputs, the first wrong marked.

    Positions before and after the wrong output are left out of a long word.
    """
    wrong = failure.position - 1
    counts = failure.counts or [True] * len(failure.word)

    def row(title: str, values: Sequence[Hashable], marks: bool = False) -> Markup:
        cells: list[Markup] = []
        for k in _positions(len(failure.word), wrong):
            style = None
            if marks and k == wrong:
                style = f"background:{BAD};color:#fff;font-weight:700"
            elif marks and k is not None and not counts[k]:
                style = "opacity:.5"
            cells.append(tag("td", "⋯" if k is None else values[k], style=style))
        return tag("tr", tag("th", title, scope="row"), *cells)

    body = tag(
        "tbody",
        row("position", [str(k + 1) for k in range(len(failure.word))]),
        row("letter", failure.word),
        row("machine", failure.wanted),
        row("model", failure.given, marks=True),
    )
    caption = "The word that the model gets wrong, letter by letter"
    return tag("div", tag("table", body), style="overflow-x:auto", tabindex=0, role="region", aria_label=caption)


def _positions(length: int, wrong: int) -> list[int | None]:
    """Return the displayed positions, from 0, with None for a gap."""
    end = min(length, wrong + 1 + _AFTER)
    if end <= _FIRST + _LAST + _AFTER + 2:
        return list(range(end))
    return [*range(_FIRST), None, *range(wrong + 1 - _LAST, end)]
