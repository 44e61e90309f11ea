"""Find the irreducible constituents of a module over the rationals, by the MeatAxe without a finite field.

Rows in the kernel of an element θ of the algebra generate submodules; columns in its kernel generate submodules of the
dual. If both generate everything and the kernel of θ is v·C, where C commutes with the letters and has no zero
divisors, the module is irreducible (Norton's criterion, T32 of docs/theory.md). θ is drawn from short combinations of
words, whose kernels are often nonzero because maps of states agree on many states.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from flint import fmpq_mat, nmod_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.extra.block_size.commutant import Algebra, Commutant, ZeroDivisor, commutant
from fsa2lrnn.extra.block_size.kinds import CyclicModule, ModuleKind, endomorphism, homs, standard, submodule
from fsa2lrnn.families import linear
from fsa2lrnn.families.modules import Element, Module, Word, quotient, spin, words_of

DRAWN = 400  # the most elements that are drawn for a module
_SHORTLIST = 6  # the number of elements drawn to choose the singular one with the smallest kernel
_RELATIONS = 60  # the number of elements composed of relations
_SHORT = 60  # the number of relations they are composed of
_LENGTHS = (0, 1, 1, 2, 2, 3, 4, 5, 7, 9)  # lengths from which the length of a random word is drawn


def constituents(module: Module, check: Callable[[], None]) -> list[ModuleKind] | None:
    """Return the distinct kinds of all constituents, or None if some part was neither split nor proved irreducible.

    `check` is called between steps and may raise to end the search.
    """
    kinds: list[ModuleKind] = []
    pending = [module]
    while pending:
        part = pending.pop()
        while part.dimension:
            check()
            reduced = _known_part(part, kinds)
            if not reduced.nrows():
                break
            part = quotient(part, reduced).module
        if not part.dimension:
            continue
        result = split(part, check)
        if result is None:
            return None
        if isinstance(result, ModuleKind):
            kinds.append(result)
        else:
            pending += result
    return kinds


def _known_part(module: Module, kinds: list[ModuleKind]) -> fmpq_mat:
    parts = []
    for kind in kinds:
        rows = homs(kind.standard, module)
        if rows.nrows():
            parts.append(spin(module, rows).rows)
    return linear.row_space(linear.stack(parts, module.dimension))


def split(module: Module, check: Callable[[], None], seed: int = 0) -> ModuleKind | tuple[Module, Module] | None:
    """Split a module into a quotient and a submodule, or prove it irreducible and return its kind, or return None."""
    rng, n_maps = random.Random(seed), 0
    for _ in range(DRAWN // _SHORTLIST):
        check()
        element, kernel = _singular(module, rng)
        if not kernel.nrows():
            continue
        result, n_maps = _norton(module, element, kernel, n_maps)
        if isinstance(result, ModuleKind):
            return result
        if result is not None:
            rows = linear.row_space(result)
            return quotient(module, rows).module, submodule(module, linear.primitive(rows))
    return None


def _norton(
    module: Module, element: Element, kernel: fmpq_mat, n_maps: int
) -> tuple[fmpq_mat | ModuleKind | None, int]:
    """Apply Norton's criterion: return rows of a proper submodule, or the kind of the module, or None if undecided.

    The second result is the dimension of the commutant: 0 if unknown, and `n_maps` if not computed here.
    """
    d = module.dimension
    # Norton's criterion: a vector of the kernel generates a proper submodule, or a covector of the kernel generates one
    # of the dual, or the module is irreducible, provided that the kernel has dimension 1 over the commutant.
    vector = linear.rows_of(kernel, [0])
    spun = spin(module, vector)
    if len(spun.path) < d:
        return spun.rows, n_maps
    covectors = linear.left_kernel(module.element(element).transpose())
    cospun = spin(module.dual, linear.rows_of(covectors, [0]))
    if len(cospun.path) < d:
        return linear.left_kernel(cospun.rows.transpose()), n_maps
    form = _annihilating(standard(module, vector, spun.path, element), kernel.nrows(), max(n_maps, 1))
    kernel = linear.left_kernel(form.module.element(form.element))
    if n_maps and kernel.nrows() > n_maps:
        return None, n_maps
    # The commutant is smaller than the kernel: another element may decide, unless the commutant has a zero divisor.
    maps = homs(form, form.module)
    if maps.nrows() < kernel.nrows():
        found = _commutant(form, maps) if maps.nrows() > 1 else None
        is_split = isinstance(found, ZeroDivisor)
        return spin(form.module, found.row).rows * spun.rows if is_split else None, maps.nrows()
    covector = linear.rows_of(linear.left_kernel(form.module.element(form.element).transpose()), [0])
    cospun = spin(form.module.dual, covector)
    if len(cospun.path) < d:
        return linear.left_kernel(cospun.rows.transpose()) * spun.rows, maps.nrows()
    found = _commutant(form, maps)
    if isinstance(found, ZeroDivisor):
        return spin(form.module, found.row).rows * spun.rows, maps.nrows()
    return None if found is None else ModuleKind(form, covector, found), maps.nrows()


def _annihilating(form: CyclicModule, nullity: int, enough: int) -> CyclicModule:
    """Return the cyclic module with an element of smaller kernel, composed of the relations of v.

    Row i of the basis is v·w_i, so that w_i·a − Σ_j (letter a)[i, j] w_j annihilates v. In an irreducible module most
    sums of such relations, followed by words, have the kernel v·C. The search ends at a kernel of dimension `enough`.
    """
    rng, d, letters = random.Random(1), form.dimension, form.module.modular
    start, first, relations = form.element, form.module.residue(form.element), list[tuple[Element, nmod_mat]]()
    for tried in range(_RELATIONS if nullity > enough else 0):
        if tried % (_RELATIONS // 2) == 0:
            relations = _relations(form, rng, tried > 0)
        total, terms = first, list(start)
        for relation, product in rng.sample(relations, min(len(relations), 1 + tried % (_RELATIONS // 2) // 6)):
            after = tuple(rng.randrange(len(letters)) for _ in range(rng.randrange(4)))
            sign = rng.choice((-2, -1, 1, 2))
            terms += [(sign * coefficient, word + after) for coefficient, word in relation]
            for a in after:
                product = product * letters[a]
            total = total + product * (sign % linear.PRIME)
        if (found := d - total.rank()) < nullity:
            form, nullity = replace(form, element=tuple(terms)), found
        if nullity <= enough:
            break
    return form


def _relations(form: CyclicModule, rng: random.Random, are_long: bool) -> list[tuple[Element, nmod_mat]]:
    words, tree = words_of(form.path), set(form.path[1:])
    found: list[tuple[int, int, list[int]]] = []
    for a, letter in enumerate(form.module.letters):
        numerators, scale = letter.numer_denom()
        for i, row in enumerate(numerators.tolist()):
            if (i, a) not in tree:
                found.append((i, a, [int(scale), *map(int, row)]))
    if are_long:
        rng.shuffle(found)
    else:
        found.sort(key=lambda relation: sum(map(bool, relation[2])))
    products = [linear.one(form.dimension)]
    for parent, a in form.path[1:]:
        products.append(products[parent] * form.module.modular[a])
    relations = []
    for i, a, (scale, *row) in found[:_SHORT]:
        terms = [(j, c) for j, c in enumerate(row) if c]
        element = ((scale, (*words[i], a)), *((-c, words[j]) for j, c in terms))
        product = products[i] * form.module.modular[a] * (scale % linear.PRIME)
        for j, c in terms:
            product = product - products[j] * (c % linear.PRIME)
        relations.append((element, product))
    return relations


def _commutant(form: CyclicModule, maps: fmpq_mat) -> Commutant | ZeroDivisor | None:
    """Return the commutant C from rows that span v·C; letters in the center of the algebra serve as hints."""
    d = form.dimension
    algebra = structure(form, maps)
    first = fmpq_mat(1, d, [int(j == 0) for j in range(d)])
    letters = form.module.letters
    central = [a for a in letters if all(a * b == b * a for b in letters)]
    hints = [linear.coordinates(first * a, maps) for a in central[:20]]
    return commutant(algebra, linear.coordinates(first, maps), hints)


def structure(form: CyclicModule, maps: fmpq_mat) -> Algebra:
    """Return the algebra of the maps v ↦ row, for the rows of `maps` (e, d), by its structure constants."""
    chosen = linear.pivots(maps)
    square = linear.columns_of(maps, chosen).inv()
    images = (maps * endomorphism(form, row) for row in linear.each_row(maps))
    return Algebra(maps, tuple(linear.columns_of(image, chosen) * square for image in images))


def _singular(module: Module, rng: random.Random) -> tuple[Element, fmpq_mat]:
    best: tuple[int, Element] | None = None
    for _ in range(_SHORTLIST):
        element = draw(len(module.letters), rng)
        nullity = module.nullity(element)
        if nullity and (best is None or nullity < best[0]):
            best = nullity, element
        if nullity == 1:
            break
    if best is None:
        return (), fmpq_mat(0, module.dimension)
    return best[1], linear.left_kernel(module.element(best[1]))


def draw(n_letters: int, rng: random.Random) -> Element:
    """Draw a random element Σ coefficient × word: differences and sums of words, products of differences with words."""

    def word() -> Word:
        return tuple(rng.randrange(n_letters) for _ in range(rng.choice(_LENGTHS)))

    pattern = rng.random()
    if pattern < 0.1:
        return ()
    if pattern < 0.45:
        return ((1, word()), (rng.choice((-1, -1, 1)), word()))
    if pattern < 0.7:
        return ((1, word()), (-1, word()), (rng.choice((-1, 1)), word()), (rng.choice((-2, -1, 1, 2)), word()))
    u, v, x, y = word(), word(), word(), word()
    return ((1, u + x), (-1, v + x), (1, word() + y), (-1, word() + y))
