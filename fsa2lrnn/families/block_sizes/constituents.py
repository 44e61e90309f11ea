"""Find the irreducible constituents of a module over the rationals, by the MeatAxe without a finite field.

Rows in the kernel of an element θ of the algebra generate submodules; columns in its kernel generate submodules of the
dual. If both generate everything and the kernel of θ is v·C, where C commutes with the letters and has no zero
divisors, the module is irreducible (Norton's criterion, T32 of docs/theory.md). θ is drawn from short combinations of
words, whose kernels are often nonzero because maps of states agree on many states.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

from flint import fmpq_mat, fmpz_poly, nmod_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.families import linear
from fsa2lrnn.families.block_sizes.kinds import (
    CyclicModule,
    ModuleKind,
    Polynomial,
    homs,
    image,
    integral,
    standard,
    submodule,
    value_at,
    why_irreducible,
)
from fsa2lrnn.families.modules import Element, Module, Word, quotient, spin, words_of

DRAWN = 400  # the most elements that are drawn for a module
_SIMPLE = 60  # the most elements that are drawn to prove a module simple
_SHORTLIST = 6  # the number of elements drawn to choose the singular one with the smallest kernel
_RELATIONS = 60  # the number of elements composed of relations
_SHORT = 60  # the number of relations they are composed of
_GENERATORS = 150  # the number of maps tried as generators of a commutant
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
    is_all = maps.nrows() == kernel.nrows()
    if is_all:
        covector = linear.rows_of(linear.left_kernel(form.module.element(form.element).transpose()), [0])
        cospun = spin(form.module.dual, covector)
        if len(cospun.path) < d:
            return linear.left_kernel(cospun.rows.transpose()) * spun.rows, maps.nrows()
    found = _commutant(form, maps) if is_all or maps.nrows() > 1 else None
    if isinstance(found, fmpq_mat):
        return spin(form.module, found).rows * spun.rows, maps.nrows()
    return ModuleKind(form, covector, *found) if is_all and found is not None else None, maps.nrows()


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


def _commutant(form: CyclicModule, maps: fmpq_mat) -> tuple[Polynomial, fmpq_mat] | fmpq_mat | None:
    """Return h and the row v·t of the commutant C = ℚ[t]/(h), or a row v·c with c ≠ 0 not invertible, or None.

    `maps` has reduced rows that span v·C. The result is None if neither is found: C may be quaternions, or h may have
    no short proof that it is irreducible.
    """
    e, chosen = maps.nrows(), linear.pivots(maps)
    for row in _generators(form, maps):
        t = image(form, form.module, row)
        minimal = linear.columns_of(maps * t, chosen).minpoly()  # of t, by its action on v·C
        factors = minimal.factor()[1]
        if sum(exponent for _, exponent in factors) > 1:
            return linear.rows_of(value_at(factors[0][0].coeffs(), t), [0])
        if minimal.degree() == e:
            polynomial, scale = integral(minimal)
            # A generator of trace near 0 has small coefficients; a cyclotomic polynomial is best as it is.
            shift = 0 if fmpz_poly(list(polynomial)).is_cyclotomic() else round(-polynomial[-2] / e)
            shifted = fmpz_poly(list(polynomial))(fmpz_poly([shift, 1])).coeffs()
            h = tuple(int(c) for c in shifted)
            if why_irreducible(h) is not None:
                return h, row * scale - linear.rows_of(linear.identity(form.dimension), [0]) * shift
    return None


def _generators(form: CyclicModule, maps: fmpq_mat) -> Iterator[fmpq_mat]:
    """Yield rows v·c for maps c that may generate the commutant: letters in its center, and small combinations."""
    letters, rows = form.module.letters, linear.each_row(maps)
    for a in [a for a in letters if all(a * b == b * a for b in letters)][:20]:
        yield linear.rows_of(a, [0])
    yield from rows
    for x, y in combinations(rows, 2):
        yield x + y
        yield x - y
    for step in range(1, _GENERATORS):  # combinations with growing coefficients, in no pattern
        factors = (((i + 1) * step * step + 3 * i * step) % (3 + step // 10) - 1 for i in range(len(rows)))
        yield sum((row * factor for row, factor in zip(rows, factors, strict=True)), start=rows[0] * 0)


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


def simple(module: Module) -> tuple[Element, fmpq_mat, fmpq_mat] | None:
    """Return a proof that a module is simple over Q, R and C, or None if it is not or no suitable element is drawn.

    The proof is an element that annihilates one row and one column up to scale, which generate everything (T32).

    >>> from fsa2lrnn.automata import zoo
    >>> from fsa2lrnn.families.modules import functions_module
    >>> simple(functions_module(zoo.cerny(4).delta)) is None, simple(functions_module(zoo.sum_mod(4).delta)) is None
    (False, True)
    """
    rng, d = random.Random(0), module.dimension
    for _ in range(_SIMPLE):
        element = draw(len(module.letters), rng)
        if module.nullity(element) != 1:
            continue
        matrix = module.element(element)
        function, covector = linear.left_kernel(matrix), linear.left_kernel(matrix.transpose())
        if function.nrows() != 1:
            continue
        is_whole = len(spin(module, function).path) == len(spin(module.dual, covector).path) == d
        return (element, function, covector) if is_whole else None
    return None
