"""Find the irreducible constituents of a module over the rationals, by the MeatAxe without a finite field.

Rows in the kernel of an element θ of the algebra generate submodules; columns in its kernel generate submodules of the
dual. If both generate everything and the kernel of θ is v·C, where C commutes with the letters and has no zero
divisors, the module is irreducible (Norton's criterion, T32 of docs/theory.md). θ is drawn from short combinations of
words, whose kernels are often nonzero because maps of states agree on many states.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from flint import fmpq_mat, fmpz_poly  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.families import linear
from fsa2lrnn.families.block_sizes.kinds import (
    CyclicModule,
    ModuleKind,
    Polynomial,
    homs,
    image,
    standard,
    submodule,
    value_at,
    why_irreducible,
)
from fsa2lrnn.families.modules import Element, Module, Word, quotient, spin

_DRAWN = 400  # the most elements that are drawn for a module
_SHORTLIST = 6  # the number of elements drawn to choose the singular one with the smallest kernel
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
    rng, n_maps = random.Random(seed), module.dimension
    for _ in range(_DRAWN // _SHORTLIST):
        check()
        element, kernel = _singular(module, rng)
        if not 0 < kernel.nrows() <= n_maps:
            continue
        result = _norton(module, element, kernel)
        if isinstance(result, ModuleKind):
            return result
        if isinstance(result, fmpq_mat):
            rows = linear.row_space(result)
            return quotient(module, rows).module, submodule(module, linear.primitive(rows))
        n_maps = result
    return None


def _norton(module: Module, element: Element, kernel: fmpq_mat) -> fmpq_mat | ModuleKind | int:
    """Apply Norton's criterion: return rows of a proper submodule, or the kind of the module, if these are found.

    Otherwise return the largest dimension of a kernel with which another element may decide: that of the commutant.
    """
    d = module.dimension
    # Norton's criterion: a vector of the kernel generates a proper submodule, or a covector of the kernel generates one
    # of the dual, or the module is irreducible, provided that the kernel has dimension 1 over the commutant.
    vector = linear.rows_of(kernel, [0])
    covector = linear.rows_of(linear.left_kernel(module.element(element).transpose()), [0])
    spun = spin(module, vector)
    if len(spun.path) < d:
        return spun.rows
    cospun = spin(module.dual, covector)
    if len(cospun.path) < d:
        return linear.left_kernel(cospun.rows.transpose())
    form = standard(module, vector, spun.path, element)
    maps = homs(form, form.module)
    found = _commutant(form, maps)
    if isinstance(found, fmpq_mat):
        return spin(form.module, found).rows * spun.rows
    if found is None or maps.nrows() < kernel.nrows():
        return maps.nrows()
    return ModuleKind(form, linear.primitive(covector * spun.rows.transpose()), *found)


def _commutant(form: CyclicModule, maps: fmpq_mat) -> tuple[Polynomial, fmpq_mat] | fmpq_mat | None:
    """Return h and the row v·t of the commutant C = ℚ[t]/(h), or a row v·c with c ≠ 0 not invertible, or None.

    `maps` has reduced rows that span v·C. The generators tried are letters in the center of the algebra, and the rows.
    The result is None if none serves: C may be quaternions, or h may have no short proof that it is irreducible.
    """
    letters, e, chosen = form.module.letters, maps.nrows(), linear.pivots(maps)
    central = [a for a in letters if all(a * b == b * a for b in letters)][:20]
    for row in [linear.rows_of(a, [0]) for a in central] + linear.each_row(maps):
        t = image(form, form.module, row)
        minimal = linear.columns_of(maps * t, chosen).minpoly()  # of t, by its action on v·C
        factors = minimal.factor()[1]
        if sum(exponent for _, exponent in factors) > 1:
            return linear.rows_of(value_at(factors[0][0].coeffs(), t), [0])
        if minimal.degree() == e and minimal.denom() == 1:  # t is an algebraic integer
            polynomial = minimal.numer()
            # Of t and its sums with integers, one with trace near 0 may be a root of unity.
            shift = 0 if polynomial.is_cyclotomic() else round(-int(polynomial[e - 1]) / e)
            h = tuple(int(c) for c in polynomial(fmpz_poly([shift, 1])).coeffs())
            if why_irreducible(h) is not None:
                return h, row - linear.rows_of(linear.identity(form.dimension), [0]) * shift
    return None


def _singular(module: Module, rng: random.Random) -> tuple[Element, fmpq_mat]:
    """Return the drawn element of least positive nullity and a basis of its kernel, without rows if none was found.

    Nullities are computed modulo a prime, which bounds those over the rationals from above.
    """
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
