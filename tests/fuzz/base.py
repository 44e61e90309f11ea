"""What a reader is, and what makes hostile files of its valid ones."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from fsa2lrnn.errors import Fsa2LrnnError
from tests.fuzz.mutate import encoded, in_bytes, in_json, in_text, json_text

Valid = Callable[[], list[bytes]]
Hostile = Callable[[random.Random], bytes]
# Put into texts, beside the words and signs of valid files.
PIECES = (
    "", " ", "\n", "\t", "\0", "é", "ε", "\\", "\\d", "\\u0000", "(", ")", "[", "]", "{", "}", "<", ">", "|", "&", "^",
    "*", "-", '"', "'''", "#", "//", "/*", "-->", "->", "a" * 999, "[\x00-\U0010ffff]", "[^a]", "[a-", "{,3}", "{1000}",
    "{99,100}", "(a?){99}", "-1", "0.5", "1e9", "1e999", "nan", "99999999999999999999", "10**9", "None", "__class__",
    "lambda: 0", "[1]*9", "S9", "A5xS4", "sink", "strict", "subgraph", "{a b c}->{d e f}", "label=<b>", "peripheries=2",
    "<!DOCTYPE x>", "<!ENTITY a 'b'>", "&#0;", "&x;", "<![CDATA[", "<!--", "<type>pda</type>", "<read/>", "<transout>",
    "<eps>", "Infinity", "0 0 é\n", "a b c d e f\n", ".i 99\n", "- * a -\n", "[[x]]\n", "a.b.c=1\n", "1979-05-27",
    "0x" + "f" * 5_000, "heads=99999999999\n", "layer='os:path'\n", "tasks=['task:group(S9)']\n", "lengths=[0]\n",
)  # fmt: skip


class Reader(NamedTuple):
    """A reader: files that it accepts, one more at random, what reads a path, the ending of its name, what it may
    raise, and the bytes of memory that it may take beside twenty times the file."""

    valid: Valid
    hostile: Hostile
    read: Callable[[Path], object]
    ending: str = ""
    refuses: tuple[type[Exception], ...] = (Fsa2LrnnError, OSError)
    spare: int = 50 << 20


def given(*texts: str | bytes) -> Valid:
    """Return a function that returns the texts as bytes."""
    files = [text.encode() if isinstance(text, str) else text for text in texts]
    return lambda: files


def of_text(valid: Valid) -> Hostile:
    """Half the files changed in their bytes, half in their text."""

    def hostile(rng: random.Random) -> bytes:
        content = rng.choice(valid())
        if rng.random() < 0.5:
            return in_bytes(content, rng)
        text = content.decode(errors="replace")
        return encoded(in_text(text, rng, PIECES if rng.random() < 0.5 else re.findall(r"\w+|\W", text)))

    return hostile


def of_json(valid: Valid, own: Callable[[], list[Any]] = list) -> Hostile:
    """One file in five changed in its bytes, the others in their values, `own` among what these become."""

    def hostile(rng: random.Random) -> bytes:
        content = rng.choice(valid())
        if rng.random() < 0.2:
            return in_bytes(content, rng)
        return encoded(json_text(in_json(json.loads(content), rng, own()), rng))

    return hostile
