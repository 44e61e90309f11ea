"""What a reader is, and hostile files: valid ones changed in their bytes, their text, or the values of their JSON."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fsa2lrnn.errors import Fsa2LrnnError

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
# What a value may be changed into: other types, numbers at every edge, sizes out of all proportion, and deep nesting.
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 255, 2**31, 2**53 + 1, 2**63, -(2**63), 2**64, 10**11, 10**30, 10**400, 1.0, 2.0,
    0.5, -0.0, 1e-320, 1e39, 1e308, float("inf"), float("-inf"), float("nan"), "", "0", "1", "x", "1e9", "1/0", "½",
    "٣", "\x00", "é", "\ud800", "9" * 5_000, "a" * 100_000, "task:parity", "../../etc/passwd", "os:system", [], [[]],
    {}, [0], [None], [True], [1] * 10_000, [[1] * 100] * 100, [{}] * 1_000, {"tuple": []}, {"frozenset": [1, 1.0]},
    {"tuple": [{"tuple": [{"tuple": []}]}]}, {"": None}, {"a": {"a": {"a": {}}}}, list(range(300)),
)  # fmt: skip
DEEP = (90, 101, 500, 5_000, 100_000)


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


def in_bytes(content: bytes, rng: random.Random) -> bytes:
    """A few bytes flipped, cut out, doubled, moved, repeated many times, or exchanged for others."""
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20)) if content else 0):
        i, k = rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)
        head, piece, tail = content[:i], content[i : (j := i + rng.choice((1, 1, 2, 4, 8, 50, 500)))], content[j:]
        content = rng.choice((
            head + bytes([rng.randrange(256)]) + content[i + 1 :], head, head + tail, head + piece + content[i:],
            head + bytes(b ^ 1 << rng.randrange(8) for b in piece[:1]) + content[i + 1 :],
            head + rng.randbytes(len(piece)) + content[i:], content[:k] + piece + content[k:],
            head + piece * rng.choice((10, 100, 1_000)) + content[i:], head + bytes(len(piece)) + tail,
        ))  # fmt: skip
    return content[: 1 << 20]


def in_text(content: str, rng: random.Random, pieces: Sequence[str]) -> str:
    """Pieces of the language put in, taken out, doubled, nested deeply, or repeated many times."""
    for _ in range(rng.choice((1, 1, 2, 4, 10))):
        i = rng.randrange(len(content) + 1)
        head, old, tail = content[:i], content[i : (j := i + rng.choice((1, 2, 5, 20, 200)))], content[j:]
        piece, depth = rng.choice(pieces), rng.choice(DEEP[:4])
        opening, closing = rng.choice(("()", "[]", "{}", "<>", ('"', '"'), ("a(", ")")))
        content = rng.choice((
            head + piece + old + tail, head + piece + tail, head + tail,
            head + old * rng.choice((2, 10, 100, 2_000)) + tail,
            head + piece * rng.choice((2, 50, 1_000, 20_000)) + old + tail,
            head + opening * depth + old + closing * depth + tail,
            head + rng.choice(("9" * 5_000, "\x00", "\ufeff", "\ud7ff", "٣", "\u2028")) + tail,
        ))  # fmt: skip
    return content[: 1 << 20]


def in_json(value: Any, rng: random.Random, own: Sequence[Any] = ()) -> Any:
    """A few values of a document exchanged, removed, doubled, renamed, or swapped with each other."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(places_in(value))
        if not places:
            return value
        holder, key = rng.choice(places)
        match rng.randrange(10):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[rng.choice(("", "x", "claim", "version", "__class__", "a" * 300))] = rng.choice(HOSTILE)
            case 2 if isinstance(holder, list):
                holder[:] = holder[:] * rng.choice((2, 3, 50))
            case 3 | 4:
                other, place = rng.choice(places)
                holder[key] = copy.deepcopy(other[place])
            case 5 if type(holder[key]) is int:
                holder[key] += rng.choice((-2, -1, 1, 2, 2**31, 10**12))
            case 6 if isinstance(holder[key], int | float) and abs(holder[key]) < 2.0**1000:  # else no float
                holder[key] = rng.choice((float(holder[key]), str(holder[key]), bool(holder[key]), [holder[key]]))
            case 7 if own:
                holder[key] = copy.deepcopy(rng.choice(own))
            case _:
                holder[key] = copy.deepcopy(rng.choice(HOSTILE))
    return value


def json_text(value: Any, rng: random.Random) -> str:
    """The document as text, now and then with a comma too many, or nested beyond reason."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.7)
    match rng.randrange(20):
        case 0 if text.startswith("{") and len(text) > 2:
            return text[:-1] + "," + text[1:]
        case 1:
            depth, spot = rng.choice(DEEP), rng.randrange(len(text))
            return text[:spot] + "[" * depth + "]" * depth * rng.randrange(2) + text[spot:]
        case _:
            return text


def encoded(text: str) -> bytes:
    """UTF-8, halves of characters included."""
    return text.encode("utf-8", "surrogatepass")


def places_in(value: Any) -> Any:
    """Each (container, key) of a document."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places_in(value[key])
