"""Check certificates of weighted automata independently of the search, with the standard library alone.

    python recheck.py certificate.json                     # this file alone, in any place
    python -m fsa2lrnn.weighted.recheck certificate.json   # imports the package around it too

Both automata of a certificate are run side by side: x is the pair of their vectors, and d(x) what they read from it,
one minus the other. A space is given by vectors, each with a 1 in a row where all others have 0, so that x lies in it
iff x = Σ x[row of e] e. (T64 of docs/theory.md.)

"equal"      One space contains the initial vector, every letter maps it into itself, and d is 0 on it.
"separated"  Spaces S_0, S_1, … for the lengths below that of the word: S_0 contains the initial vector, every letter
             maps S_k into S_{k+1}, and d is 0 on all. So no shorter word separates; d of the word's vector is not 0.
"minimal"    As "equal", and the matrix of f(prefix · suffix), which is of the second automaton and has as many rows as
             it has states, is not singular: its determinant is not 0 modulo a number. So no automaton with this
             function has fewer states.
"""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

WORK = 1 << 27
"""The default bound on the steps of a check: a minute or less. A step is a product of small numbers."""
MODULUS = (1 << 61) - 1
NAMES = ("format", "version", "claim", "alphabet", "first", "second", "spaces")
MORE = {"equal": (), "separated": ("word",), "minimal": ("prefixes", "suffixes")}
Vector = list[Fraction]
Matrix = list[Vector]


class RejectedCertificate(ValueError):
    """The error that a certificate does not prove its claim; the message names the first fault."""


def require(condition: bool, fault: str) -> None:
    """Raise `RejectedCertificate` with a message unless a condition holds."""
    if not condition:
        raise RejectedCertificate(fault)


class Automaton(NamedTuple):
    """A weighted automaton: n numbers, one n × n matrix per letter, and rows of n numbers."""

    initial: Vector
    maps: list[Matrix]
    final: Matrix


def recheck(certificate: dict[str, Any], work: int = WORK) -> str:
    """Check a certificate and return the claim that it proves, as one line of text.

    Raises `RejectedCertificate` if it is wrong, malformed, or needs more than `work` steps.
    """
    try:
        return _recheck(certificate, work)
    except RejectedCertificate:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as fault:
        raise RejectedCertificate(f"it is malformed ({type(fault).__name__}: {str(fault)[:200]})") from None


