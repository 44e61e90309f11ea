"""Readers of words with outputs: JSON lines, CSV, or pairs as AALpy takes them; letters and outputs of any kind.

A line of a `.jsonl` file is one of

    {"word": ["a", "b"], "outputs": [0, 1]}     the output after each letter; optionally the empty word's first
    {"word": "ab", "output": true}              the output at the end only; a string is read character by character
    [["a", "b"], true]                          the same as a pair, AALpy's form

null is an output that is not known. A `.csv` file has the columns `word` and `output` or `outputs`; letters and outputs
are strings, separated by blanks, and a word without a blank is read character by character, or in a file with longer
texts between commas, as these. Outputs are booleans if all of them are true or false, in upper or lower case; an empty
cell is not known.

A `.dat` or `.abbadingo` file has the lines `words letters` and, for each word, `label length letters…`, as Abbadingo,
StaMinA and flexfringe write it; the label -1 is not known, labels 1 and 0 are booleans.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fsa2lrnn import symbols
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.formats.graph import is_epsilon
from fsa2lrnn.errors import UnsupportedFormat, counted
from fsa2lrnn.reading import decode, parse_json, shown

_SHOWN = 5  # faults
_LARGEST = 1 << 27  # letters, padding and all
_SMALL, _PADDED = 1 << 21, 16  # beyond the first size, padding may multiply the letters by at most the second


class _Entry(NamedTuple):
    """One word with the output at each of its prefixes, the empty one first; `_NONE` for a missing output."""

    line: int
    word: tuple[Hashable, ...]
    outputs: tuple[Any, ...]


_NONE = object()
_BOOLEAN = ("true", "false")
_PRINTED_LIST = re.compile(r"""[\[(](?:\s*u?['"].*|.*[,\s]\s*[^\s\])]+,?)[\])]""")  # ['a', 'b'], [1 2], but not [ ( ) ]
ENDINGS = (".jsonl", ".csv", ".dat", ".abbadingo")


@dataclass(frozen=True, eq=False)
class Data:
    """Words and outputs as indices.

    Args:
        alphabet, outputs: the symbols that tokens and labels index.
        tokens: int64 (n, T), padded with 0.
        labels: int64 (n, T+1), the empty word's first; `UNCOUNTED` for missing outputs and in the padding.
        lines: int64 (n,), the line of each word in its file, from 1.
        lengths: int64 (n,), the length of each word.
    """

    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]
    tokens: Tensor
    labels: Tensor
    lines: Tensor
    lengths: Tensor

    @property
    def n_labels(self) -> int:
        """The number of labels that are not `UNCOUNTED`."""
        return int((self.labels != UNCOUNTED).sum())

    def check_consistent(self) -> None:
        """Raise `UnsupportedFormat`, naming the lines, if one prefix has two outputs."""
        clashes: list[str] = []
        first: dict[int, tuple[int, int]] = {}  # the first label of a prefix, and its line
        number: dict[tuple[int, int], int] = {}
        for tokens, labels, line, length in zip(*(t.tolist() for t in self._rows()), strict=True):
            node = 0
            for k in range(length + 1):
                if k:
                    node = number.setdefault((node, tokens[k - 1]), len(number) + 1)
                if labels[k] == UNCOUNTED:
                    continue
                label, before = first.setdefault(node, (labels[k], line))
                if label != labels[k]:
                    word = symbols.word_text([self.alphabet[a] for a in tokens[:k]], self.alphabet) or "ε"
                    clashes.append(
                        f"line {line} gives {self.outputs[labels[k]]!r} after {shown(word)}, line {before} "
                        f"{self.outputs[label]!r}"
                    )
        if clashes:
            raise UnsupportedFormat(
                f"the words contradict each other: {_some(clashes)}; correct them, or state a label noise (noise)"
            )

    def split(self, held_out: float, seed: int) -> tuple[Data, Data | None]:
        """Return the words to learn from and the held-out words, None if the share amounts to no word."""
        n = len(self.tokens)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
        n_out = min(int(n * held_out), n - 1)
        if n_out == 0:
            return self, None
        return self._pick(order[n_out:].sort().values), self._pick(order[:n_out].sort().values)

    def _pick(self, rows: Tensor) -> Data:
        return replace(self, **{name: getattr(self, name)[rows] for name in ("tokens", "labels", "lines", "lengths")})

    def _rows(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.tokens, self.labels, self.lines, self.lengths


def read_words(path: str | Path, alphabet: Sequence[Hashable] | None = None) -> Data:
    """Return the words of a file, over the letters that occur or over `alphabet`.

    Raises:
        UnsupportedFormat: naming invalid lines, or for a file without a non-empty word or with a single output.
        OSError: if the file cannot be read.
    """
    path = Path(path)
    content = path.read_bytes()
    readers = {".jsonl": _json_lines, ".csv": _csv_lines, ".dat": _abbadingo_lines, ".abbadingo": _abbadingo_lines}
    if path.suffix not in readers:
        raise UnsupportedFormat(f"{path}: words are read from {', '.join(readers)} files: name it so")
    faults: list[str] = []
    entries = readers[path.suffix](decode(content, str(path)), faults)
    return _numbered(entries, faults, str(path), alphabet)


def from_pairs(pairs: Iterable[object], alphabet: Sequence[Hashable] | None = None) -> Data:
    """Return the words of pairs (word, output at its end), the form that AALpy takes.

    Raises `UnsupportedFormat` as `read_words` does, with the position of a pair as its line.

    >>> data = from_pairs([((), False), (("a",), True), (("a", "a"), False)])
    >>> data.alphabet, data.outputs, data.labels.tolist()
    (('a',), (False, True), [[0, -1, -1], [-1, 1, -1], [-1, -1, 0]])
    """
    entries: list[_Entry] = []
    faults: list[str] = []
    for line, pair in enumerate(pairs, 1):
        if not (isinstance(pair, Sequence) and len(pair) == 2 and isinstance(pair[0], Sequence)):
            faults.append(f"line {line}: {shown(pair)} is not a pair (word, output)")
            continue
        word = tuple(pair[0])
        entries.append(_Entry(line, word, (*[_NONE] * len(word), pair[1])))
    return _numbered(entries, faults, "the data", alphabet)


def _json_lines(text: str, faults: list[str]) -> list[_Entry]:
    """Return the entries of JSON lines, and add to `faults` the lines that are invalid."""
    entries: list[_Entry] = []
    for line, each in enumerate(text.split("\n"), 1):
        if not each.strip():
            continue
        try:
            entries.append(_entry(line, parse_json(each, f"line {line}", is_line=True)))
        except UnsupportedFormat as fault:
            text_of = str(fault)
            faults.append(text_of if text_of.startswith(f"line {line}") else f"line {line}: {text_of}")
    return entries


def _entry(line: int, value: object) -> _Entry:
    """Return the entry of one JSON value: an object with "output" or "outputs", or a pair."""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], list | str):
        value = {"word": value[0], "output": value[1]}
    if not isinstance(value, dict) or "word" not in value or len(value) != 2 or not {"output", "outputs"} & set(value):
        raise UnsupportedFormat(f'{shown(value)} is neither {{"word": …, "output": …}}, with "outputs", nor a pair')
    if not isinstance(value["word"], list | str):
        raise UnsupportedFormat(f"word = {shown(value['word'])} is neither a list of letters nor text")
    word = tuple(symbols.from_json(letter) for letter in value["word"])
    if "output" in value:
        return _Entry(line, word, (*[_NONE] * len(word), _label(value["output"])))
    if not isinstance(value["outputs"], list):
        raise UnsupportedFormat(f"outputs = {shown(value['outputs'])} is not a list")
    return _dense(line, word, [_label(output) for output in value["outputs"]])


def _label(value: object) -> Any:
    return _NONE if value is None else symbols.from_json(value)


def _dense(line: int, word: tuple[Hashable, ...], outputs: list[Any]) -> _Entry:
    if len(outputs) == len(word):
        return _Entry(line, word, (_NONE, *outputs))
    if len(outputs) == len(word) + 1:
        return _Entry(line, word, tuple(outputs))
    raise UnsupportedFormat(
        f"{counted(len(outputs), 'output')} for {counted(len(word), 'letter')}: give one a letter, or first that of "
        "the empty word too"
    )


def _csv_lines(text: str, faults: list[str]) -> list[_Entry]:
    """Return the entries of a CSV file, and add to `faults` the lines that are invalid."""
    rows = csv.reader(StringIO(text, newline=""))
    try:
        header = [name.strip() for name in next(rows, [])]
        if header not in (["word", "output"], ["word", "outputs"]):
            columns = f"the columns are {', '.join(header)}" if any(header) else "there are no columns"
            faults.append(f"line 1: {columns}: begin the file with word,output or word,outputs")
            return []
        entries: list[_Entry] = []
        numbered = [(rows.line_num, row) for row in rows if row]
        # One rule per file: were it one per word, a word of a single long letter would fall apart.
        try:
            split = _splitter([row[0].strip() for _, row in numbered])
        except UnsupportedFormat as fault:
            faults.append(str(fault))
            return []
        for line, row in numbered:
            if len(row) != 2:
                faults.append(f"line {line}: {len(row)} columns, not 2")
                continue
            cell, output = row[0].strip(), row[1].strip()
            if _PRINTED_LIST.fullmatch(cell):
                faults.append(f"line {line}: {shown(cell)} is a list as Python prints it: write its letters and blanks")
            if len(cell) == 1 and is_epsilon(cell):
                faults.append(f"line {line}: {cell} is a name of the empty word: leave the cell empty")
            if output.casefold() == "nan":
                faults.append(f"line {line}: {output} is a name of no output: leave the cell empty")
            word = tuple(split(cell))
            try:
                if header[1] == "output":
                    entries.append(_Entry(line, word, (*[_NONE] * len(word), output or _NONE)))
                else:
                    entries.append(_dense(line, word, output.split()))
            except UnsupportedFormat as fault:
                faults.append(f"line {line}: {fault}")
    except csv.Error as fault:
        faults.append(f"line {rows.line_num}: {fault}")
        return []
    return _truthful(entries)


def _splitter(cells: list[str]) -> Callable[[str], Sequence[str]]:
    """Return how all words of a file are split: at white space, at commas or the like between texts, or nowhere."""
    if any(c.isspace() for cell in cells for c in cell):
        return str.split
    for sign in ",;|":
        if pieces := [piece for cell in cells if sign in cell for piece in cell.split(sign)]:
            if all(pieces) and any(len(piece) > 1 for piece in pieces):
                return lambda cell: cell.split(sign) if cell else []
            cell = next(cell for cell in cells if sign in cell)
            raise UnsupportedFormat(
                f"the word {cell[:40]!r} has {sign!r}, which can be a letter or stand between letters: separate the "
                "letters of all words by blanks"
            )
    return lambda cell: cell


def _abbadingo_lines(text: str, faults: list[str]) -> list[_Entry]:
    """Return the entries of an Abbadingo file, and add to `faults` what contradicts its header or is invalid."""
    lines = [(line, fields) for line, each in enumerate(text.split("\n"), 1) if (fields := each.split())]
    (first, header), *rest = lines or [(1, [])]
    if len(header) != 2 or not all(re.fullmatch("[0-9]{1,9}", field) for field in header):
        faults.append(f"line {first}: begin the file with the numbers of its words and letters")
        return []
    entries: list[_Entry] = []
    for line, (label, *others) in rest:
        length, *word = others or [""]
        if length != str(len(word)):
            faults.append(f"line {line}: length {length or 'missing'}, but {counted(len(word), 'letter')}: correct it")
        elif any("/" in letter or ":" in letter for letter in word):
            faults.append(f"line {line}: letters with attributes are not read: leave them out")
        else:
            entries.append(_Entry(line, tuple(word), (*[_NONE] * len(word), _NONE if label == "-1" else label)))
    letters = len({letter for entry in entries for letter in entry.word})
    if not faults and (len(rest), max(letters, int(header[1]))) != (int(header[0]), int(header[1])):
        faults.append(
            f"line {first}: {' '.join(header)}, but there are {len(rest)} words of {letters} letters: correct it"
        )
    return _truthful(entries, {"1": True, "0": False})


def _truthful(entries: list[_Entry], texts: dict[str, bool] | None = None) -> list[_Entry]:
    """Return entries with booleans for outputs if all are among `texts`, by default true and false."""
    outputs = {output for entry in entries for output in entry.outputs if output is not _NONE}
    texts = texts or {output: output.casefold() == "true" for output in outputs if output.casefold() in _BOOLEAN}
    if not outputs <= texts.keys():
        return entries
    return [entry._replace(outputs=tuple(texts.get(output, _NONE) for output in entry.outputs)) for entry in entries]


def _numbered(entries: list[_Entry], faults: list[str], origin: str, alphabet: Sequence[Hashable] | None) -> Data:
    """Return entries as `Data`, symbols numbered in order of occurrence; raise with the faults of all lines at once."""
    # Number the symbols in the order in which they occur, and report all faults of all lines at once.
    letters = _Symbols("letter", alphabet)
    outputs = _Symbols("output", None)
    numbers: list[tuple[list[int], list[int]]] = []
    for entry in entries:
        try:
            word = [letters.number(letter) for letter in entry.word]
            labels = [UNCOUNTED if output is _NONE else outputs.number(output) for output in entry.outputs]
            numbers.append((word, labels))
        except UnsupportedFormat as fault:
            faults.append(f"line {entry.line}: {fault}")
    if faults:
        raise UnsupportedFormat(f"{origin}: {_some(faults)}")
    longest = max((len(entry.word) for entry in entries), default=0)
    if not longest:
        content = "only the empty word" if entries else "no words"
        raise UnsupportedFormat(f"{origin} has {content}: add lines, each with a word of one or more letters")
    if not outputs.symbols:
        raise UnsupportedFormat(f"{origin} has no output that is known: label some words")
    if len(outputs.symbols) < 2:
        raise UnsupportedFormat(
            f"{origin} holds the output {outputs.symbols[0]!r} and no other: there is nothing to learn from"
        )
    most = min(_LARGEST, max(_SMALL, _PADDED * sum(len(entry.word) for entry in entries)))
    if len(entries) * longest > most:
        raise UnsupportedFormat(
            f"{origin}: {len(entries):,} words of up to {longest:,} letters are too many at once, padded to one "
            "length: cut long ones short"
        )
    tokens = torch.zeros(len(entries), longest, dtype=torch.int64)
    labels = torch.full((len(entries), longest + 1), UNCOUNTED)
    for i, (word, of_word) in enumerate(numbers):
        tokens[i, : len(word)] = torch.tensor(word, dtype=torch.int64)
        labels[i, : len(of_word)] = torch.tensor(of_word)
    lines = torch.tensor([entry.line for entry in entries])
    lengths = torch.tensor([len(entry.word) for entry in entries])
    return Data(tuple(letters.symbols), tuple(outputs.symbols), tokens, labels, lines, lengths)


class _Symbols:
    """Symbols by index, in the order in which they occur, or a fixed alphabet."""

    def __init__(self, kind: str, alphabet: Sequence[Hashable] | None) -> None:
        self._kind, self._is_fixed = kind, alphabet is not None
        self.symbols = list(alphabet or ())
        self._index = {symbol: i for i, symbol in enumerate(self.symbols)}

    def number(self, symbol: Hashable) -> int:
        """Return the index of a symbol. Raises `UnsupportedFormat` if it is unknown or equals one of another type."""
        try:
            i = self._index.get(symbol)
        except TypeError:
            raise UnsupportedFormat(f"{self._kind} {shown(symbol)} cannot be a key: use texts or numbers") from None
        if i is None:
            if self._is_fixed:
                raise UnsupportedFormat(f"{self._kind} {shown(symbol)} is none of {', '.join(map(repr, self.symbols))}")
            i = self._index[symbol] = len(self.symbols)
            self.symbols.append(symbol)
        elif type(self.symbols[i]) is not type(symbol):
            raise UnsupportedFormat(
                f"{self._kind} {symbol!r} is equal to {self.symbols[i]!r}, which stands elsewhere: write them as texts"
            )
        return i


def _some(faults: list[str]) -> str:
    more = f"; and {len(faults) - _SHOWN:,} more" if len(faults) > _SHOWN else ""
    return "; ".join(faults[:_SHOWN]) + more
