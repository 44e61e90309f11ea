"""The HTML cards that notebooks show for objects: a headline and a table of facts."""

from __future__ import annotations

from collections.abc import Iterable

from fsa2lrnn.display.markup import Markup, tag
from fsa2lrnn.display.traces import CounterexampleTrace, trace

GOOD, BAD, OPEN, PLAIN = "#2f8f62", "#c2413f", "#b8860b", "#7a808a"  # proved, refuted, neither, no verdict


def card(title: str, rows: Iterable[tuple[str, str]], colour: str = PLAIN, *more: Markup) -> str:
    """Return HTML for any page: styles are on the elements, text is escaped.

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
    """Return a counterexample letter by letter, its first wrong output marked by its style."""
    marked = trace(failure, "the model").replace(
        'class="wrong"', f'style="background:{BAD};color:#fff;font-weight:700"'
    )
    return Markup(marked.replace('class="scroll"', 'style="overflow-x:auto"'))


def blocks_text(sizes: Iterable[int]) -> str:
    """Return the block sizes as text, those of size 1 as lanes.

    >>> blocks_text([5, 1, 4, 1]), blocks_text([1, 1])
    ('2 blocks of 5, 4 and 2 lanes', '2 lanes')
    """
    sizes = list(sizes)
    blocks, lanes = [size for size in sizes if size > 1], sizes.count(1)
    parts = [f"{len(blocks)} block{'s' if len(blocks) > 1 else ''} of {', '.join(map(str, blocks))}"] if blocks else []
    return " and ".join([*parts, *([f"{lanes} lane{'s' if lanes > 1 else ''}"] if lanes else [])])
