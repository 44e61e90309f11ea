"""Search small submodules that separate states, for upper bounds on the block size (T30).

A minimal submodule W that separates p from q has one maximal submodule X (T30), and W/X is a kind F. Over the reals or
the complex numbers F may split. Then X and one constituent of F, whose functions have values in a number field,
separate the same states as W, so that a block of size dim X plus the weight of F suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from flint import fmpq, fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.families import linear
from fsa2lrnn.families.block_sizes.chain import SubmoduleChain
from fsa2lrnn.families.block_sizes.constituents import (
    CyclicModule,
    ModuleKind,
    Polynomial,
    homs,
    image,
    standard,
    submodule,
    value_at,
)
from fsa2lrnn.families.block_sizes.state_blocks import StateBlock, field_block, multiples, rational_block, side_by_side
from fsa2lrnn.families.closure import Echelon
from fsa2lrnn.families.function_modules import Module, classes, quotient, reverse, spin

_MIXED = 3  # the number of sums of several copies of a kind, which separate more states than one copy
_NATURAL = 12  # the dimension from which indicator functions of one and two states are no longer tried


@dataclass(frozen=True)
class SubmoduleCandidate:
    """A submodule, and the size of the smallest known block that separates the same states.

    Args:
        rows: a basis of the submodule.
        size: its dimension, or less if its head splits.
        numbers: for each state its class; the submodule does not separate states of one class.
        head: if the head splits, its kind, and a map of the dual of the kind into the dual of the submodule.
    """

    rows: fmpq_mat
    size: int
    numbers: tuple[int, ...]
    head: tuple[ModuleKind, fmpq_mat] | None


class BlockSearch:
    """The search for blocks over one field, for one machine, with a cache of submodules."""

    def __init__(
        self,
        module: Module,
        machine: MooreMachine,
        kinds: Sequence[ModuleKind],
        field: str,
        found: SubmoduleChain,
        check: Callable[[], None],
    ) -> None:
        self._module, self._kinds, self._check = module, kinds, check
        self._delta, self._outputs = machine.delta.tolist(), machine.outputs
        self._field = field
        # The dual of a kind is needed only where the kind splits over the field, as only then a block can be smaller.
        self._duals = [_dual(kind) if kind.weight(field) < kind.dimension else None for kind in kinds]
        self._known: dict[str, SubmoduleCandidate] = {}
        self._found = found

    def blocks(self, size: int) -> list[StateBlock] | None:
        """Return blocks of at most this size that together separate all states, none redundant; None if not found."""
        n = len(self._delta[0])
        if not self._known:
            self._look()
        chosen: list[SubmoduleCandidate] = []
        numbers: tuple[int, ...] = (0,) * n
        # The choice is greedy: submodules that separate most states come first, small ones before large ones.
        for candidate in sorted(self._known.values(), key=lambda c: (-max(c.numbers), c.size)):
            # Two states stay in one class only if neither the blocks chosen so far nor this candidate separates them.
            finer = _numbered(zip(numbers, candidate.numbers, strict=True))
            if candidate.size <= size and max(finer) > max(numbers):
                chosen, numbers = [*chosen, candidate], finer
        return [self._block(candidate) for candidate in _needed(chosen, n)] if max(numbers) == n - 1 else None

    def of_copies(self) -> list[StateBlock]:
        """Return blocks of the copies at level 0 with base 0, without those that the separation of states can spare."""
        # A copy with base 0 is a submodule of V itself, not only of a quotient, so that it is a block.
        copies = [copy for copy in self._found.copies if copy.level == copy.base == 0]
        chosen = _needed([self._candidate(copy.rows) for copy in copies], len(self._delta[0]))
        return [self._block(candidate) for candidate in chosen]

    def _look(self) -> None:
        """Store candidates: submodules that copies of kinds, sums of copies, and indicator functions generate."""
        # The first row of a copy is the image of v, which generates the copy modulo its base.
        alike: dict[tuple[int, int, int], list[fmpq_mat]] = {}
        for copy in self._found.copies:
            alike.setdefault((copy.kind, copy.base, copy.level), []).append(linear.rows_of(copy.rows, [0]))
        functions = [row for rows in alike.values() for row in rows]
        # Copies of one kind on one base can be mixed freely; each `step` gives another fixed mixture of their
        # generators.
        functions += [
            sum((row * ((j + 1) ** step + j) for j, row in enumerate(rows)), start=rows[0] * 0)
            for rows in alike.values()
            for step in range(1, _MIXED + 1 if len(rows) > 1 else 0)
        ]
        # Rows hold the values at states 1 … n−1 of functions that are 0 at state 0.
        d, outputs = self._module.dimension, self._outputs
        sets = [[output != outputs[0] for output in outputs[1:]]]  # all outputs but one, and one or two states
        pairs = combinations_with_replacement(range(d if d < _NATURAL else 0), 2)
        sets += [[i in pair for i in range(d)] for pair in pairs]
        functions += [fmpq_mat(1, d, [int(i) for i in indicator]) for indicator in sets]
        for function in functions:
            self._check()
            self._candidate(spin(self._module, function).rows)

    def _candidate(self, rows: fmpq_mat) -> SubmoduleCandidate:
        reduced = linear.row_space(rows)
        # The reduced echelon form is the same for all bases of a submodule, so that equal submodules share one entry.
        key = str(reduced)
        if key not in self._known:
            self._known[key] = self._measured(linear.primitive(reduced))
        return self._known[key]

    def _measured(self, rows: fmpq_mat) -> SubmoduleCandidate:
        """Return a candidate with its size, which a head that splits over the field makes smaller than its rank."""
        best = SubmoduleCandidate(rows, rows.nrows(), tuple(classes(rows)), None)
        part: Module | None = None
        for kind, dual in zip(self._kinds, self._duals, strict=True):
            # A head F with radical X: dim X = dim W − dim F, and one constituent of F over the field is added.
            smaller = rows.nrows() - kind.dimension + kind.weight(self._field)
            if dual is None or smaller >= best.size:
                continue
            part = part or submodule(self._module, rows)
            # A nonzero map from the dual of F into the dual of W is the transpose of a map from W onto F.
            covectors = homs(dual, part.dual)
            if covectors.nrows():
                onto = image(dual, part.dual, linear.rows_of(covectors, [0]))
                best = SubmoduleCandidate(rows, smaller, best.numbers, (kind, onto))
        return best

    def _block(self, candidate: SubmoduleCandidate) -> StateBlock:
        if candidate.head is None:
            return rational_block(self._module, candidate.rows, self._delta)
        kind, onto = candidate.head
        # X is the kernel of W → F: the combinations of rows on which all functionals in `onto` vanish.
        radical = linear.left_kernel(onto.transpose()) * candidate.rows
        rows = _split_rows(self._module, radical, candidate.rows, kind)
        return field_block(self._module, rows, kind.polynomial, self._delta)


def _split_rows(module: Module, radical: fmpq_mat, rows: fmpq_mat, kind: ModuleKind) -> list[fmpq_mat]:
    """Return f_m of the functions Σ_m t^m f_m that span X and one constituent of W/X, for m = 0 … k−1.

    The constituent is generated by v·h(c)/(c − t), an eigenvector of the generator c of the commutant with the
    eigenvalue t. The quotient is h(x)/(x − t) = Σ_m t^m q_m(x) with q_{k−1} = 1 and q_{m−1} = x q_m + h_m.
    """
    d, h, k, form = module.dimension, kind.polynomial, kind.degree, kind.standard
    # The matrix of t on F: t commutes with the letters, so its value v·t at the generator determines it.
    c = image(form, form.module, kind.generator)
    below = quotient(module, linear.row_space(radical))
    part = linear.row_space(rows * below.down)
    inside = submodule(below.module, part)
    # W/X is isomorphic to F; `start` is the image of v under one isomorphism, in the coordinates of W/X.
    start = linear.rows_of(homs(form, inside), [0])
    images = image(form, inside, start) * part * below.lift  # the rows of the kind, as functions
    first = fmpq_mat(1, form.dimension, [int(j == 0) for j in range(form.dimension)])
    # The quotients q_{k−1} … q_0 by the recursion of the docstring; multiplying by x prepends a coefficient.
    tops: list[tuple[fmpq, ...]] = [(fmpq(1),)]
    for m in range(k - 1, 0, -1):
        tops.append((fmpq(h[m]), *tops[-1]))
    quotients = [first * value_at(top, c) for top in reversed(tops)]  # v·q_0(c) … v·q_{k−1}(c)
    # F is free over C (T32), so that a constituent over the field ℚ(t) has dimension d / k.
    size = form.dimension // k
    generated = _spanning(form, quotients, h, size)
    zero = fmpq_mat(radical.nrows(), d)
    # The functions of X are rational: they are the coefficients of t^0 and have no others.
    return [linear.stack([radical if m == 0 else zero, generated[m] * images], d) for m in range(k)]


def _spanning(form: CyclicModule, quotients: list[fmpq_mat], h: Polynomial, size: int) -> list[fmpq_mat]:
    """Return `size` combinations of quotients, independent over the field ℚ[t]/(h), as k stacks of rows.

    An element of the field is k = deg h rational parts. Its multiples by t are marked as spanned at once, which makes
    rational independence that over the field. Images under letters follow in breadth-first order.
    """
    d, k = form.dimension, len(h) - 1
    echelon = Echelon(k * d, linear.PRIME)
    queue = [quotients]
    kept: list[list[fmpq_mat]] = []
    # The list grows while the loop runs over it, which makes it the queue of the breadth-first search.
    for parts in queue:
        if not echelon.independent(linear.residues(side_by_side(parts))):
            continue
        kept.append(parts)
        for multiple in multiples(parts, h)[1:]:
            echelon.independent(linear.residues(side_by_side(multiple)))
        if len(kept) == size:
            break
        queue += [[part * letter for part in parts] for letter in form.module.letters]
    return [linear.stack((parts[m] for parts in kept), d) for m in range(k)]


def _dual(kind: ModuleKind) -> CyclicModule:
    # T32: u generates all columns, so it generates the dual; θ u = 0 makes the transpose of θ annihilate it.
    spun = spin(kind.standard.module.dual, kind.covector)
    return standard(kind.standard.module.dual, kind.covector, spun.path, reverse(kind.standard.element))


def _needed(chosen: list[SubmoduleCandidate], n: int) -> list[SubmoduleCandidate]:
    # Large blocks are dropped first, wherever the others still separate all n states.
    for candidate in sorted(chosen, key=lambda c: -c.size):
        rest = [c for c in chosen if c is not candidate]
        if len(set(zip(*(c.numbers for c in rest), strict=True))) == n:
            chosen = rest
    return chosen


def _numbered(codes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    number: dict[tuple[int, ...], int] = {}
    return tuple(number.setdefault(code, len(number)) for code in codes)
