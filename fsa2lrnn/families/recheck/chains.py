"""Check chains: V, the functions of the state, as copies of irreducible modules, and no further copies (T31 to T33)."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from .kinds import CheckedKind, check_kind, rank_on
from .machine import CheckedMachine, read_states
from .modules import PRIME, Span, applied, dot, rank_of, read_element, residue, spun, state_functions, times
from .reading import HEADER, as_list, fields, require, spend, whole


class CheckedCopy(NamedTuple):
    """A copy of a kind: functions on which letters act as on the kind, modulo the first `base` rows of the chain.

    Its rows in the chain begin at `start`; `late` is the reason for a level that is not the least possible, or None.
    """

    kind: int
    base: int
    level: int
    rows: list[list[int]]
    late: Any
    start: int


class CheckedChain(NamedTuple):
    """A basis of V in copies of kinds; coordinate i of a function is its product with `columns[i]`, up to a factor."""

    kinds: list[CheckedKind]
    copies: list[CheckedCopy]
    columns: list[Any]

    def below(self, i: int, u: int) -> int:
        """Return the number of copies of kind i that begin before row u."""
        return sum(copy.kind == i and copy.start < u for copy in self.copies)


def check_chain(certificate: dict[str, Any], machine: CheckedMachine, field: str, size: int) -> tuple[int, int]:
    """Check that no submodule of dimension at most `size` separates two states (T31); return these states."""
    states = certificate["states"]
    fields(certificate, *HEADER, "field", "states", "kinds", "copies", "inverse")
    p, q = read_states(states, machine)
    require(p != q and size < machine.n, "the two states are one, or the size is beyond them all")
    chain = read_chain(certificate, machine, field)
    # T31 (a): U_c is spanned by the copies up to level c. All copies of a kind in V modulo U_{c − weight} are counted;
    # each is among those listed, and within U_c unless it is late for a reason.
    below = [sum(len(copy.rows) for copy in chain.copies if copy.level <= c) for c in range(size + 1)]
    counted: dict[tuple[int, int], int] = {}
    late: set[int] = set()
    for i, kind in enumerate(chain.kinds):
        for c in range(kind.weight, size + 1):
            u = below[c - kind.weight]
            spend(len(chain.copies))
            above = [copy for copy in chain.copies if copy.kind == i and copy.base <= u <= copy.start]
            if (i, u) not in counted:
                counted[i, u] = homs(kind, machine, chain.columns[u:], kind.commutant * len(above))
            fault = f"kind {i} has more copies above level {c - kind.weight} than are listed"
            require(counted[i, u] <= kind.commutant * len(above), fault)
            for copy in above:
                if copy.level > c:
                    require(copy.late is not None, f"a copy comes after level {c} without a reason")
                    is_alone = len(above) == 1 and chain.below(i, u) == chain.below(i, copy.base)
                    require(is_alone, "a copy comes late though it is not the only one")
                    least = _least_above(chain, copy, machine)
                    require(least > c, f"a copy comes after level {c}, where it may be needed")
                    late.add(copy.start)
    is_needed = all(copy.late is None or copy.start in late for copy in chain.copies)
    require(is_needed, "a copy that is not late has a reason to be")
    # What U_size contains, as functions of the state that are 0 in the first: none of them separates p and q.
    values = [[0, *row] for copy in chain.copies if copy.level <= size for row in copy.rows]
    require(all(row[p] == row[q] for row in values), f"states {p} and {q} are told apart")
    return p, q


def read_chain(certificate: dict[str, Any], machine: CheckedMachine, field: str) -> CheckedChain:
    """Check that a chain's kinds are irreducible and its copies a basis of V closed under letters; return the chain."""
    d, module = machine.n - 1, state_functions(machine)
    kinds = [check_kind(kind, machine, field) for kind in as_list(certificate["kinds"])]
    columns = list(zip(*(whole(row, d) for row in as_list(certificate["inverse"])), strict=True))
    copies, rows = list[CheckedCopy](), list[list[int]]()
    for value in as_list(certificate["copies"]):
        i, base, level, functions, late = fields(value, "kind", "base", "level", "rows", "late")
        require(type(i) is type(base) is type(level) is int and 0 <= i < len(kinds), "a copy is of no kind")
        require(len(as_list(functions)) == len(kinds[i].path) + 1, "a copy has other rows than its kind")
        copies.append(CheckedCopy(i, base, level, [whole(row, d) for row in functions], late, len(rows)))
        is_based = any(base == copy.start for copy in copies)
        require(is_based and level >= copies[-2:][0].level >= 0, "a copy stands on no submodule, or out of order")
        rows += functions
    require(len(rows) == len(columns) == d, f"the copies have not {d} rows together")
    # The rows are a basis: their products with the columns are those of a diagonal matrix without zeros.
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            require((dot(row, column) != 0) == (i == j), "the inverse is none")
    # Each letter maps a copy as its kind, modulo the functions that the copy stands on.
    for copy in copies:
        for letter, table in zip(module, kinds[copy.kind].letters, strict=True):
            for function, relation in zip(copy.rows, table, strict=True):
                rest = times(function, letter)
                spend(len(rest) * len(relation))
                for j, x in relation.items():
                    rest = [y - x * z for y, z in zip(rest, copy.rows[j], strict=True)]
                is_below = not any(rest) or not any(dot(rest, column) for column in columns[copy.base :])
                require(is_below, "a copy does not move as its kind does")
    return CheckedChain(kinds, copies, columns)


