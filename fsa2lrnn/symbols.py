"""Translate between letters and their positions in the alphabet, and between symbols and text or JSON.

A *letter* is any hashable object. Automata and models represent it by its position in the alphabet, an `int`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from fsa2lrnn.errors import InvalidMachine, InvalidWord, UnsupportedFormat
from fsa2lrnn.reading import shown

Word = Iterable[Hashable] | str
Alphabet = tuple[Hashable, ...]

# Typographic variants of letters; read only where the alphabet has the plain form and lacks the variant.
_TYPOGRAPHIC = {"×": "*", "·": "*", "−": "-", "–": "-"}
_HALF = re.compile("[\ud800-\udfff]")


@lru_cache(maxsize=256)
def letter_index(alphabet: Alphabet) -> dict[Hashable, int]:
    """Return a dictionary from letters, and typographic variants of `*` and `-`, to positions in the alphabet."""
    return _with_variants({letter: i for i, letter in enumerate(alphabet)})


def text_index(alphabet: Alphabet) -> dict[str, int]:
    """Return a dictionary from the texts of letters, as in `letter_index`, to positions in the alphabet.

    Raises `InvalidWord` for two letters with the same text, as the integer 0 and the string "0".
    """
    # Not cached by alphabet: (0, 1) == (False, True), yet they are written differently.
    index: dict[str, int] = {}
    for i, letter in enumerate(alphabet):
        text = str(letter)
        if text in index:
            raise InvalidWord(
                f"letters {alphabet[index[text]]!r} and {letter!r} are both written {text!r}, so a word cannot be read "
                "from text: pass it as a list of letters"
            )
        index[text] = i
    return _with_variants(index)


def _with_variants(index: dict[Any, int]) -> dict[Any, int]:
    for variant, plain in _TYPOGRAPHIC.items():
        if plain in index:
            index.setdefault(variant, index[plain])
    return index


def confused(symbols: Iterable[Hashable]) -> str:
    """Return a sentence that names two symbols which are equal in Python, but not of one type and value; "" if none.

    It also names a symbol that is not hashable.

    Such symbols are one key of a dictionary, so that one of them would be read as the other.

    >>> confused([True, 0, 1])
    'True (bool) and 1 (int) are equal in Python, so that one would be read as the other: rename one'
    >>> confused([True, False, "1"]), confused([0.0, -0.0])[:20]
    ('', '0.0 (float) and -0.0')
    """
    first: dict[Hashable, Hashable] = {}
    for symbol in symbols:
        try:
            other = first.setdefault(symbol, symbol)
        except TypeError:
            return f"{shown(symbol)} is not hashable: use text, numbers, or tuples of these"
        if other is not symbol and _identity(other) != _identity(symbol):
            kinds = " and ".join(f"{shown(each)} ({type(each).__name__})" for each in (other, symbol))
            return f"{kinds} are equal in Python, so that one would be read as the other: rename one"
    return ""


def _identity(symbol: Hashable) -> Hashable:
    symbol = symbol.item() if isinstance(symbol, np.generic) else symbol
    if isinstance(symbol, bool | int | float):
        return next(kind.__name__ for kind in (bool, int, float) if isinstance(symbol, kind)), repr(+symbol)
    if isinstance(symbol, tuple):
        return "tuple", tuple(map(_identity, symbol))
    return ("frozenset", frozenset(map(_identity, symbol))) if isinstance(symbol, frozenset) else type(symbol)


def is_character_alphabet(alphabet: Alphabet) -> bool:
    """Return whether every letter is written as one character, so that words need no separators."""
    return all(len(str(letter)) == 1 for letter in alphabet)


def is_textual(alphabet: Alphabet) -> bool:
    """Return whether every word over the alphabet can be read from text, with or without spaces between letters."""
    texts = [str(letter) for letter in alphabet]
    if len(set(texts)) < len(texts):
        return False
    return is_character_alphabet(alphabet) or all(text.split() == [text] for text in texts)


def word_text(word: Iterable[Hashable], alphabet: Alphabet | None = None) -> str:
    """Return a word as unambiguous text: letters concatenated or separated by spaces, else a list.

    It is a list, in JSON if that holds the letters, if letters contain spaces or have the same text. By default, the
    alphabet is the set of letters of the word.

    >>> word_text("ab"), word_text(["a", "b"], ("a", "b", "up")), word_text(["a b", "c"]), word_text([])
    ('ab', 'a b', '["a b", "c"]', '')
    """
    word = tuple(word)
    alphabet = tuple(dict.fromkeys(word)) if alphabet is None else alphabet
    if not word or is_textual(alphabet):
        return ("" if is_character_alphabet(alphabet) else " ").join(map(str, word))
    try:
        return json.dumps([to_json(letter) for letter in word], ensure_ascii=False)
    except UnsupportedFormat:  # letters that no file holds
        return str(list(word))


def encode(word: Word, alphabet: Alphabet) -> np.ndarray:
    """Return the positions in the alphabet of a word's letters: int64, shape (T,).

    A `str` is read as text: character by character if every letter is one character (white space is skipped unless it
    is a letter), else as letters separated by white space. Any other iterable holds letters; an integer array does too,
    not positions. Raises `InvalidWord` naming an unknown letter, its position in the word, and the alphabet.

    >>> encode("1 + 2", ("1", "2", "+")).tolist()
    [0, 2, 1]
    >>> encode([1, 0, 0], (0, 1)).tolist()
    [1, 0, 0]
    """
    if isinstance(word, str):
        return np.concatenate([np.empty(0, np.int64), *encode_text([word], alphabet)])
    if not isinstance(word, Iterable):
        raise InvalidWord(f"{shown(word)} of type {type(word).__name__} is not a word: give text or a list of letters")
    index, positions = letter_index(alphabet), []
    for k, letter in enumerate(word):
        try:
            position = index[letter]
        except (KeyError, TypeError):
            raise InvalidWord(_unknown(letter, k, alphabet)) from None
        known = alphabet[position]
        is_plain = type(letter) in (str, int) and type(known) is type(letter)
        if not is_plain and confused((letter, known)):
            raise InvalidWord(_unknown(letter, k, alphabet))
        positions.append(position)
    return np.array(positions, dtype=np.int64)


def encode_text(pieces: Iterable[str], alphabet: Alphabet) -> Iterator[np.ndarray]:
    """Yield the positions of a word's letters as int64 arrays, while the text of the word arrives in pieces.

    Reads text as `encode` does, also letters that two pieces share; raises `InvalidWord` as `encode` does.
    """
    index, read = text_index(alphabet), 0
    if is_character_alphabet(alphabet):
        space_is_a_letter = any(text.isspace() for text in index)
        for piece in pieces:
            text = "".join([c for c in piece if c in index or not c.isspace()] if space_is_a_letter else piece.split())
            yield _lookup(text, index, read, alphabet)
            read += len(text)
        return
    rest = ""
    for piece in pieces:
        text = rest + piece
        words = text.split()
        rest = words.pop() if words and not text[-1].isspace() else ""
        yield _lookup(words, index, read, alphabet)
        read += len(words)
    yield _lookup(rest.split(), index, read, alphabet)


def _lookup(texts: str | list[str], index: dict[str, int], offset: int, alphabet: Alphabet) -> np.ndarray:
    try:
        if isinstance(texts, str) and len(texts) > 256 and texts.isascii():
            return _lookup_ascii(texts, index)
        return np.fromiter((index[text] for text in texts), np.int64, len(texts))
    except KeyError:
        k = next(k for k, text in enumerate(texts) if text not in index)
        raise InvalidWord(_unknown(texts[k], offset + k, alphabet)) from None


def _lookup_ascii(text: str, index: dict[str, int]) -> np.ndarray:
    table = np.full(128, -1, np.int64)
    for letter, i in index.items():
        if letter.isascii():
            table[ord(letter)] = i
    positions = table[np.frombuffer(text.encode("ascii"), np.uint8)]
    if positions.size and positions.min() < 0:
        raise KeyError
    return positions


def _unknown(letter: object, k: int, alphabet: Alphabet) -> str:
    listed = ", ".join(repr(a) for a in alphabet[:12]) + (", …" if len(alphabet) > 12 else "")
    remedy = "use letters of the alphabet"
    try:
        same_text = [a for a in alphabet if str(a) == str(letter)]
    except Exception:  # a letter whose str() fails is still only an unknown letter
        same_text = []
    if same_text:
        remedy = f"write {same_text[0]!r} ({type(same_text[0]).__name__}), not {letter!r} ({type(letter).__name__})"
    return f"letter {letter!r} at position {k + 1} is not in the alphabet ({listed}): {remedy}"


def align(letters: Alphabet, others: Alphabet) -> list[int]:
    """Return the position in the alphabet `others` of each letter of the alphabet `letters`.

    Raises `InvalidMachine` unless both contain the same letters, naming those that only one of the two has.

    >>> align(("a", "b"), ("b", "a"))
    [1, 0]
    """
    position = {letter: i for i, letter in enumerate(others)}
    if why := confused((*letters, *others)):
        raise InvalidMachine(f"letters {why}")
    if set(position) != set(letters):
        if sorted(map(str, letters)) == sorted(map(str, others)):
            raise InvalidMachine(_alike(letters, others))
        only_first = [letter for letter in letters if letter not in position]
        only_second = [letter for letter in others if letter not in set(letters)]
        raise InvalidMachine(
            f"the alphabets differ (only the first has {only_first[:8]}, only the second {only_second[:8]}): "
            "rename or add letters until both have the same"
        )
    return [position[letter] for letter in letters]


def _alike(letters: Alphabet, others: Alphabet) -> str:
    of_text = {str(letter): letter for letter in others}
    a, b = next((a, of_text[str(a)]) for a in letters if a != of_text[str(a)])
    return (
        f"the alphabets differ in kind: the first has {a!r} ({type(a).__name__}), the second {b!r} "
        f"({type(b).__name__}): make both with the same letters, for instance LRNN.from_tables(A, v, x0, readout, "
        "alphabet=machine.alphabet, outputs=…)"
    )


def to_json(symbol: Hashable) -> Any:
    """Return a symbol as a JSON value from which `from_json` makes an equal symbol, except for NaN.

    Strings, integers, booleans, floats and None are written as they are, tuples and frozensets as a tagged object,
    numpy scalars as Python's. Raises `UnsupportedFormat` for any other type, and for a lone surrogate in a string.

    >>> from_json(to_json(("acc", 3, None)))
    ('acc', 3, None)
    """
    if isinstance(symbol, np.generic):
        symbol = symbol.item()
    if isinstance(symbol, str) and _HALF.search(symbol):
        raise UnsupportedFormat(
            f"symbol {symbol!r} holds half a character (a lone surrogate), which no file can: rename it"
        )
    if symbol is None or type(symbol) in (str, int, bool, float):
        return symbol
    if isinstance(symbol, tuple):
        return {"tuple": [to_json(s) for s in symbol]}
    if isinstance(symbol, frozenset):
        return {"frozenset": sorted((to_json(s) for s in symbol), key=repr)}
    raise UnsupportedFormat(
        f"symbol {symbol!r} of type {type(symbol).__name__} cannot be written to JSON, which holds strings, numbers, "
        "booleans, None, and tuples and frozensets of these: rename the symbol"
    )


def from_json(value: object) -> Hashable:
    """Return the symbol of a JSON value (inverse of `to_json`); raise `UnsupportedFormat` for other JSON and NaN."""
    if value is None or (isinstance(value, str | int | float) and value == value):
        return value
    if isinstance(value, dict) and len(value) == 1:
        (tag, items), *_ = value.items()
        if tag in ("tuple", "frozenset") and isinstance(items, list):
            return (tuple if tag == "tuple" else frozenset)(from_json(item) for item in items)
    raise UnsupportedFormat(
        f"{shown(value)} is not a symbol: expected a string, number, boolean, null or a tagged tuple"
    )


def show(symbol: Hashable) -> str:
    """Return a symbol as text for display: "accept" for True, "reject" for False, "–" for None."""
    if isinstance(symbol, bool | np.bool_):
        return "accept" if symbol else "reject"
    return "–" if symbol is None else str(symbol)


def listed(values: Iterable[Hashable], limit: int = 24) -> str:
    """Return symbols as one line for display: the first `limit`, and the number of all if there are more.

    >>> listed([True, None]), listed(range(30), limit=3)
    ('accept –', '0 1 2 … (30)')
    """
    texts = [show(value) for value in values]
    return " ".join(texts[:limit]) + (f" … ({len(texts):,})" if len(texts) > limit else "")


def show_label(label: Hashable) -> str:
    """Return a state's label as text for display; a named tuple is shown as a plain one."""
    return str(tuple(label) if isinstance(label, tuple) else label)
