"""Prove that copies of a kind enter the chain of submodules later than the weight of the kind implies (T31 (b), (c)).

Let U be the submodule below a copy of a kind F, and W a submodule with this copy as its head. Let η be an element of
the algebra that is nilpotent on one line of F and invertible on all other kinds, and f a function outside U that some
power of η annihilates. If F is not a constituent of U, W contains the submodule that f generates. Otherwise W contains
f plus an unknown combination of functions g_1, g_2 … in U, and so f·ρ for every ρ that annihilates all g_i.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flint import fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.extra.block_size.constituents import draw
from fsa2lrnn.extra.block_size.kinds import ModuleKind, submodule
from fsa2lrnn.families import linear
from fsa2lrnn.families.closure import Echelon
from fsa2lrnn.families.modules import (
    Element,
    Module,
    Path,
    follow,
    quotient,
    spin,
    words_of,
)

_DRAWN = 200  # the most elements that are drawn for η
_LARGEST = 300  # the largest sum of the dimensions of f and the g_i


@dataclass(frozen=True)
class LateCopy:
    """The proof of a lower bound on the dimension of every submodule W with a copy as its head.

    Args:
        element: η.
        function: f, shape (1, d).
        parameters: g_1 …, shape (m, d), m the number of copies of the kind in U.
        moves: the elements ρ_1 … of T31 (c), which annihilate the g_i and map f into U.
        dimension: the bound of T31 (b) or (c) for W over the rationals.
    """

    element: Element
    function: fmpq_mat
    parameters: fmpq_mat
    moves: tuple[Element, ...]
    dimension: int


def least(late: LateCopy | None, kind: ModuleKind, field: str) -> int:
    """Return a lower bound on the dimension over a field of a submodule with a late copy as its head; 0 if unknown."""
    if late is None or not kind.commutant.splits_in_one_way(field):
        return 0
    return -(-late.dimension * kind.weight(field) // kind.dimension)


def late_copy(
    module: Module, kinds: Sequence[ModuleKind], i: int, under: fmpq_mat, rows: fmpq_mat, count: int
) -> LateCopy | None:
    """Return the proof that a copy of kind i is late, or None if the case is not covered or no suitable η is drawn.

    Args:
        module: V.
        kinds: the kinds of all constituents of V.
        i: the number of the copy's kind.
        under: a basis of the submodule U below the copy.
        rows: vectors that span the copy modulo U.
        count: the number of copies of the kind in U.
    """
    kind, others = kinds[i].standard.module, [k.standard.module for j, k in enumerate(kinds) if j != i]
    if count and (kinds[i].commutant.dimension > 1 or (count + 1) * module.dimension > _LARGEST):
        return None
    for element in _finders(kinds[i]):
        is_line = not count or kind.nullity(_squared(element)) == 1
        if not is_line or not kind.nullity(element) or any(other.nullity(element) for other in others):
            continue
        part = linear.stack([under, rows], module.dimension)
        if not count:
            function = linear.primitive(linear.rows_of(linear.left_kernel(part * module.element(element)), [0]) * part)
            empty = fmpq_mat(0, module.dimension)
            return LateCopy(element, function, empty, (), len(spin(module, function).path))
        return _with_parameters(module, element, part, under, kind.dimension)
    return None


def _finders(kind: ModuleKind) -> Iterator[Element]:
    yield kind.standard.element
    rng, module = random.Random(0), kind.standard.module
    letters = range(len(module.letters))
    for tried in range(_DRAWN):
        element = tuple((rng.randint(-3, 3), (a,)) for a in letters) if tried % 4 == 0 else draw(len(letters), rng)
        for factor, _ in module.element(element).charpoly().factor()[1]:
            if factor.degree() == 1:
                root = -factor[0] / factor[1]
                yield (*((c * int(root.q), word) for c, word in element), (-int(root.p), ()))


def _with_parameters(module: Module, element: Element, part: fmpq_mat, under: fmpq_mat, weight: int) -> LateCopy:
    parameters, both = _killed(module, element, under), _killed(module, element, part)
    reduced = linear.row_space(under)
    function = next(
        row for row in linear.each_row(both) if linear.rank(linear.stack([reduced, row], row.ncols())) > under.nrows()
    )
    moves, dimension = _moves(module, function, parameters, reduced)
    return LateCopy(element, function, parameters, moves, dimension + weight)


def _moves(
    module: Module, function: fmpq_mat, parameters: fmpq_mat, reduced: fmpq_mat
) -> tuple[tuple[Element, ...], int]:
    below = quotient(module, reduced)
    joint = Module(
        tuple(
            _diagonal([small, *([letter] * parameters.nrows())])
            for small, letter in zip(below.module.letters, module.letters, strict=True)
        )
    )
    start = [entry for row in (function * below.down, parameters) for entry in row.entries()]
    generator = fmpq_mat(1, joint.dimension, start)
    path = spin(joint, generator).path
    rows = follow(joint, generator, path)
    letters = submodule(joint, rows).letters
    images = follow(module, function, path)
    echelon = Echelon(module.dimension, linear.PRIME)
    elements: list[Element] = []
    inside: list[fmpq_mat] = []
    for relation, row in sorted(_relations(path, letters, images, module), key=lambda pair: len(pair[0])):
        if echelon.is_new(linear.residues(row)):
            elements.append(relation)
            inside.append(row)
            echelon.independent(linear.residues(spin(module, linear.stack(inside, module.dimension)).rows))
    dimension = len(spin(module, linear.stack(inside, module.dimension)).path) if inside else 0
    return tuple(elements), dimension


def _relations(
    path: Path, letters: Sequence[fmpq_mat], images: fmpq_mat, module: Module
) -> Iterator[tuple[Element, fmpq_mat]]:
    """Yield the relations w_i·a − Σ_j (letter a)[i, j] w_j of the words w_i of a path, each with the image of f."""
    words, tree = words_of(path), set(path[1:])
    for a, letter in enumerate(letters):
        moved = images * module.letters[a] - letter * images
        numerators, scale = letter.numer_denom()
        for i, row in enumerate(numerators.tolist()):
            if (i, a) not in tree:
                terms = tuple((-int(c), words[j]) for j, c in enumerate(row) if c)
                yield ((int(scale), (*words[i], a)), *terms), linear.rows_of(moved, [i]) * scale


def _killed(module: Module, element: Element, rows: fmpq_mat) -> fmpq_mat:
    reduced = linear.row_space(rows)
    chosen = linear.pivots(reduced)
    action = linear.columns_of(reduced * module.element(element), chosen)
    for _ in range(reduced.nrows().bit_length()):
        action = action * action
    return linear.primitive(linear.left_kernel(action) * reduced)


def _diagonal(blocks: Sequence[fmpq_mat]) -> fmpq_mat:
    d, start = sum(block.nrows() for block in blocks), 0
    entries: list[list[object]] = []
    for block in blocks:
        entries += [[0] * start + list[object](row) + [0] * (d - start - block.ncols()) for row in block.tolist()]
        start += block.ncols()
    return linear.matrix(entries, d)


def _squared(element: Element) -> Element:
    return tuple((c * d, u + v) for c, u in element for d, v in element)
