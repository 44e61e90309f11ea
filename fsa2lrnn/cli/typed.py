"""Words on the command line: letters without separator, letters separated by spaces, or a JSON list of letters.

A list is needed for letters that contain spaces, letters with the same text (0 and "0"), and the word "-", which as
text denotes standard input. A word that begins with [ is a list, unless a letter begins with [ and every word can be
written as text.
"""

from __future__ import annotations

import codecs
import io
import json
import sys
import time
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import IO

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.errors import InvalidWord, UnsupportedFormat

_PIECE = 1 << 20  # bytes per read
_REPORT_SECONDS = 2.0


def read(pieces: Iterable[str], alphabet: symbols.Alphabet) -> Iterator[np.ndarray]:
    """Yield the letter numbers of a word that arrives as pieces of text: int64 arrays (T,).

    Raises `InvalidWord`, naming the text that is not a letter, and how to type letters that text cannot distinguish.

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
    """Return a word from the command line; raise `InvalidWord` naming a byte that is not UTF-8.

    Python passes such a byte on as a surrogate.
    """
    try:
        text.encode("utf-8", "surrogateescape").decode()
    except UnicodeDecodeError as fault:
        raise InvalidWord(
            f"the word is not UTF-8 (byte 0x{fault.object[fault.start]:02x} at offset {fault.start}): type it in that "
            "encoding"
        ) from None
    return text


def read_pieces(stream: IO[bytes], name: str = "standard input") -> Iterator[str]:
    """Yield the text of a UTF-8 stream in pieces; print the progress to standard error if that is a terminal.

    Raises `UnsupportedFormat` naming `name`, the invalid byte and its offset.
    """
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")(), translate=True)
    read, reported = 0, time.monotonic()
    while True:
        data = stream.read(_PIECE)
        incomplete, _ = decoder.getstate()  # the first bytes of a character that the last read cut
        try:
            piece = decoder.decode(data, final=not data)
        except UnicodeDecodeError as fault:
            offset = read - len(incomplete) + fault.start
            raise UnsupportedFormat(
                f"{name} is not UTF-8 (byte 0x{fault.object[fault.start]:02x} at offset {offset:,}): give it in that "
                "encoding"
            ) from None
        read += len(data)
        if piece:
            yield piece
        if not data:
            return
        if sys.stderr.isatty() and time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            print(f"\r{read:,} bytes read", end="", file=sys.stderr, flush=True)


def shown(word: Iterable[Hashable], alphabet: symbols.Alphabet | None = None) -> str:
    """Return a word as typed for `read`; the default alphabet consists of its letters.

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
    """Return an alphabet typed as characters, as words separated by spaces, or as a JSON list.

    Raises `UnsupportedFormat` if it is empty.

    >>> letters("ab"), letters("up down"), letters('["a b", 0]')
    (('a', 'b'), ('up', 'down'), ('a b', 0))
    """
    if text.lstrip().startswith("["):
        try:
            if listed := tuple(_letters(text)):
                return listed
        except InvalidWord:  # then [ is a letter
            pass
    typed = tuple(text.split()) if any(c.isspace() for c in text.strip()) else tuple(text.strip())
    if not typed:
        raise UnsupportedFormat(f"--alphabet {text!r}: give at least one letter, ab or 'up down' or '[\"a b\"]'")
    return typed


def shown_letters(alphabet: symbols.Alphabet) -> str:
    """Return an alphabet as typed for `letters`.

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
        return [symbols.from_json(letter) for letter in json.loads(text)]
    except (ValueError, RecursionError, UnsupportedFormat) as error:
        raise InvalidWord(
            f'the word begins with [ and is not a JSON list of letters ({error}): write \'["a b", "c"]\''
        ) from None


def _takes_lists(alphabet: symbols.Alphabet) -> bool:
    return not symbols.is_textual(alphabet) or not any(str(letter).startswith("[") for letter in alphabet)
