"""Compute with functions of the state as a module over the algebra of the letters, exactly over the rationals (T30).

V is the space of the functions of the state modulo constants, on which a letter a acts as f ↦ f ∘ δ_a. In coordinates f
is the row of its values f(q) − f(0), q = 1 … n−1, and letters are matrices to its right. Submodules and quotients of V,
and their duals, are `Module`s too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import fmpq_mat, nmod_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.families import linear
from fsa2lrnn.families.closure import Echelon

Word = tuple[int, ...]  # letters in the order in which they act on a row
Element = tuple[tuple[int, Word], ...]  # Σ coefficient × word, an element of the algebra
Path = tuple[
    tuple[int, int], ...
]  # for each vector of a basis (number of an earlier one, letter), (−1, i) for generator i


@dataclass(frozen=True)
class Module:
    """A module: the rows of d rational numbers, on which one matrix (d, d) per letter acts from the right.

    >>> parity = functions_module(np.array([[0, 1], [1, 0]]))
    >>> [letter.tolist() for letter in parity.letters]
    [[[1]], [[-1]]]
    """

    letters: tuple[fmpq_mat, ...]

    @property
    def dimension(self) -> int:
        return self.letters[0].nrows()

    @cached_property
    def residues(self) -> np.ndarray:
        """The letters modulo `linear.PRIME`: int64, shape (|Σ|, d, d)."""
        return np.array([linear.residues(letter) for letter in self.letters])

    @cached_property
    def modular(self) -> tuple[nmod_mat, ...]:
        """The letters modulo `linear.PRIME`, as matrices."""
        return tuple(linear.modular(letter) for letter in self.letters)

    def nullity(self, element: Element) -> int:
        """Return the nullity of an element modulo `linear.PRIME`, an upper bound on that over the rationals."""
        return self.dimension - self.residue(element).rank()

    def residue(self, element: Element) -> nmod_mat:
        """Return the matrix of an element of the algebra modulo `linear.PRIME`, shape (d, d)."""
        d = self.dimension
        total = linear.zero(d)
        for coefficient, word in element:
            product = linear.one(d)
            for a in word:
                product = product * self.modular[a]
            total = total + product * (coefficient % linear.PRIME)
        return total

    @cached_property
    def dual(self) -> Module:
        """The dual module, with transposed letters; a word acts on it in reverse order."""
        return Module(tuple(letter.transpose() for letter in self.letters))

    def word(self, word: Word) -> fmpq_mat:
        """Return the product of the letters of a word."""
        if not word:
            return linear.identity(self.dimension)
        product = self.letters[word[0]]
        for a in word[1:]:
            product = product * self.letters[a]
        return product

    def element(self, element: Element) -> fmpq_mat:
        """Return the matrix of an element of the algebra, Σ coefficient × word."""
        total = fmpq_mat(self.dimension, self.dimension)
        for coefficient, word in element:
            total = total + self.word(word) * coefficient
        return total


def functions_module(delta: np.ndarray) -> Module:
    """Return the module V of the functions of the state modulo constants, for a table (|Σ|, n).

    Entry (i, q) of letter a is [δ(q,a) = i] − [δ(0,a) = i], for i, q = 1 … n−1.
    """
    n = delta.shape[1]
    states = np.arange(1, n)
    # Row i is the image of the indicator of state i: [δ(q, a) = i], made zero at state 0.
    letters = [(step[None, 1:] == states[:, None]).astype(int) - (step[0] == states[:, None]) for step in delta]
    return Module(tuple(linear.matrix(letter.tolist(), n - 1) for letter in letters))


@dataclass(frozen=True)
class SpunSubmodule:
    """A submodule that some rows generate, with a basis of images of these rows under words.

    Args:
        rows: the basis, exact, shape (r, d).
        path: the origin of each row of the basis.
    """

    rows: fmpq_mat
    path: Path


def spin(module: Module, generators: fmpq_mat) -> SpunSubmodule:
    """Return the submodule that rows (k, d) generate, with shortest words first.

    The rows of the basis are independent modulo a prime, hence over the rationals. That they span a submodule is not
    checked here, but exactly by `restricted`.
    """
    d = module.dimension
    echelon = Echelon(d, linear.PRIME)
    start = linear.residues(generators)
    first_rows = echelon.independent(start)
    path: list[tuple[int, int]] = [(-1, i) for i in first_rows]
    vectors = [start[i] for i in first_rows]
    # Only the vectors from `first` on have no images yet; breadth first, they gain those of one more letter per round.
    first = 0
    while first < len(vectors) < d:
        new = np.array(vectors[first:])
        # The axes are vector, letter and coordinate, so entry i of `flat` is vector i // |Σ| under letter i % |Σ|.
        images = np.stack([new @ letter % linear.PRIME for letter in module.residues], axis=1)
        flat = images.reshape(-1, d)
        for i in echelon.independent(flat):
            path.append((first + i // len(module.letters), i % len(module.letters)))
            vectors.append(flat[i])
        first += len(new)
    # The search used residues; the same paths are now followed with exact numbers.
    return SpunSubmodule(follow(module, generators, tuple(path)), tuple(path))


def follow(module: Module, generators: fmpq_mat, path: Path) -> fmpq_mat:
    """Return the images of generators along a path, one row per entry of the path."""
    rows: list[fmpq_mat] = []
    for parent, letter in path:
        rows.append(linear.rows_of(generators, [letter]) if parent < 0 else rows[parent] * module.letters[letter])
    return linear.stack(rows, module.dimension)


def words_of(path: Path) -> list[Word]:
    """Return the word that leads from a generator to each row of a path."""
    words: list[Word] = []
    for parent, letter in path:
        words.append(() if parent < 0 else (*words[parent], letter))
    return words


def restricted(module: Module, rows: fmpq_mat) -> tuple[fmpq_mat, ...] | None:
    """Return the letters on the span of independent rows (r, d), as matrices (r, r), or None if it is not closed."""
    reduced = linear.row_space(rows)
    chosen = linear.pivots(reduced)
    # Rows of the span are determined by their pivot columns, so `square` turns these into coefficients of `rows`.
    square = linear.columns_of(rows, chosen).inv() if chosen else fmpq_mat(0, 0)
    letters = []
    for letter in module.letters:
        image = rows * letter
        coefficients = linear.columns_of(image, chosen) * square
        # The coefficients fit the pivot columns by construction; they fit all columns only if the image lies in the
        # span.
        if coefficients * rows != image:
            return None
        letters.append(coefficients)
    return tuple(letters)


@dataclass(frozen=True)
class Quotient:
    """The quotient of a module by a submodule, with the projection and a section.

    Args:
        module: the quotient, of dimension m.
        down: the projection, shape (d, m).
        lift: the section, which maps each class to one of its rows, shape (m, d).
    """

    module: Module
    down: fmpq_mat
    lift: fmpq_mat


def quotient(module: Module, reduced: fmpq_mat) -> Quotient:
    """Return the quotient of a module by a submodule, given by its rows in reduced row echelon form."""
    d = module.dimension
    bound = linear.pivots(reduced)
    # The unit rows of the free columns are a basis of the quotient: a reduced row replaces e_pivot by −(its free
    # entries).
    free = [j for j in range(d) if j not in set(bound)]
    lift = fmpq_mat(len(free), d, [int(j == f) for f in free for j in range(d)])
    place = {j: i for i, j in enumerate(bound)}
    index = {f: k for k, f in enumerate(free)}
    entries = [
        (-reduced[place[j], f] if j in place else int(index[j] == k)) for j in range(d) for k, f in enumerate(free)
    ]
    down = fmpq_mat(d, len(free), entries)
    return Quotient(Module(tuple(lift * letter * down for letter in module.letters)), down, lift)


def reverse(element: Element) -> Element:
    """Return the element that acts on the dual as this element on the module, with reversed words."""
    return tuple((coefficient, word[::-1]) for coefficient, word in element)


def classes(rows: fmpq_mat) -> list[int]:
    """Return a class number per state, equal for states that no function, a row of values at 1 … n−1, separates."""
    n = rows.ncols() + 1
    columns: Sequence[tuple[object, ...]] = [
        tuple(str(rows[i, q - 1]) if q else "0" for i in range(rows.nrows())) for q in range(n)
    ]
    number: dict[tuple[object, ...], int] = {}
    return [number.setdefault(column, len(number)) for column in columns]
