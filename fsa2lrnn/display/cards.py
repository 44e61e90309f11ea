"""Format facts and counterexamples as HTML for notebooks and reports."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol

from fsa2lrnn.display.markup import Markup, tag

_FIRST, _LAST = 10, 16  # letters shown of a long word, before the gap and up to the first wrong output
_AFTER = 3  # letters shown behind it


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


def trace(failure: CounterexampleTrace, name: str) -> Markup:
    """Return a counterexample as an HTML table: letters, the machine's and the model's outputs, the first wrong marked.

    `name` names the model in the caption. Positions before and after the wrong output are left out of a long word.
    """
    wrong = failure.position - 1
    positions = _positions(len(failure.word), wrong)
    counts = failure.counts or [True] * len(failure.word)

    def row(title: str, values: Sequence[Hashable], marks: bool = False, class_: str | None = None) -> Markup:
        styles = ["wrong" if k == wrong else None if counts[k] else "silent" for k in range(len(counts))]
        cells = [
            tag("td", "⋯", class_="gap") if k is None else tag("td", values[k], class_=styles[k] if marks else None)
            for k in positions
        ]
        return tag("tr", tag("th", title, scope="row"), *cells, class_=class_)

    body = tag(
        "tbody",
        row("position", [str(k + 1) for k in range(len(failure.word))], class_="position"),
        row("letter", failure.word),
        row("machine", failure.wanted),
        row("model", failure.given, marks=True),
    )
    table = tag("table", body, class_="word")
    caption = f"The word that {name} gets wrong, letter by letter"
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _positions(length: int, wrong: int) -> list[int | None]:
    """Return the displayed positions, from 0, with None for a gap."""
    end = min(length, wrong + 1 + _AFTER)
    if end <= _FIRST + _LAST + _AFTER + 2:
        return list(range(end))
    return [*range(_FIRST), None, *range(wrong + 1 - _LAST, end)]


GOOD, BAD, OPEN, PLAIN = "#2f8f62", "#c2413f", "#b8860b", "#7a808a"  # proved, refuted, neither, no verdict


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


def failing(failure: CounterexampleTrace) -> Markup:
    """Return the table of `trace` with inline styles, for pages without our style sheet."""
    marked = trace(failure, "the model").replace(
        'class="wrong"', f'style="background:{BAD};color:#fff;font-weight:700"'
    )
    return Markup(marked.replace('class="scroll"', 'style="overflow-x:auto"'))


def blocks_text(sizes: Iterable[int]) -> str:
    """Return block sizes as text that calls blocks of size 1 channels.

    >>> blocks_text([5, 1, 4, 1]), blocks_text([1, 1])
    ('2 blocks of 5, 4 and 2 channels', '2 channels')
    """
    sizes = list(sizes)
    blocks, channels = [size for size in sizes if size > 1], sizes.count(1)
    parts = [f"{len(blocks)} block{'s' if len(blocks) > 1 else ''} of {', '.join(map(str, blocks))}"] if blocks else []
    return " and ".join([*parts, *([f"{channels} channel{'s' if channels > 1 else ''}"] if channels else [])])
