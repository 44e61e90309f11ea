"""Readers of words with outputs: JSON lines, CSV, files of competitions, or pairs as AALpy takes them.

A line of a `.jsonl` file is one of

    {"word": ["a", "b"], "outputs": [0, 1]}     the output after each letter; optionally the empty word's first
    {"word": "ab", "output": true}              the output at the end only; a string is read character by character
    [["a", "b"], true]                          the same as a pair, AALpy's form

null is an output that is not known. A `.csv` file has the columns `word` and `output` or `outputs`; letters and outputs
are strings, separated by blanks, and a word without a blank is read character by character, or in a file with longer
texts between commas, as these. Outputs are booleans if all of them are true or false, in upper or lower case; an empty
cell and null are not known. In both kinds other names of the two columns, and what separates letters, can be stated.

A file of a competition (`.dat`, `.abbadingo`, `.words`, `.txt`) has words in one of these lines:

    1 3 a b a       Abbadingo, flexfringe: label, length, letters; the first line has the numbers of words and letters
    3 a b a         TAYSIR: length, letters, the same first line; no output is known
    + a b a         StaMinA: + or -, letters; ? is not known

The label -1 is not known; labels 1 and 0 are booleans.
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
from fsa2lrnn.errors import UnsupportedFormat, check_type, counted
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
_COMPETITIONS = (".dat", ".abbadingo", ".words", ".txt")
ENDINGS = (".jsonl", ".csv", *_COMPETITIONS)


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

    def shuffled(self, seed: int) -> Data:
        """Return the words in an order drawn by the seed."""
        return self._pick(torch.randperm(len(self.tokens), generator=torch.Generator().manual_seed(seed)))

    def _pick(self, rows: Tensor) -> Data:
        return replace(self, **{name: getattr(self, name)[rows] for name in ("tokens", "labels", "lines", "lengths")})

    def _rows(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.tokens, self.labels, self.lines, self.lengths


def is_word_file(path: str | Path) -> bool:
    """Return whether a path has the ending of a file of words; `.fst.txt` is an automaton."""
    return Path(path).suffix in ENDINGS and not str(path).endswith(".fst.txt")


def read_words(
    path: str | Path,
    alphabet: Sequence[Hashable] | None = None,
    columns: tuple[str, str] | None = None,
    separator: str | None = None,
) -> Data:
    """Return the words of a file, over the letters that occur or over `alphabet`.

    Args:
        columns: the names of the columns (JSON keys) of the words and of the outputs at their ends; all others are
            ignored.
        separator: the text between the letters of a word, and between its outputs.

    Raises:
        UnsupportedFormat: naming invalid lines, or for a file without a non-empty word or with a single output.
        OSError: if the file cannot be read.
    """
    path = Path(path)
    content = path.read_bytes()
    if not is_word_file(path):
        raise UnsupportedFormat(f"{path}: words are read from {', '.join(ENDINGS)} files: name it so")
    if path.suffix in _COMPETITIONS and (columns or separator):
        raise UnsupportedFormat(f"{path}: columns and a separator are for .csv and .jsonl: leave them out")
    faults: list[str] = []
    text = decode(content, str(path))
    if path.suffix == ".jsonl":
        entries = _json_lines(text, faults, columns, separator)
    elif path.suffix == ".csv":
        entries = _csv_lines(text, faults, columns, separator)
    else:
        entries = _competition_lines(text, faults)
    return _numbered(entries, faults, str(path), alphabet)


def from_pairs(pairs: Iterable[object], alphabet: Sequence[Hashable] | None = None) -> Data:
    """Return the words of pairs (word, output at its end), the form that AALpy takes.

    Raises `UnsupportedFormat` as `read_words` does, with the position of a pair as its line.

    >>> data = from_pairs([((), False), (("a",), True), (("a", "a"), False)])
    >>> data.alphabet, data.outputs, data.labels.tolist()
    (('a',), (False, True), [[0, -1, -1], [-1, 1, -1], [-1, -1, 0]])
    """
    check_type(pairs, Iterable, "source", "a machine, its source, a file of words, or pairs (word, output)")
    entries: list[_Entry] = []
    faults: list[str] = []
    for line, pair in enumerate(pairs, 1):
        if not (isinstance(pair, Sequence) and len(pair) == 2 and isinstance(pair[0], Sequence)):
            faults.append(f"line {line}: {shown(pair)} is not a pair (word, output)")
            continue
        word = tuple(pair[0])
        entries.append(_Entry(line, word, (*[_NONE] * len(word), pair[1])))
    return _numbered(entries, faults, "the data", alphabet)


def _json_lines(text: str, faults: list[str], columns: tuple[str, str] | None, separator: str | None) -> list[_Entry]:
    """Return the entries of JSON lines, and add to `faults` the lines that are invalid."""
    entries: list[_Entry] = []
    for line, each in enumerate(text.split("\n"), 1):
        if not each.strip():
            continue
        try:
            value = parse_json(each, f"line {line}", is_line=True)
            if columns and not (isinstance(value, dict) and {*columns} <= {*value}):
                raise UnsupportedFormat(f"{shown(value)} lacks {' or '.join(map(repr, columns))}")
            if columns:
                value = {"word": value[columns[0]], "output": value[columns[1]]}
            entries.append(_entry(line, value, separator))
        except UnsupportedFormat as fault:
            text_of = str(fault)
            faults.append(text_of if text_of.startswith(f"line {line}") else f"line {line}: {text_of}")
    return entries


def _entry(line: int, value: object, separator: str | None) -> _Entry:
    """Return the entry of one JSON value: an object with "output" or "outputs", or a pair."""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], list | str):
        value = {"word": value[0], "output": value[1]}
    if not isinstance(value, dict) or "word" not in value or len(value) != 2 or not {"output", "outputs"} & set(value):
        raise UnsupportedFormat(f'{shown(value)} is neither {{"word": …, "output": …}}, with "outputs", nor a pair')
    if not isinstance(value["word"], list | str):
        raise UnsupportedFormat(f"word = {shown(value['word'])} is neither a list of letters nor text")
    letters = value["word"]
    if separator and isinstance(letters, str):
        letters = _separated(letters, separator)
    word = tuple(symbols.from_json(letter) for letter in letters)
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


def _separated(text: str, separator: str) -> list[str]:
    """Return the texts between separators, without blanks around them; white space as a separator may repeat."""
    return [each for part in text.split(separator if separator.strip() else None) if (each := part.strip())]


def _csv_lines(text: str, faults: list[str], columns: tuple[str, str] | None, separator: str | None) -> list[_Entry]:
    """Return the entries of a CSV file, and add to `faults` the lines that are invalid."""
    rows = csv.reader(StringIO(text, newline=""))
    try:
        header = [name.strip() for name in next(rows, [])]
        known = [columns] if columns else [("word", "output"), ("word", "outputs")]
        chosen = next((names for names in known if {*names} <= {*header}), None)
        if chosen is None or (not columns and len(header) != 2):
            present = f"the columns are {', '.join(header)}" if any(header) else "the file is empty"
            expected = "name two of them" if columns else "begin the file with word,output or word,outputs, or name two"
            is_named = len(header) == 2 and all(map(str.isidentifier, header))
            names = ",".join(header) if is_named else "WORD,LABEL"
            faults.append(f"line 1: {present}: {expected} (--columns {names}, in Python columns=(…, …))")
            return []
        entries: list[_Entry] = []
        places = [header.index(name) for name in chosen]
        numbered = list[tuple[int, list[str]]]()
        for row in rows:
            if len(row) == len(header):
                numbered.append((rows.line_num, [row[place].strip() for place in places]))
            elif row:
                faults.append(f"line {rows.line_num}: {len(row)} columns, not {len(header)}")
        # One rule per file: were it one per word, a word of a single long letter would fall apart.
        try:
            split = (
                (lambda cell: _separated(cell, separator))
                if separator
                else _splitter([cell for _, (cell, _) in numbered])
            )
        except UnsupportedFormat as fault:
            faults.append(str(fault))
            return []
        for line, (cell, output) in numbered:
            if _PRINTED_LIST.fullmatch(cell):
                faults.append(f"line {line}: {shown(cell)} is a list as Python prints it: write its letters and blanks")
            if len(cell) == 1 and is_epsilon(cell):
                faults.append(f"line {line}: {cell} is a name of the empty word: leave the cell empty")
            if output.casefold() == "nan":
                faults.append(f"line {line}: {output} is a name of no output: leave the cell empty")
            word = tuple(split(cell))
            try:
                if chosen[1] == "outputs":
                    texts = _separated(output, separator or " ")
                    entries.append(_dense(line, word, [_label_of_cell(each) for each in texts]))
                else:
                    entries.append(_Entry(line, word, (*[_NONE] * len(word), _label_of_cell(output))))
            except UnsupportedFormat as fault:
                faults.append(f"line {line}: {fault}")
    except csv.Error as fault:
        faults.append(f"line {rows.line_num}: {fault}")
        return []
    return _truthful(entries)


def _label_of_cell(text: str) -> Any:
    return _NONE if text.casefold() in ("", "null") else text


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
                "letters of all words by blanks, or state the separator"
            )
    return lambda cell: cell


_SIGNS = {"+": "1", "-": "0", "?": "-1"}


def _competition_lines(text: str, faults: list[str]) -> list[_Entry]:
    """Return the entries of a file of Abbadingo, TAYSIR or StaMinA, and add to `faults` what is invalid."""
    lines = [(line, fields) for line, each in enumerate(text.split("\n"), 1) if (fields := each.split())]
    first, header = lines[0] if lines else (1, [])
    is_signed = header[:1] and header[0] in _SIGNS
    if not is_signed and (len(header) != 2 or not all(re.fullmatch("[0-9]{1,9}", field) for field in header)):
        faults.append(
            f"line {first}: begin the file with the numbers of its words and letters (Abbadingo, TAYSIR), or a line "
            "with + or - and the letters of a word (StaMinA)"
        )
        return []
    rest = lines if is_signed else lines[1:]
    # Without labels each line begins with its length; a file that fits both readings has labels.
    is_unlabelled = all(fields[0] == str(len(fields) - 1) for _, fields in rest) and not all(
        fields[1:2] == [str(len(fields) - 2)] for _, fields in rest
    )
    entries: list[_Entry] = []
    for line, fields in rest:
        if is_signed:
            label, length, word = _SIGNS.get(fields[0], ""), str(len(fields) - 1), fields[1:]
        elif is_unlabelled:
            label, length, *word = "-1", *fields
        else:
            label, length, *word = fields if len(fields) > 1 else [*fields, ""]
        if length != str(len(word)):
            faults.append(f"line {line}: length {length or 'missing'}, but {counted(len(word), 'letter')}: correct it")
        elif not label:
            faults.append(f"line {line}: {fields[0]} is none of + - ?: correct it")
        elif any("/" in letter or ":" in letter for letter in word):
            faults.append(f"line {line}: letters with attributes are not read: leave them out")
        else:
            entries.append(_Entry(line, tuple(word), (*[_NONE] * len(word), _NONE if label == "-1" else label)))
    letters = len({letter for entry in entries for letter in entry.word})
    if not (faults or is_signed) and (len(rest), max(letters, int(header[1]))) != (int(header[0]), int(header[1])):
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
        raise UnsupportedFormat(f"{origin} has no output that is known, as TAYSIR's words: label some of them")
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
