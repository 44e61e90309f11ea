"""Check certificates of weighted automata, f(a₁ … a_T) = β A(a_T) ⋯ A(a₁) α (T64 of docs/theory.md).

Both automata of a certificate are run side by side: x is the pair of their vectors, and d(x) what they read from it,
one minus the other. A space is given by vectors, each with a 1 in a row where all others have 0, so that x lies in it
iff x = Σ x[row of e] e.

"equal"      One space contains the initial vector, every letter maps it into itself, and d is 0 on it.
"separated"  Spaces S_0, S_1, … for the lengths below that of the word: S_0 contains the initial vector, every letter
             maps S_k into S_{k+1}, and d is 0 on all. So no shorter word separates; d of the word's vector is not 0.
"minimal"    As "equal", and the matrix of f(prefix · suffix), which is of the second automaton and has as many rows as
             it has states, is not singular. So no automaton with this function has fewer states.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from .certificate_fields import as_list, fields, require, spend
from .readout_bounds import MODULUS, is_regular

FORM = ("fsa2lrnn-weighted-certificate", 1)
MORE = {"equal": (), "separated": ("word",), "minimal": ("prefixes", "suffixes")}
Vector = list[Fraction]
Matrix = list[Vector]


def check_weighted(certificate: dict[str, Any]) -> str:
    """Return the claim that a certificate proves; raise `RejectedCertificate` if it does not."""
    claim = certificate["claim"]
    names = ("format", "version", "claim", "alphabet", "first", "second", "spaces")
    _, _, _, alphabet, *automata, spaces = fields(certificate, *names, *MORE[claim])[: len(names)]
    # 1. Read the parts, and count the work.
    letters, word = len(as_list(alphabet)), certificate.get("word", [])
    first, second = (_automaton(value, letters) for value in automata)
    n, m = len(first[0]) + len(second[0]), len(second[0])
    spaces = [[_numbers(vector, n) for vector in as_list(space)] for space in as_list(spaces)]
    prefixes, suffixes = certificate.get("prefixes", []), certificate.get("suffixes", [])
    words = [word, *prefixes, *(suffix for _, suffix in suffixes)]
    is_letter = (type(a) is int and 0 <= a < letters for read in words for a in as_list(read))
    require(all(is_letter), "a word has a letter that is none of the automaton's")
    vectors = [v for x, maps, final in (first, second) for v in (x, *final, *(row for A in maps for row in A))]
    sizes = (x.numerator.bit_length() + x.denominator.bit_length() for v in sum(spaces, vectors) for x in v)
    products = letters * sum(len(space) + 1 for space in spaces) + sum(map(len, words)) + n
    spend((1 + max(sizes, default=0) // 64) * products * n * n)
    # 2. Check the spaces of both automata side by side.
    require(len(first[2]) == len(second[2]), "the automata have different numbers of outputs")
    final = [f + [-x for x in g] for f, g in zip(first[2], second[2], strict=True)]
    zero, initial, pivots = Fraction(0), first[0] + second[0], [_pivots(space) for space in spaces]
    maps = [
        [row + [zero] * m for row in A] + [[zero] * (n - m) + row for row in B]
        for A, B in zip(first[1], second[1], strict=True)
    ]
    require(not any(_dot(row, v) for space in spaces for v in space for row in final), "a vector shows a difference")
    require(len(spaces) == (len(word) if claim == "separated" else 1), "a space is missing, or too many")
    require(not spaces or _is_in(initial, spaces[0], pivots[0]), "the first space lacks the initial vector")
    after = slice(1, None) if claim == "separated" else slice(None)
    for low, high, rows in zip(spaces, spaces[after], pivots[after], strict=False):
        inside = (_is_in(_run(v, maps, [a]), high, rows) for a in range(letters) for v in low)
        require(all(inside), "a letter leads out of a space")
    # 3. Check what else the claim needs.
    if claim == "separated":
        x = _run(initial, maps, word)
        require(any(_dot(row, x) for row in final), "the functions agree on the word")
        return f"separated: no word of less than {len(word)} letters separates, and the word does"
    if claim == "minimal":
        require(len(prefixes) == len(suffixes) == m, f"{m} states need {m} prefixes and {m} suffixes")
        require(all(type(y) is int and 0 <= y < len(final) for y, _ in suffixes), "an output is not one of them")
        columns = [_run(second[0], second[1], prefix) for prefix in prefixes]
        transposed = [[list(column) for column in zip(*A, strict=True)] for A in second[1]]
        rows = [_run(second[2][y], transposed, suffix[::-1]) for y, suffix in suffixes]
        hankel = [[_dot(row, x) for x in columns] for row in rows]
        scales = [math.lcm(*(x.denominator for x in row)) for row in hankel]
        scaled = [[int(x * scale) % MODULUS for x in row] for row, scale in zip(hankel, scales, strict=True)]
        require(is_regular(scaled), "the Hankel minor may be singular")
        return f"minimal: {m} is the least dimension of the function"
    return "equal: both automata have the same function on all words"


def _automaton(value: Any, letters: int) -> tuple[Vector, list[Matrix], Matrix]:
    """Return α, the A(a) and one β per output of a JSON object."""
    initial, transitions, final = fields(value, "initial", "transitions", "final")
    n = len(as_list(initial))
    require(len(as_list(transitions)) == letters > 0, "there is not one matrix per letter")
    require(all(len(as_list(A)) == n for A in transitions), "a matrix is not square")
    maps = [[_numbers(row, n) for row in A] for A in transitions]
    return _numbers(initial, n), maps, [_numbers(row, n) for row in as_list(final)]


def _numbers(row: Any, n: int) -> Vector:
    texts = [str(x) for x in as_list(row) if type(x) in (int, str)]
    require(len(texts) == len(row) == n, f"a row has not {n} exact numbers")
    require(not any("e" in x.lower() for x in texts), "a number is written with an exponent")
    return [Fraction(x) for x in texts]


def _dot(row: Vector, x: Vector) -> Fraction:
    return sum((a * b for a, b in zip(row, x, strict=True) if a and b), Fraction(0))


def _run(x: Vector, maps: list[Matrix], word: list[int]) -> Vector:
    for a in word:
        x = [_dot(row, x) for row in maps[a]]
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
