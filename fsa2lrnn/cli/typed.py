"""Words and alphabets as they are typed on the command line or piped: UTF-8 text, with or without spaces."""

from __future__ import annotations

import codecs
import io
import sys
import time
from collections.abc import Iterator
from typing import IO

from fsa2lrnn.errors import InvalidWord, UnsupportedFormat

_PIECE = 1 << 20  # bytes per read
_REPORT_SECONDS = 2.0


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


def letters(text: str) -> tuple[str, ...]:
    """Return an alphabet typed as characters, or as words separated by spaces.

    Raises `UnsupportedFormat` if it is empty.

    >>> letters("ab"), letters("up down")
    (('a', 'b'), ('up', 'down'))
    """
    typed = tuple(text.split()) if any(c.isspace() for c in text.strip()) else tuple(text.strip())
    if not typed:
        raise UnsupportedFormat(f"--alphabet {text!r}: give at least one letter, ab or 'up down'")
    return typed
