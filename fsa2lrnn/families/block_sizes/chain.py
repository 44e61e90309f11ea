"""The chain of submodules that contains all blocks of bounded size (T31 of docs/theory.md), and its certificates.

U_c contains every submodule of V over the field K of dimension at most c. It is the sum over the kinds F of the copies
of F in V/U_j, where j is c minus the weight of F over K. If U_c does not separate two states, no block of size c does.
All U_c are defined over the rationals; only the weights depend on K.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from flint import fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.families import linear
from fsa2lrnn.families.block_sizes.constituents import ModuleKind, homs, image, why_irreducible
from fsa2lrnn.families.closure import Echelon
from fsa2lrnn.families.family_answers import certificate_header
from fsa2lrnn.families.function_modules import Module, classes, quotient


@dataclass(frozen=True)
class KindCopy:
    """A copy of a kind in a quotient V/U.

    Args:
        kind: the number of the kind.
        base: U is spanned by the first `base` rows of all copies of the chain.
        level: the least c with the copy in U_c.
        rows: functions whose classes modulo U are the standard basis of the kind.
    """

    kind: int
    base: int
    level: int
    rows: fmpq_mat


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
        # p is the first state of the class of q, so p < q means that U_c gives p and q the same values.
        numbers = classes(self.rows(c))
        return next(((p, q) for q, number in enumerate(numbers) if (p := numbers.index(number)) < q), None)

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
    # The copies of a kind in V/U_j by (kind, dim U_j); several c can refer to the same pair.
    generators: dict[tuple[int, int], list[fmpq_mat]] = {}
    # The loop ends: a simple submodule of V/U_{c−1} is of some kind F and enters at level c − 1 + weight(F) at the
    # latest.
    while sizes[-1] < d:
        c = len(sizes)
        if c > d:  # rows that are independent over the rationals and not modulo the prime
            raise BudgetExceeded("the chain of submodules does not end modulo the prime: the block size stays open")
        for i, (kind, weight) in enumerate(zip(kinds, weights, strict=True)):
            if weight > c:
                continue
            # Copies are stored by increasing level, so the first sizes[j] rows span U_j, here for j = c − weight (T31).
            base = sizes[c - weight]
            if (i, base) not in generators:
                check()
                starts = accumulate((copy.rows.nrows() for copy in copies), initial=0)
                below = [copy.rows for copy, start in zip(copies, starts, strict=False) if start < base]
                modulo = quotient(module, linear.row_space(linear.stack(below, d)))
                # The images of v under a basis of Hom(F, V/U_j), lifted from classes to functions.
                generators[i, base] = linear.each_row(homs(kind.standard, modulo.module) * modulo.lift)
            for row in generators[i, base]:
                # The rows so far span a submodule that contains U_j. F is irreducible, so a copy lies inside that
                # submodule or meets it in U_j alone; the generator of the copy decides which.
                if echelon.is_new(linear.residues(row)):
                    rows = linear.together_primitive(image(kind.standard, module, row))
                    echelon.independent(linear.residues(rows))
                    copies.append(KindCopy(i, base, c, rows))
        sizes.append(sum(copy.rows.nrows() for copy in copies))
    return SubmoduleChain(tuple(copies), tuple(sizes))


def reach(
    module: Module, kinds: Sequence[ModuleKind], allowed: Sequence[int], check: Callable[[], None]
) -> SubmoduleChain:
    """Return V as copies of kinds: at level 0 the largest submodule of kinds that are allowed, the rest at 1 (T36)."""
    d = module.dimension
    copies: list[KindCopy] = []
    # Level 0 takes copies of allowed kinds until no quotient has another one, level 1 then takes all that is left of V.
    for level, numbers in enumerate((allowed, range(len(kinds)))):
        is_growing = True
        while is_growing:
            rows = linear.stack((copy.rows for copy in copies), d)
            # All copies of one round stand on the submodule that the rows of the earlier rounds span.
            below, base, is_growing = quotient(module, linear.row_space(rows)), rows.nrows(), False
            echelon = Echelon(below.module.dimension, linear.PRIME)
            for i in numbers:
                check()
                standard = kinds[i].standard
                for row in linear.each_row(homs(standard, below.module)):
                    if echelon.is_new(linear.residues(row)):
                        small = image(standard, below.module, row)
                        echelon.independent(linear.residues(small))
                        copies.append(KindCopy(i, base, level, linear.together_primitive(small * below.lift)))
                        is_growing = True
    sizes = [sum(copy.rows.nrows() for copy in copies if copy.level <= level) for level in (0, 1)]
    return SubmoduleChain(tuple(copies), tuple(sizes))


def chain_certificate(
    machine: MooreMachine, family: str, level: int, kinds: Sequence[ModuleKind], found: SubmoduleChain
) -> dict[str, Any]:
    """Return a certificate for `recheck` that a family represents only functions in U_level, which merges two states.

    The families are blocks of bounded size (T31) and Householder products with a bounded number of factors (T36).
    """
    states, rows = found.merged(level), linear.stack((copy.rows for copy in found.copies), found.sizes[-1])
    assert states is not None
    return {
        **certificate_header(machine, family, "impossible"),
        "states": list(states),
        "kinds": [_kind(kind) for kind in kinds],
        "copies": [
            {"kind": copy.kind, "base": copy.base, "level": copy.level, "rows": _integers(copy.rows)}
            for copy in found.copies
        ],
        # The rows of all copies are a basis of V; the checker reads coordinates with the inverse, up to a common
        # factor.
        "inverse": _integers(linear.together_primitive(rows.inv())),
    }


def _kind(kind: ModuleKind) -> dict[str, Any]:
    """Return a kind as JSON, with the data that prove it irreducible and determine how it splits (T32)."""
    return {
        "letters": [_texts(letter) for letter in kind.standard.module.letters],
        "path": [list(step) for step in kind.standard.path[1:]],
        "element": [[coefficient, list(word)] for coefficient, word in kind.standard.element],
        "covector": _texts(kind.covector)[0],
        "polynomial": list(kind.polynomial),
        "irreducible": list(why_irreducible(kind.polynomial) or ()),
        "generator": _texts(kind.generator)[0],
        **({} if kind.quaternion is None else {"quaternion": _texts(kind.quaternion)[0]}),
    }


def number_to_json(number: object) -> int | str:
    """Return a rational number for JSON: an int if it is an integer, otherwise text such as "1/2"."""
    text = str(number)
    return text if "/" in text else int(text)


def _texts(matrix: fmpq_mat) -> list[list[int | str]]:
    return [[number_to_json(entry) for entry in row] for row in matrix.tolist()]


def _integers(matrix: fmpq_mat) -> list[list[int]]:
    return [[int(entry) for entry in row] for row in matrix.numer_denom()[0].tolist()]
