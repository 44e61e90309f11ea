"""A table of a counterexample with the outputs of the machine and the model along it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

from fsa2lrnn.display.markup import Markup, tag

_FIRST, _LAST = 10, 16  # letters shown of a long word, before the gap and up to the first wrong output
_AFTER = 3  # letters shown behind it


class CounterexampleTrace(Protocol):
    """The protocol of a word with a wrong output of a model (`fsa2lrnn.verdicts.Counterexample`)."""

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
    """Return a table of positions, letters, the machine's and the model's outputs; the first wrong one is marked."""
    wrong = failure.position - 1
    positions = _positions(len(failure.word), wrong)
    counts = failure.counts or [True] * len(failure.word)

    def row(title: str, values: Sequence[Hashable], marks: bool = False, class_: str | None = None) -> Markup:
        cells: list[Markup] = []
        for k in positions:
            if k is None:
                cells.append(tag("td", "⋯", class_="gap"))
            elif marks and k == wrong:
                cells.append(tag("td", values[k], class_="wrong"))
            else:
                cells.append(tag("td", values[k], class_=None if counts[k] or not marks else "silent"))
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