def _least_above(chain: CheckedChain, copy: CheckedCopy, machine: CheckedMachine) -> int:
    """Return a lower bound on the dimension over the field of a submodule whose head is this copy (T31).

    The element determines a function f of each such submodule up to parameters, functions in U_base. Without parameters
    the submodule contains the module that f generates; else it contains the images of f under moves that kill them.
    """
    element, function, parameters, moves = fields(copy.late, "element", "function", "parameters", "moves")
    element, kind, module = read_element(element, machine), chain.kinds[copy.kind], state_functions(machine)
    d, own = len(kind.path) + 1, range(copy.start, copy.start + len(copy.rows))
    f, rest = whole(function, machine.n - 1), [whole(row, machine.n - 1) for row in as_list(parameters)]
    # f lies in its copy and below it, and not only below.
    parts = [dot(f, column) for column in chain.columns]
    is_part = any(parts[i] for i in own) and not any(parts[i] for i in range(copy.base, len(parts)) if i not in own)
    require(is_part, "a function is not in the submodule with its copy, or below it")
    # T31 (b): the element is invertible on all other kinds.
    for i, other in enumerate(chain.kinds):
        if i != copy.kind:
            require(rank_on(other, element, 1) == len(other.path) + 1, f"an element kills something in kind {i}")
    require(
        chain.below(copy.kind, copy.base) == len(rest),
        "there are other parameters than copies of the kind below",
    )
    if not rest:
        require(not any(applied(element, f, module)), "the element does not kill the function")
        require(kind.splits, "the submodules above quaternions are not all alike")
        return -(-spun([f], module) * kind.weight // d)
    require(
        kind.commutant == 1 and rank_on(kind, element, 2) == d - 1, "the element kills more than a line of its kind"
    )
    for row in (f, *rest):
        for _ in range(machine.n):
            row = applied(element, row, module)
        require(not any(row), "no power of the element kills the function and the parameters")
    require(rank_of(rest, len(rest)) == len(rest), "the parameters are dependent")
    require(
        not any(dot(row, column) for row in rest for column in chain.columns[copy.base :]), "a parameter is not below"
    )
    # T31 (c): moves kill the parameters g_i, so that all f + Σ t_i g_i have the images of f.
    images = []
    for value in as_list(moves):
        move = read_element(value, machine)
        require(not any(any(applied(move, row, module)) for row in rest), "a move does not kill the parameters")
        images.append(applied(move, f, module))
        is_below = not any(dot(images[-1], column) for column in chain.columns[copy.base :])
        require(is_below, "a move leads out of what is below")
    return spun(images, module) + d


def homs(kind: CheckedKind, machine: CheckedMachine, columns: list[Any], target: int) -> int:
    """Return an upper bound on the dimension of Hom(kind, V modulo the functions on which the columns vanish).

    A map is determined by f, the image of the first basis vector; the relations of the others, applied to f, must
    vanish on the columns. Relations modulo the prime are counted until `target` dimensions are left.
    """
    maps = [list(range(machine.n))]
    for parent, a in kind.path:
        maps.append([maps[parent][s] for s in machine.delta[a]])
    small = [[[(j, residue(x)) for j, x in row.items()] for row in letter] for letter in kind.letters]
    rng, span, tree = random.Random(0), Span(), set(kind.path)
    for _ in range(len(columns)):
        y = [0] * (machine.n - 1)
        spend(machine.n * len(columns))
        for column in columns:
            c = rng.randrange(PRIME)
            y = [(x + c * z) % PRIME for x, z in zip(y, column, strict=True)]
        y = [-sum(y), *y]
        pushed = [_pushed(image, y) for image in maps]
        for a, step in enumerate(machine.delta):
            for i, image in enumerate(maps):
                if (i, a) in tree:
                    continue
                vector = _pushed([image[s] for s in step], y)
                spend(machine.n * len(small[a][i]))
                for j, x in small[a][i]:
                    vector = [v - x * z for v, z in zip(vector, pushed[j], strict=True)]
                span.add([v % PRIME for v in vector])
                if len(columns) - len(span.rows) <= target:
                    return len(columns) - len(span.rows)
    return len(columns) - len(span.rows)


def _pushed(image: list[int], y: list[int]) -> list[int]:
    """Return the column z with f · z = (f ∘ image) · y for all functions f, without its entry at state 0."""
    spend(len(image))
    total = [0] * len(image)
    for target, x in zip(image, y, strict=True):
        total[target] += x
    return total[1:]
