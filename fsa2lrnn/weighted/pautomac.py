"""Read the files of the PAutomaC competition: models, words, and probabilities of words.

A model has the sections I (initial), F (to stop), S (letter, of those that go on) and T (next state, after the letter):

    I: (state)
        (0) 1.0
    F: (state)
        (0) 0.5
    S: (state,symbol)
        (0,0) 1.0
    T: (state,symbol,state)
        (0,0,0) 1.0

Words are a line `words letters` and, for each word, `length letter letter …`; a solution is the number of words and the
probability of each. Numbers are read as the decimal fractions that they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from fsa2lrnn.deadline import bounded
from fsa2lrnn.errors import UnsupportedFormat, shortened
from fsa2lrnn.reading import read_text
from fsa2lrnn.weighted.automaton import MAX_ENTRIES, WeightedAutomaton

_SECTIONS = {"I": 1, "F": 1, "S": 2, "T": 3}
_HEAD = re.compile(r"([IFST]):\s*\([a-z,]*\)")
_ENTRY = re.compile(r"\(([0-9]{1,9}(?:,[0-9]{1,9}){0,2})\)\s+(\S+)")
_DECIMAL = re.compile(r"[0-9]{0,400}\.?[0-9]{1,400}(?:[eE][+-]?[0-9]{1,3})?")
Word = tuple[int, ...]


def read_model(path: Path) -> WeightedAutomaton:
    """Return the distribution of a model; letters are 0, 1, 2, ….

    Raises:
        UnsupportedFormat: naming the line that is not of the format, or a missing section.
        InvalidMachine: if probabilities do not sum to one.
        BudgetExceeded: for more than `MAX_ENTRIES` entries of matrices.
    """
    parts: dict[str, dict[Word, Fraction]] = {}
    section = ""
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not (text := line.strip()):
            continue
        if head := _HEAD.fullmatch(text):
            section = head[1]
            if section in parts:
                raise UnsupportedFormat(f"{path.name}, line {number}: section {section} stands twice: remove one")
            parts[section] = {}
            continue
        entry = _ENTRY.fullmatch(text)
        key = tuple(map(int, entry[1].split(","))) if entry else ()
        if entry is None or not section or len(key) != _SECTIONS[section] or key in parts[section]:
            raise UnsupportedFormat(
                f"{path.name}, line {number}: {shortened(text, 40)!r} is not an entry of section {section or 'I'}, as "
                " (0) 0.5, or stands twice"
            )
        parts[section][key] = _decimal(entry[2], f"{path.name}, line {number}")
    if missing := [name for name in _SECTIONS if name not in parts]:
        raise UnsupportedFormat(f"{path.name} has no section {missing[0]}: a model has the sections I, F, S and T")
    if not any(parts["F"].values()):
        raise UnsupportedFormat(f"{path.name}: no state stops, so that every word has the probability 0: add section F")
    n = 1 + max(q for part in parts.values() for key in part for q in (key[0], key[-1] if len(key) == 3 else 0))
    letters = 1 + max((key[1] for name in "ST" for key in parts[name]), default=0)
    bounded(letters * n * n, MAX_ENTRIES, f"{n:,} states over {letters:,} letters")
    stop = [parts["F"].get((q,), Fraction(0)) for q in range(n)]
    transitions = [[[Fraction(0)] * n for _ in range(n)] for _ in range(letters)]
    for (p, a, q), share in parts["T"].items():
        transitions[a][p][q] = (1 - stop[p]) * parts["S"].get((p, a), Fraction(0)) * share
    initial = [parts["I"].get((q,), Fraction(0)) for q in range(n)]
    return WeightedAutomaton.from_probabilities(range(letters), initial, transitions, stop)


def read_words(path: Path) -> tuple[int, list[Word]]:
    """Return the number of letters and the words of a file; raise `UnsupportedFormat` naming a line that is wrong."""
    rows = _numbers(path)
    where, head = next(rows, (f"{path.name}, line 1", ()))
    if len(head) != 2:
        raise UnsupportedFormat(f"{where}: the first line gives the numbers of words and of letters")
    words = list[Word]()
    for where, (length, *word) in rows:
        if length != len(word) or max(word, default=0) >= head[1]:
            raise UnsupportedFormat(f"{where}: a word is its length and so many letters below {head[1]}")
        words.append(tuple(word))
    if len(words) != head[0]:
        raise UnsupportedFormat(f"{path.name} has {len(words):,} words, its first line says {head[0]:,}")
    return head[1], words


def read_solution(path: Path) -> list[Fraction]:
    """Return the probabilities of a solution; raise `UnsupportedFormat` naming a line that is wrong."""
    lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
    values = [_decimal(line, f"{path.name}, line {i}") for i, line in enumerate(lines, 1)]
    if not values or values[0] != len(values) - 1:
        raise UnsupportedFormat(f"{path.name}: the first line gives the number of the probabilities that follow")
    return values[1:]


def _numbers(path: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the place and the whole numbers of each line that is not empty."""
    for number, line in enumerate(read_text(path).splitlines(), 1):
        where, texts = f"{path.name}, line {number}", line.split()
        if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in texts):
            raise UnsupportedFormat(f"{where}: {shortened(line, 40)!r} is not a row of whole numbers")
        if texts:
            yield where, tuple(map(int, texts))


def _decimal(text: str, where: str) -> Fraction:
    if not _DECIMAL.fullmatch(text):
        raise UnsupportedFormat(f"{where}: {shortened(text, 40)!r} is not a probability: write it as 0.25")
    return Fraction(text)
