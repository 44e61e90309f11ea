"""The chain of submodules that contains all blocks of bounded size (T31 of docs/theory.md).

U_c contains every submodule of V over the field K of dimension at most c. It is the sum over the kinds F of the copies
of F in V/U_j, where j is c minus the weight of F over K. If U_c does not separate two states, no block of size c does.
All U_c are defined over the rationals; only the weights depend on K.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from flint import fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.extra.block_size.kinds import ModuleKind, homs, image
from fsa2lrnn.extra.block_size.late import LateCopy, late_copy, least
from fsa2lrnn.families import linear
from fsa2lrnn.families.closure import Echelon
from fsa2lrnn.families.modules import Module, classes, quotient, spin


@dataclass(frozen=True)
class KindCopy:
    """A copy of a kind in a quotient V/U.

    Args:
        kind: the number of the kind.
        base: U is spanned by the first `base` rows of all copies of the chain.
        level: the least c with the copy in U_c.
        rows: functions whose classes modulo U are the standard basis of the kind.
        late: why the copy enters the chain later than its weight implies, None if it does not.
    """

    kind: int
    base: int
    level: int
    rows: fmpq_mat
    late: LateCopy | None = None


@dataclass(frozen=True)
class SubmoduleChain:
    """A chain of submodules U_0 ⊆ U_1 ⊆ … ⊆ V, as copies of kinds.

    Args:
        copies: the copies in the order of their levels; their rows together are a basis of V.
        sizes: `sizes[c]` is the dimension of U_c, the number of rows of level at most c.
    """

    copies: tuple[KindCopy, ...]
    sizes: tuple[int, ...]

    def rows(self, c: int) -> fmpq_mat:
        """Return a basis of U_c as rows, shape (dim U_c, n−1)."""
        return linear.stack((copy.rows for copy in self.copies if copy.level <= c), self.copies[0].rows.ncols())

    def merged(self, c: int) -> tuple[int, int] | None:
        """Return two states that U_c does not separate, or None."""
        first_state: dict[int, int] = {}
        for q, number in enumerate(classes(self.rows(c))):
            if number in first_state:
                return first_state[number], q
            first_state[number] = q
        return None

    @property
    def bound(self) -> int:
        """The least c for which U_c separates all states, a lower bound on the block size."""
        return next(c for c in range(len(self.sizes)) if self.merged(c) is None)


def chain(module: Module, kinds: Sequence[ModuleKind], field: str, check: Callable[[], None]) -> SubmoduleChain:
    """Return the chain of V over a field, "Q", "R" or "C", from the kinds of all constituents of V (T31)."""
    d = module.dimension
    weights = [kind.weight(field) for kind in kinds]
    echelon = Echelon(d, linear.PRIME)
    copies, sizes = list[KindCopy](), [0]
    generators: dict[tuple[int, int], list[fmpq_mat]] = {}
    delayed: dict[
        int, tuple[KindCopy, int]
    ] = {}  # by kind: not yet in the chain; and how many of the kind are below it
    while sizes[-1] < d:
        c = len(sizes)
        for i, (kind, weight) in enumerate(zip(kinds, weights, strict=True)):
            if weight > c:
                continue
            base = sizes[c - weight]
            below = [copy for copy, start in zip(copies, _starts(copies), strict=True) if start < base]
            if (i, base) not in generators:
                check()
                generators[i, base] = _generators(module, below, kind)
            rows = generators[i, base]
            is_alone = len(rows) == kind.commutant.dimension
            # T31 (ii): if all copies of a kind are one, a submodule that contains it may be larger than its weight.
            if is_alone and i not in delayed and echelon.is_new(linear.residues(rows[0])):
                rows_of_copy = linear.together_primitive(image(kind.standard, module, rows[0]))
                under = linear.stack((copy.rows for copy in below), d)
                count = sum(copy.kind == i for copy in below)
                late = None
                if len(spin(module, rows[0]).path) * weight > c * kind.dimension:
                    late = late_copy(module, kinds, i, under, rows_of_copy, count)
                delayed[i] = KindCopy(i, base, c, rows_of_copy, late), count
            if i in delayed:
                copy, count = delayed[i]
                is_same = is_alone and count == sum(other.kind == i for other in below)
                if not (is_same and least(copy.late, kind, field) > c):
                    del delayed[i]
                    copies.append(replace(copy, level=c))
                    echelon.independent(linear.residues(copy.rows))
            for row in rows if not is_alone else ():
                if echelon.is_new(linear.residues(row)):
                    rows_of_copy = linear.together_primitive(image(kind.standard, module, row))
                    echelon.independent(linear.residues(rows_of_copy))
                    copies.append(KindCopy(i, base, c, rows_of_copy))
        sizes.append(sum(copy.rows.nrows() for copy in copies))
    return SubmoduleChain(tuple(copies), tuple(sizes))


def _starts(copies: list[KindCopy]) -> list[int]:
    return [0, *accumulate(copy.rows.nrows() for copy in copies)][: len(copies)]


def _generators(module: Module, below: list[KindCopy], kind: ModuleKind) -> list[fmpq_mat]:
    rows = linear.stack((copy.rows for copy in below), module.dimension)
    modulo = quotient(module, linear.row_space(rows))
    return linear.each_row(homs(kind.standard, modulo.module) * modulo.lift)
