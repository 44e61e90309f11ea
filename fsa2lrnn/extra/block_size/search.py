"""Search small submodules that separate states, for upper bounds on the block size (T30).

A minimal submodule W that separates p from q has one maximal submodule X (T30), and W/X is a kind F. Over the reals or
the complex numbers F may split. Then X and one constituent of F, whose functions have values in a number field,
separate the same states as W, so that a block of size dim X plus the weight of F suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from flint import fmpq, fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.block_size.blocks import StateBlock, field_block, multiples, rational_block, side_by_side
from fsa2lrnn.extra.block_size.chain import SubmoduleChain
from fsa2lrnn.extra.block_size.fields import splitting_map
from fsa2lrnn.extra.block_size.kinds import CyclicModule, ModuleKind, homs, image, standard, submodule
from fsa2lrnn.extra.block_size.polynomials import Polynomial, real_roots, value_at
from fsa2lrnn.families import linear
from fsa2lrnn.families.closure import Echelon
from fsa2lrnn.families.modules import Module, classes, quotient, reverse, spin

_MIXED = 3  # the number of sums of several copies of a kind, which separate more states than one copy
_NATURAL = 40  # the dimension from which indicator functions of single states are no longer tried
_PAIRS = 200  # the most pairs of states for which submodules are searched one by one


@dataclass(frozen=True)
class Split:
    """The split of a kind over a field: a map that commutes with the letters, and the dimension of a constituent."""

    kind: ModuleKind
    polynomial: Polynomial
    map: fmpq_mat
    weight: int


@dataclass(frozen=True)
class SubmoduleCandidate:
    """A submodule, and the size of the smallest known block that separates the same states.

    Args:
        rows: a basis of the submodule.
        size: its dimension, or less if its head splits.
        numbers: for each state its class; the submodule does not separate states of one class.
        head: if the head splits, the rows, the split, and a map of the dual of the kind into the dual of the submodule.
    """

    rows: fmpq_mat
    size: int
    numbers: tuple[int, ...]
    head: tuple[fmpq_mat, Split, fmpq_mat] | None


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
        self._duals = [_dual(kind) for kind in kinds]
        self._splits: dict[int, Split] = {}
        for i, kind in enumerate(kinds):
            if (split := splitting_map(kind, field)) is not None:
                parts = 2 if field == "R" and not real_roots(split[0]) else 1
                self._splits[i] = Split(kind, *split, kind.dimension // (len(split[0]) - 1) * parts)
        self._known: dict[str, SubmoduleCandidate] = {}
        self._pool = self._candidates(found)
        self._pairs: dict[tuple[int, int], list[SubmoduleCandidate]] = {}

    def blocks(self, size: int) -> list[StateBlock] | None:
        """Return blocks of at most this size that together separate all states, none redundant; None if not found."""
        n = len(self._delta[0])
        for _ in self._pool:
            pass  # each is stored in _known
        chosen: list[SubmoduleCandidate] = []
        numbers: tuple[int, ...] = (0,) * n
        for candidate in sorted(self._known.values(), key=lambda c: (-max(c.numbers), c.size)):
            chosen, numbers = _with(candidate, size, chosen, numbers)
        for _ in range(_PAIRS):
            if max(numbers) == n - 1:
                break
            self._check()
            small = [c for c in self._for_pair(_merged(numbers)) if c.size <= size]
            if not small:
                return None
            chosen, numbers = _with(small[0], size, chosen, numbers)
        if max(numbers) < n - 1:
            return None
        return [self._block(candidate) for candidate in _needed(chosen, n)]

    def of_copies(self, found: SubmoduleChain) -> list[StateBlock]:
        """Return blocks of the copies at level 0 with base 0, without those that the separation of states can spare."""
        n = len(self._delta[0])
        chosen = [
            candidate
            for copy in found.copies
            if copy.level == copy.base == 0
            for candidate in self._candidate(copy.rows, again=True)
        ]
        return [self._block(candidate) for candidate in _needed(chosen, n)]

    def _candidates(self, found: SubmoduleChain) -> Iterator[SubmoduleCandidate]:
        alike: dict[tuple[int, int, int], list[fmpq_mat]] = {}
        for copy in found.copies:
            alike.setdefault((copy.kind, copy.base, copy.level), []).append(linear.rows_of(copy.rows, [0]))
        for rows in alike.values():
            for step in range(1, _MIXED + 1 if len(rows) > 1 else 0):
                self._check()
                mixed = sum((row * ((j + 1) ** step + j) for j, row in enumerate(rows)), start=rows[0] * 0)
                yield from self._candidate(spin(self._module, mixed).rows)
        for copy in found.copies:
            self._check()
            yield from self._candidate(spin(self._module, linear.rows_of(copy.rows, [0])).rows)
        d, outputs = self._module.dimension, self._outputs
        sets = [[output != outputs[0] for output in outputs[1:]]]  # all outputs but one, and single states
        sets += [[i == q for i in range(d)] for q in range(d if d < _NATURAL else 0)]
        for indicator in sets:
            self._check()
            yield from self._candidate(spin(self._module, fmpq_mat(1, d, [int(i) for i in indicator])).rows)

    def _for_pair(self, pair: tuple[int, int]) -> list[SubmoduleCandidate]:
        if pair not in self._pairs:
            found: dict[str, SubmoduleCandidate] = {}
            for kept in range(len(self._kinds)):
                self._check()
                rows = self._smallest(pair, kept)
                for candidate in self._candidate(rows, again=True):
                    found[str(candidate.numbers)] = candidate
            self._pairs[pair] = sorted(found.values(), key=lambda c: c.size)
        return self._pairs[pair]

    def _smallest(self, pair: tuple[int, int], kept: int) -> fmpq_mat:
        """Return a minimal submodule that separates a pair p, q of states, as rows.

        It is the annihilator of a maximal submodule N of the dual that does not contain z = e_p − e_q. N grows by
        simple submodules, those of kind `kept` last, so that different values of `kept` can give different results.
        """
        dual, d = self._module.dual, self._module.dimension
        z = fmpq_mat(1, d, [int(q == pair[0]) - int(q == pair[1]) for q in range(1, d + 1)])
        n_rows = fmpq_mat(0, d)
        order = [i for i in range(len(self._kinds)) if i != kept] + [kept]
        while True:
            below = quotient(dual, linear.row_space(n_rows))
            grown = False
            for i in order:
                for row in linear.each_row(homs(self._duals[i], below.module)):
                    lifted = image(self._duals[i], below.module, row) * below.lift
                    wider = linear.row_space(linear.stack([n_rows, lifted], d))
                    if wider.nrows() > n_rows.nrows() and not _holds(wider, z):
                        n_rows, grown = wider, True
            if not grown:
                return linear.left_kernel(n_rows.transpose()) if n_rows.nrows() else linear.identity(d)

    def _candidate(self, rows: fmpq_mat, again: bool = False) -> Iterator[SubmoduleCandidate]:
        reduced = linear.row_space(rows)
        key = str(reduced)
        if key not in self._known:
            self._known[key] = self._measured(linear.primitive(reduced))
            yield self._known[key]
        elif again:
            yield self._known[key]

    def _measured(self, rows: fmpq_mat) -> SubmoduleCandidate:
        numbers = tuple(classes(rows))
        best = SubmoduleCandidate(rows, rows.nrows(), numbers, None)
        if not self._splits:
            return best
        part = submodule(self._module, rows)
        for i, split in self._splits.items():
            covectors = homs(self._duals[i], part.dual)
            smaller = rows.nrows() - split.kind.dimension + split.weight
            if covectors.nrows() and smaller < best.size:
                onto = image(self._duals[i], part.dual, linear.rows_of(covectors, [0]))
                best = SubmoduleCandidate(rows, smaller, numbers, (rows, split, onto))
        return best

    def _block(self, candidate: SubmoduleCandidate) -> StateBlock:
        if candidate.head is None:
            return rational_block(self._module, candidate.rows, self._delta)
        rows, split, onto = candidate.head
        radical = linear.left_kernel(onto.transpose()) * rows
        return field_block(self._module, _split_rows(self._module, radical, rows, split), split.polynomial, self._delta)


def _split_rows(module: Module, radical: fmpq_mat, rows: fmpq_mat, split: Split) -> list[fmpq_mat]:
    """Return f_m of the functions Σ_m t^m f_m that span X and one constituent of W/X, for m = 0 … k−1.

    The constituent is generated by v·h(c)/(c − t), an eigenvector of the map c with the eigenvalue t. The quotient is
    h(x)/(x − t) = Σ_m t^m q_m(x) with q_{k−1} = 1 and q_{m−1} = x q_m + h_m.
    """
    d, h = module.dimension, split.polynomial
    k = len(h) - 1
    form = split.kind.standard
    below = quotient(module, linear.row_space(radical))
    part = linear.row_space(rows * below.down)
    inside = submodule(below.module, part)
    start = linear.rows_of(homs(form, inside), [0])
    images = image(form, inside, start) * part * below.lift  # the rows of the kind, as functions
    first = fmpq_mat(1, form.dimension, [int(j == 0) for j in range(form.dimension)])
    tops: list[tuple[fmpq, ...]] = [(fmpq(1),)]
    for m in range(k - 1, 0, -1):
        tops.append((fmpq(h[m]), *tops[-1]))
    quotients = [first * value_at(top, split.map) for top in reversed(tops)]  # v·q_0(c) … v·q_{k−1}(c)
    size = form.dimension // k
    generated = _spanning(form, quotients, h, size)
    zero = fmpq_mat(radical.nrows(), d)
    return [linear.stack([radical if m == 0 else zero, generated[m] * images], d) for m in range(k)]


def _spanning(form: CyclicModule, quotients: list[fmpq_mat], h: Polynomial, size: int) -> list[fmpq_mat]:
    d, k = form.dimension, len(h) - 1
    echelon = Echelon(k * d, linear.PRIME)
    queue = [quotients]
    kept: list[list[fmpq_mat]] = []
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
    spun = spin(kind.standard.module.dual, kind.covector)
    return standard(kind.standard.module.dual, kind.covector, spun.path, reverse(kind.standard.element))


def _holds(reduced: fmpq_mat, row: fmpq_mat) -> bool:
    chosen = linear.pivots(reduced)
    return linear.columns_of(row, chosen) * reduced == row


def _with(
    candidate: SubmoduleCandidate, size: int, chosen: list[SubmoduleCandidate], numbers: tuple[int, ...]
) -> tuple[list[SubmoduleCandidate], tuple[int, ...]]:
    if candidate.size > size:
        return chosen, numbers
    finer = _numbered(zip(numbers, candidate.numbers, strict=True))
    return ([*chosen, candidate], finer) if max(finer) > max(numbers) else (chosen, numbers)


def _joined(chosen: list[SubmoduleCandidate], n: int) -> tuple[int, ...]:
    return _numbered(zip(*(candidate.numbers for candidate in chosen), strict=True)) if chosen else (0,) * n


def _needed(chosen: list[SubmoduleCandidate], n: int) -> list[SubmoduleCandidate]:
    for candidate in sorted(chosen, key=lambda c: -c.size):
        rest = [c for c in chosen if c is not candidate]
        if max(_joined(rest, n)) == n - 1:
            chosen = rest
    return chosen


def _numbered(codes: Iterator[tuple[int, ...]]) -> tuple[int, ...]:
    number: dict[tuple[int, ...], int] = {}
    return tuple(number.setdefault(code, len(number)) for code in codes)


def _merged(numbers: tuple[int, ...]) -> tuple[int, int]:
    return next((p, q) for p, q in combinations(range(len(numbers)), 2) if numbers[p] == numbers[q])
