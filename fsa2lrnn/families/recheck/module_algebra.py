"""Linear algebra on modules, exact or modulo a prime.

A module is a list of letters, a letter is a list of rows, and a row is {column: number}; letters act on rows from the
right. V is the module of the functions of the state modulo constants; its basis function i is 1 at state i + 1 alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .certificate_fields import as_list, require, spend, steps_of
from .checked_machine import CheckedMachine

PRIME = 2**61 - 1  # a rank modulo it is at most the rank over the rationals
Row = dict[int, Any]
Letter = list[Row]


def state_functions(machine: CheckedMachine) -> list[Letter]:
    """Return V, on which a letter a acts as f ↦ f ∘ δ_a, in the coordinates f(q) − f(0), q = 1 … n−1."""
    letters = []
    for step in machine.delta:
        rows: Letter = [{} for _ in range(machine.n)]
        for q in range(1, machine.n):
            for state, sign in ((step[q], 1), (step[0], -1)):
                rows[state][q - 1] = rows[state].get(q - 1, 0) + sign
        letters.append(rows[1:])
    return letters


def check_norton(letters: list[Letter], element: list[Any], v: list[Any], u: list[Any], nullity: int) -> None:
    """Raise `RejectedCertificate` unless Norton's criterion (T32) holds for an element of the algebra.

    The element has to kill v, the covector u and at most `nullity` dimensions, and v and u have to generate the module
    and its dual. Then over every field that contains the rationals, a submodule meets its kernel or lies in its image.
    """
    d = len(v)
    transposed = [_transposed(letter) for letter in letters]
    backwards = [(c, word[::-1]) for c, word in element]
    require(not any(applied(element, v, letters)), "the element does not kill the vector")
    require(not any(applied(backwards, u, transposed)), "the element does not kill the covector")
    # A rank modulo the prime bounds that over ℚ from below, which is the safe direction for all three conditions that
    # follow.
    small = [[{j: residue(x) for j, x in row.items()} for row in letter] for letter in letters]
    images = (applied(element, [int(i == j) for j in range(d)], small) for i in range(d))
    require(rank_of(images, d - nullity) >= d - nullity, "the element kills more than it should")
    require(spun([v], small) == d, "the vector does not span the module")
    require(spun([u], [_transposed(letter) for letter in small]) == d, "the covector does not span the dual")


class Span:
    """A set of independent vectors modulo the prime, reduced, each with its pivot column."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, list[int]]] = []

    def add(self, vector: list[int]) -> bool:
        """Store a vector of residues if it is independent of the stored ones; return whether it is."""
        spend(len(vector) + len(self.rows))
        for place, row in self.rows:
            if c := vector[place]:
                spend(len(vector))
                vector = [(x - c * y) % PRIME for x, y in zip(vector, row, strict=True)]
        place = next((i for i, x in enumerate(vector) if x), None)
        if place is None:
            return False
        inverse = pow(vector[place], -1, PRIME)
        self.rows.append((place, [x * inverse % PRIME for x in vector]))
        return True


def rank_of(vectors: Iterable[list[Any]], enough: int) -> int:
    span = Span()
    for vector in vectors:
        if len(span.rows) >= enough:
            break
        span.add([residue(x) for x in vector])
    return len(span.rows)


def spun(start: list[list[Any]], letters: list[Letter]) -> int:
    """Return the dimension, modulo the prime, of the submodule that rows generate."""
    span, queue = Span(), [[residue(x) for x in row] for row in start]
    for vector in queue:
        if span.add(vector):
            queue += [[x % PRIME for x in times(vector, letter)] for letter in letters]
        if len(span.rows) == len(vector):
            break
    return len(span.rows)


def times(row: list[Any], letter: Letter) -> list[Any]:
    total = [0] * len(row)
    spend(len(row))
    for x, line in zip(row, letter, strict=True):
        if x:
            steps = steps_of([x])
            spend(steps * (len(line) if steps == 1 else steps_of(line.values())))
            for j, y in line.items():
                total[j] += x * y
    return total


def _transposed(letter: Letter) -> Letter:
    rows: Letter = [{} for _ in letter]
    for i, line in enumerate(letter):
        for j, x in line.items():
            rows[j][i] = x
    return rows


def applied(element: list[Any], row: list[Any], letters: list[Letter]) -> list[Any]:
    """Return the image of a row under an element, Σ coefficient × word; the letters of a word act in order."""
    total = [0] * len(row)
    for c, word in element:
        image = row
        for a in word:
            image = times(image, letters[a])
        total = [x + c * y for x, y in zip(total, image, strict=True)]
    return total


def read_element(value: object, machine: CheckedMachine) -> list[tuple[int, list[int]]]:
    terms = [(c, as_list(word)) for c, word in map(as_list, as_list(value))]
    letters = range(len(machine.delta))
    is_element = all(type(c) is int and all(type(a) is int and a in letters for a in word) for c, word in terms)
    require(is_element, "an element is not a combination of words")
    return terms


def dot(row: list[Any], column: Any) -> Any:
    spend(len(row))
    return sum(x * y for x, y in zip(row, column, strict=True) if x)


def residue(x: Any) -> int:
    return x % PRIME if type(x) is int else x.numerator * pow(x.denominator, -1, PRIME) % PRIME