def _recheck(value: dict[str, Any], work: int) -> str:
    """Return the claim that a certificate proves."""
    claim, names = value["claim"], (*NAMES, *MORE[value["claim"]])
    require(set(value) == set(names), f"fields are {', '.join(names)}, no others")
    require((value["format"], value["version"]) == ("fsa2lrnn-weighted-certificate", 1), "it is of another format")
    # 1. Read the parts, and bound the work.
    letters = len(value["alphabet"])
    first, second = (_automaton(value[name], letters) for name in ("first", "second"))
    require(len(first.final) == len(second.final), "the automata have different numbers of outputs")
    n, m = len(first.initial) + len(second.initial), len(second.initial)
    spaces = [[_numbers(vector, n) for vector in space] for space in value["spaces"]]
    word = _word(value.get("word", []), letters)
    prefixes = [_word(prefix, letters) for prefix in value.get("prefixes", [])]
    suffixes = [(output, _word(suffix, letters)) for output, suffix in value.get("suffixes", [])]
    vectors = [v for w in (first, second) for v in (w.initial, *w.final, *(row for A in w.maps for row in A))]
    sizes = (x.numerator.bit_length() + x.denominator.bit_length() for v in sum(spaces, vectors) for x in v)
    read = len(word) + sum(map(len, prefixes)) + sum(len(suffix) for _, suffix in suffixes)
    products = letters * sum(len(space) + 1 for space in spaces) + read + n
    steps = (1 + max(sizes, default=0) // 64) * products * n * n
    require(steps <= work, f"the check takes {steps:,} steps, its bound is {work:,}: give a larger `work`")
    # 2. Check the spaces of both automata side by side.
    zero, final = Fraction(0), [f + [-x for x in g] for f, g in zip(first.final, second.final, strict=True)]
    maps = [
        [row + [zero] * m for row in A] + [[zero] * (n - m) + row for row in B]
        for A, B in zip(first.maps, second.maps, strict=True)
    ]
    initial, pivots = first.initial + second.initial, [_pivots(space) for space in spaces]
    require(not any(_dot(row, v) for space in spaces for v in space for row in final), "a vector shows a difference")
    require(len(spaces) == (len(word) if claim == "separated" else 1), "a space is missing, or too many")
    require(not spaces or _is_in(initial, spaces[0], pivots[0]), "the first space lacks the initial vector")
    after = slice(1, None) if claim == "separated" else slice(None)
    for low, high, rows in zip(spaces, spaces[after], pivots[after], strict=False):
        inside = (_is_in(_apply(A, v), high, rows) for A in maps for v in low)
        require(all(inside), "a letter leads out of a space")
    # 3. Check what else the claim needs.
    if claim == "separated":
        x = _run(initial, maps, word)
        require(any(_dot(row, x) for row in final), "the functions agree on the word")
        return f"separated: no word of less than {len(word)} letters separates, and the word does"
    if claim == "minimal":
        require(len(prefixes) == len(suffixes) == m, f"{m} states need {m} prefixes and {m} suffixes")
        require(all(type(y) is int and 0 <= y < len(final) for y, _ in suffixes), "an output is not one of them")
        columns = [_run(second.initial, second.maps, prefix) for prefix in prefixes]
        transposed = [[list(column) for column in zip(*A, strict=True)] for A in second.maps]
        rows = [_run(second.final[y], transposed, suffix[::-1]) for y, suffix in suffixes]
        require(_is_regular([[_dot(row, x) for x in columns] for row in rows]), "the Hankel minor may be singular")
        return f"minimal: {m} is the least dimension of the function"
    return "equal: both automata have the same function on all words"


def _automaton(value: dict[str, Any], letters: int) -> Automaton:
    """Return the automaton of a JSON object, with one row per output."""
    require(set(value) == {"initial", "transitions", "final"}, "an automaton is initial, transitions and final")
    n = len(value["initial"])
    require(len(value["transitions"]) == letters > 0, "there is one matrix per letter")
    maps = [[_numbers(row, n) for row in A] for A in value["transitions"]]
    require(all(len(A) == n for A in maps), "a matrix is not square")
    return Automaton(_numbers(value["initial"], n), maps, [_numbers(row, n) for row in value["final"]])


def _numbers(row: Any, n: int) -> Vector:
    require(type(row) is list and len(row) == n, f"a row has not {n} numbers")
    texts = [str(x) for x in row if type(x) in (int, str)]
    require(len(texts) == n and not any("e" in x.lower() for x in texts), "a number is not exact")
    return [Fraction(x) for x in texts]


def _word(value: Any, letters: int) -> list[int]:
    is_word = type(value) is list and all(type(a) is int and 0 <= a < letters for a in value)
    require(is_word, "a word has a wrong letter")
    return value


def _dot(row: Vector, x: Vector) -> Fraction:
    return sum((a * b for a, b in zip(row, x, strict=True) if a and b), Fraction(0))


def _apply(A: Matrix, x: Vector) -> Vector:
    return [_dot(row, x) for row in A]


def _run(x: Vector, maps: list[Matrix], word: list[int]) -> Vector:
    for a in word:
        x = _apply(maps[a], x)
    return x


def _pivots(space: Matrix) -> list[int]:
    """Return for each vector a row in which it is 1 and all others are 0."""
    rows = [next((i for i, x in enumerate(v) if x), -1) for v in space]
    for j, i in enumerate(rows):
        require(i >= 0 and all(v[i] == int(k == j) for k, v in enumerate(space)), "a basis is not reduced")
    return rows


def _is_in(x: Vector, space: Matrix, pivots: list[int]) -> bool:
    total = [Fraction(0)] * len(x)
    for i, v in zip(pivots, space, strict=True):
        if x[i]:
            total = [t + x[i] * e for t, e in zip(total, v, strict=True)]
    return total == x


def _is_regular(H: Matrix) -> bool:
    """Return whether a determinant is not 0 modulo `MODULUS`, after its rows are scaled to integers."""
    scales = [math.lcm(*(x.denominator for x in row)) for row in H]
    rows = [[int(x * scale) % MODULUS for x in row] for row, scale in zip(H, scales, strict=True)]
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return False
        rows[k], rows[pivot] = rows[pivot], rows[k]
        inverse = pow(rows[k][k], -1, MODULUS)
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] * inverse % MODULUS
            rows[i] = [(x - factor * y) % MODULUS for x, y in zip(rows[i], rows[k], strict=True)]
    return True


def main(arguments: list[str]) -> str:
    """Return the claim that the certificate in a file proves; raise `SystemExit` with the reason if it is rejected."""
    if len(arguments) != 1:
        sys.exit("usage: python -m fsa2lrnn.weighted.recheck certificate.json")
    try:
        return recheck(json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    except (OSError, RecursionError, ValueError) as fault:  # of the file, of JSON, or of the check
        sys.exit(f"rejected: {fault}")


if __name__ == "__main__":
    print(main(sys.argv[1:]))
