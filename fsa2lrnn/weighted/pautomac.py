"""Read the files of the PAutomaC competition: models, words, and probabilities of words.

A model has the sections I (initial), F (to stop), S (letter, of those that go on) and T (next state, after the letter),
each under a head, with lines of states and letters in brackets and a probability:

    S: (state,symbol)
        (0,1) 0.25

Words are a line `words letters` and, for each word, `length letter letter …`; a solution is the number of words and the
probability of each. Numbers are read as the decimal fractions that they are.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from fsa2lrnn.deadline import bounded
from fsa2lrnn.errors import MissingFile, UnsupportedFormat, check_type, shortened
from fsa2lrnn.reading import read_text
from fsa2lrnn.weighted.weighted_automaton import MAX_ENTRIES, WeightedAutomaton

_SECTIONS = {"I": 1, "F": 1, "S": 2, "T": 3}
_HEAD = re.compile(r"([IFST]):\s*\([a-z,]*\)")
_ENTRY = re.compile(r"\(([0-9]{1,9}(?:,[0-9]{1,9}){0,2})\)\s+(\S+)")
_DECIMAL = re.compile(r"[0-9]{0,400}\.?[0-9]{1,400}(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE = re.compile(r"(?:[0-9]{1,9}\s+)*[0-9]{1,9}")
Word = tuple[int, ...]


def read_model(path: str | Path) -> WeightedAutomaton:
    """Return the distribution of a model; letters are 0, 1, 2, ….

    Raises `UnsupportedFormat` naming the line that is not of the format, `InvalidMachine` if probabilities do not sum
    to one, `BudgetExceeded` for matrices of more than 2²⁰ entries.
    """
    path = _file(path)
    parts, section = dict[str, dict[Word, Fraction]](), "I"
    for where, text in _lines(path):
        if (head := _HEAD.fullmatch(text)) and head[1] not in parts:
            section = head[1]
            parts[section] = {}
            continue
        entry = _ENTRY.fullmatch(text)
        key = tuple(map(int, entry[1].split(","))) if entry else ()
        if entry is None or section not in parts or len(key) != _SECTIONS[section] or key in parts[section]:
            what = f"{where}: {shortened(text, 40)!r}"
            raise UnsupportedFormat(f"{what} is not an entry of section {section}, as (0) 0.5, or stands twice")
        parts[section][key] = _decimal(entry[2], where)
    if lacking := [name for name in _SECTIONS if not any(parts.get(name, {}).values())]:
        raise UnsupportedFormat(f"{path.name} lacks section {lacking[0]}, or it is 0: a model has I, F, S and T")
    n = 1 + max(q for part in parts.values() for key in part for q in (key[0], key[-1] if len(key) == 3 else 0))
    letters = 1 + max(key[1] for name in "ST" for key in parts[name])
    bounded(letters * n * n, MAX_ENTRIES, f"{n:,} states over {letters:,} letters")
    zero = Fraction(0)
    initial, stop = ([parts[name].get((q,), zero) for q in range(n)] for name in "IF")
    transitions = [[[zero] * n for _ in range(n)] for _ in range(letters)]
    for (p, a, q), share in parts["T"].items():
        transitions[a][p][q] = (1 - stop[p]) * parts["S"].get((p, a), zero) * share
    return WeightedAutomaton.from_probabilities(range(letters), initial, transitions, stop)


def read_words(path: str | Path) -> tuple[int, list[Word]]:
    """Return the number of letters and the words of a file; raise `UnsupportedFormat` naming a line that is wrong."""
    path, rows = _file(path), list[Word]()
    for where, text in _lines(path):
        row = tuple(map(int, text.split())) if _WHOLE.fullmatch(text) else ()
        is_head, is_word = not rows and len(row) == 2, bool(row) and row[0] == len(row) - 1
        if not (is_head or (rows and is_word and max(row[1:], default=0) < rows[0][1])):
            what = f"{where}: {shortened(text, 40)!r}"
            raise UnsupportedFormat(
                f"{what}: first the numbers of words and of letters, then a length and letters each"
            )
        rows.append(row)
    if not rows or len(rows) != rows[0][0] + 1:
        raise UnsupportedFormat(f"{path.name} has {max(len(rows) - 1, 0):,} words, and its first line another number")
    return rows[0][1], [row[1:] for row in rows[1:]]


def read_solution(path: str | Path) -> list[Fraction]:
    """Return the probabilities of a solution; raise `UnsupportedFormat` naming a line that is wrong."""
    path = _file(path)
    values = [_decimal(text, where) for where, text in _lines(path)]
    if not values or values[0] != len(values) - 1:
        raise UnsupportedFormat(f"{path.name}: the first line gives the number of the probabilities that follow")
    return values[1:]


def _file(path: str | Path) -> Path:
    """Return the path of a file; raise `MissingFile` if it does not exist."""
    check_type(path, (str, Path), "path", "the path of a file of PAutomaC")
    if not Path(path).is_file():
        raise MissingFile(f"no such file: {shortened(str(path))}: give a file of PAutomaC")
    return Path(path)


def _lines(path: Path) -> list[tuple[str, str]]:
    """Return the place and the text of each line that is not empty."""
    lines = enumerate(read_text(path).splitlines(), 1)
    return [(f"{path.name}, line {number}", line.strip()) for number, line in lines if line.strip()]


def _decimal(text: str, where: str) -> Fraction:
    if not _DECIMAL.fullmatch(text):
        raise UnsupportedFormat(f"{where}: {shortened(text, 40)!r} is not a probability: write it as 0.25")
    return Fraction(text)
