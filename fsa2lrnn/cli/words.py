"""Words as they are typed: letters together, letters separated by spaces, or a JSON list of letters.

A list serves where text can't: letters that hold spaces, letters that are written alike (0 and "0"), and the word "-",
which as text stands for standard input. A word that begins with [ is a list, unless a letter begins with [ and text
serves for all words.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.errors import InvalidWord, UnsupportedFormat


def read(pieces: Iterable[str], alphabet: symbols.Alphabet) -> Iterator[np.ndarray]:
    """The positions of a word's letters in the alphabet, as text comes in pieces: int64 arrays.

    Raises `InvalidWord` naming what is no letter, and how letters are typed that text does not tell.

    >>> [tokens.tolist() for tokens in read(['["a b", "-"]'], ("a b", "-"))]
    [[0, 1]]
    """
    pieces = iter(pieces)
    first = next(pieces, "")
    if first.lstrip().startswith("[") and _takes_lists(alphabet):
        yield symbols.encode(_letters(first + "".join(pieces)), alphabet)
        return
    try:
        yield from symbols.encode_text(chain([first], pieces), alphabet)
    except InvalidWord as error:
        if symbols.is_textual(alphabet):
            raise
        example = json.dumps([symbols.to_json(letter) for letter in alphabet[:2]], ensure_ascii=False)
        raise InvalidWord(f"{error}; with letters such as these a word is typed as a JSON list: '{example}'") from None


def checked(text: str) -> str:
    """A word from the command line. Raises `InvalidWord` naming a byte that is no UTF-8, which Python hands on as half
    a character."""
    try:
        text.encode("utf-8", "surrogateescape").decode()
    except UnicodeDecodeError as fault:
        raise InvalidWord(
            f"the word is not UTF-8 (byte 0x{fault.object[fault.start]:02x} at offset {fault.start}): type it in that "
            "encoding"
        ) from None
    return text


def shown(word: Iterable[Hashable], alphabet: symbols.Alphabet | None = None) -> str:
    """A word as it would be typed for `read`; without an alphabet, as if its letters were all.

    >>> shown("ab"), shown(["a", "b"], ("a", "b", "up")), shown(["a b", "-"]), shown("-")
    ('ab', 'a b', '["a b", "-"]', '["-"]')
    """
    word = tuple(word)
    alphabet = tuple(dict.fromkeys(word)) if alphabet is None else alphabet
    text = symbols.word_text(word, alphabet)
    if text == "-" and _takes_lists(alphabet):
        return json.dumps([symbols.to_json(letter) for letter in word], ensure_ascii=False)
    return text


def letters(text: str) -> tuple[Hashable, ...]:
    """An alphabet as it is typed: characters, words separated by spaces, or a JSON list.

    Raises `UnsupportedFormat` if there is none.

    >>> letters("ab"), letters("up down"), letters('["a b", 0]')
    (('a', 'b'), ('up', 'down'), ('a b', 0))
    """
    if text.lstrip().startswith("["):
        try:
            if listed := tuple(_letters(text)):
                return listed
        except InvalidWord:  # a letter of its own, then
            pass
    found = tuple(text.split()) if any(c.isspace() for c in text.strip()) else tuple(text.strip())
    if not found:
        raise UnsupportedFormat(f"--alphabet {text!r}: give at least one letter, ab or 'up down' or '[\"a b\"]'")
    return found


def shown_letters(alphabet: symbols.Alphabet) -> str:
    """An alphabet as it would be typed for `letters`.

    >>> shown_letters(("a", "b")), shown_letters(("up", "down")), shown_letters((0, 1))
    ('ab', 'up down', '[0, 1]')
    """
    texts = [str(letter) for letter in alphabet]
    for text in ("".join(texts), " ".join(texts)):
        if text.strip() and letters(text) == alphabet:
            return text
    return json.dumps([symbols.to_json(letter) for letter in alphabet], ensure_ascii=False)


def _letters(text: str) -> list[Hashable]:
    try:
        value: Any = json.loads(text)
        return [symbols.from_json(letter) for letter in value]
    except (ValueError, RecursionError, UnsupportedFormat) as error:
        raise InvalidWord(
            f'the word begins with [ and is no JSON list of letters ({error}): write \'["a b", "c"]\''
        ) from None


def _takes_lists(alphabet: symbols.Alphabet) -> bool:
    return not symbols.is_textual(alphabet) or not any(str(letter).startswith("[") for letter in alphabet)
