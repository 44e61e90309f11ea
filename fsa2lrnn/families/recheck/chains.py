"""Check chains: V, the functions of the state, as copies of irreducible modules, and no further copies (T31, T33).

Modules are checked to be irreducible, with the fields of the maps that commute with their letters (T32).
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from .certificate_fields import HEADER, as_list, fields, rationals, require, spend, whole
from .checked_machine import CheckedMachine, read_states
from .module_algebra import PRIME, Letter, Span, check_norton, dot, read_element, residue, state_functions, times
from .polynomials import check_irreducible, real_roots


class CheckedKind(NamedTuple):
    """An irreducible module; `path` has the origin of each basis vector except the first, (earlier vector, letter)."""

    letters: list[Letter]
    path: list[tuple[int, int]]
    commutant: int  # the dimension of the maps that commute with the letters: a field, or quaternions
    weight: int  # the least dimension of a constituent over the field of the blocks


def check_kind(value: object, machine: CheckedMachine, field: str) -> CheckedKind:
    """Return a module and its data; raise `RejectedCertificate` unless it is proved to be irreducible."""
    names = ("letters", "path", "element", "covector", "polynomial", "irreducible", "generator")
    more = ("quaternion",) if type(value) is dict and "quaternion" in value else ()
    tables, steps, element, covector, polynomial, reason, generator, *second = fields(value, *names, *more)
    d, n_letters = len(as_list(steps)) + 1, len(machine.delta)
    require(len(as_list(tables)) == n_letters, "a kind has letters that are not the machine's")
    letters: list[Letter] = []
    for table in tables:
        require(len(as_list(table)) == d, f"a letter of a kind has not {d} rows")
        letters.append([{j: x for j, x in enumerate(rationals(row, d)) if x} for row in table])
    path = [(parent, a) for parent, a in map(as_list, steps)]
    for i, (parent, a) in enumerate(path, 1):
        is_step = type(parent) is type(a) is int and 0 <= parent < i and 0 <= a < n_letters
        require(is_step and letters[a][parent] == {i: 1}, f"row {i} of a kind is not the image it should be")
    # The generator commutes with all letters and satisfies an irreducible polynomial: a field of degree k.
    require(all(type(c) is int for c in as_list(polynomial)), "a polynomial has a coefficient that is not an integer")
    k, first = len(polynomial) - 1, [int(j == 0) for j in range(d)]
    require(k >= 1 and polynomial[-1] == 1, "a polynomial is not monic")
    check_irreducible(polynomial, reason)
    t, image = _endomorphism(generator, letters, path), [0] * d
    for c in reversed(polynomial):  # Horner's rule, applied to the first basis vector
        image = times(image, t)
        image[0] += c
    require(not any(image), "what commutes does not satisfy its polynomial")
    commutant = 2 * k if second else k
    for row in second:
        _check_quaternions(t, _endomorphism(row, letters, path), polynomial)
    require(d % commutant == 0, f"{d} dimensions are no space over what commutes")
    check_norton(letters, read_element(element, machine), first, rationals(covector, d), commutant)
    # Over ℂ the module splits into k conjugates; over ℝ they come in pairs unless the polynomial has a real root.
    parts = {"Q": k, "R": 1 if field == "R" and real_roots(polynomial) else 2, "C": 1}[field]
    return CheckedKind(letters, path, commutant, d // k * parts)


def _check_quaternions(t: Letter, s: Letter, polynomial: list[int]) -> None:
    """Raise `RejectedCertificate` unless t² = −a, s² = −b and st = −ts with a, b > 0, on the first basis vector.

    Maps that commute with the letters are equal if they are equal there. These generate quaternions without zero
    divisors, even over the reals, since x² + ay² + bz² + abw² = 0 has no other solution than 0.
    """
    first = [int(j == 0) for j in range(len(t))]
    require(polynomial[1:] == [0, 1] and polynomial[0] > 0, "the square of a quaternion is not −a, a > 0")
    square = times(times(first, s), s)
    require(square[0] < 0 and not any(square[1:]), "the square of a second quaternion is not −b, b > 0")
    both = zip(times(times(first, s), t), times(times(first, t), s), strict=True)
    require(all(x == -y for x, y in both), "two quaternions do not anticommute")


def _endomorphism(row: object, letters: list[Letter], path: list[tuple[int, int]]) -> Letter:
    """Return the map of a kind to itself with this image of the first basis vector, after checks that it is one."""
    d = len(path) + 1
    images = [rationals(row, d)]
    for parent, a in path:
        images.append(times(images[parent], letters[a]))
    rows = [{j: x for j, x in enumerate(image) if x} for image in images]
    for letter in letters:
        for i, relation in enumerate(letter):
            expected = times([relation.get(j, 0) for j in range(d)], rows)
            require(times(images[i], letter) == expected, "a map does not commute with the letters")
    return rows


class CheckedCopy(NamedTuple):
    """A copy of a kind: functions on which letters act as on the kind, modulo the first `base` rows of the chain.

    Its rows in the chain begin at `start`.
    """

    kind: int
    base: int
    level: int
    rows: list[list[int]]
    start: int


class CheckedChain(NamedTuple):
    """A basis of V in copies of kinds; coordinate i of a function is its product with `columns[i]`, up to a factor."""

    kinds: list[CheckedKind]
    copies: list[CheckedCopy]
    columns: list[Any]


def check_chain(certificate: dict[str, Any], machine: CheckedMachine, field: str, size: int) -> tuple[int, int]:
    """Check that no submodule of dimension at most `size` separates two states (T31); return these states."""
    states = certificate["states"]
    fields(certificate, *HEADER, "field", "states", "kinds", "copies", "inverse")
    p, q = read_states(states, machine)
    require(p != q and size < machine.n, "the two states are one, or the size is beyond them all")
    chain = read_chain(certificate, machine, field)
    # T31: U_c is spanned by the copies up to level c. All copies of a kind in V modulo U_{c − weight} are counted; each
    # is among those listed, and within U_c.
    below = [sum(len(copy.rows) for copy in chain.copies if copy.level <= c) for c in range(size + 1)]
    counted: dict[tuple[int, int], int] = {}
    for i, kind in enumerate(chain.kinds):
        for c in range(kind.weight, size + 1):
            u = below[c - kind.weight]
            spend(len(chain.copies))
            above = [copy for copy in chain.copies if copy.kind == i and copy.base <= u <= copy.start]
            # T33: a count modulo the prime is at least the one over ℚ, so a count that the listed copies reach is
            # exact.
            if (i, u) not in counted:
                counted[i, u] = homs(kind, machine, chain.columns[u:], kind.commutant * len(above))
            fault = f"kind {i} has more copies above level {c - kind.weight} than are listed"
            require(counted[i, u] <= kind.commutant * len(above), fault)
            require(all(copy.level <= c for copy in above), f"a copy comes after level {c}, where it may be needed")
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
        i, base, level, functions = fields(value, "kind", "base", "level", "rows")
        require(type(i) is type(base) is type(level) is int and 0 <= i < len(kinds), "a copy is of no kind")
        require(len(as_list(functions)) == len(kinds[i].path) + 1, "a copy has other rows than its kind")
        copies.append(CheckedCopy(i, base, level, [whole(row, d) for row in functions], len(rows)))
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


def homs(kind: CheckedKind, machine: CheckedMachine, columns: list[Any], target: int) -> int:
    """Return an upper bound on the dimension of Hom(kind, V modulo the functions on which the columns vanish).

    A map is determined by f, the image of the first basis vector; the relations of the others, applied to f, must
    vanish on the columns. Relations modulo the prime are counted until `target` dimensions are left.
    """
    # `maps[i]` is the map of states by which f becomes the image of basis vector i: f composed with it.
    maps = [list(range(machine.n))]
    for parent, a in kind.path:
        maps.append([maps[parent][s] for s in machine.delta[a]])
    small = [[[(j, residue(x)) for j, x in row.items()] for row in letter] for letter in kind.letters]
    rng, span, tree = random.Random(0), Span(), set(kind.path)
    # A random combination y of the columns tests all of them at once; each round adds equations for f to the span.
    for _ in range(len(columns)):
        y = [0] * (machine.n - 1)
        spend(machine.n * len(columns))
        for column in columns:
            c = rng.randrange(PRIME)
            y = [(x + c * z) % PRIME for x, z in zip(y, column, strict=True)]
        # With the entries adding up to 0, y is a functional on functions modulo constants.
        y = [-sum(y), *y]
        pushed = [_pushed(image, y) for image in maps]
        for a, step in enumerate(machine.delta):
            for i, image in enumerate(maps):
                # Along the tree the relation defines the image of a basis vector, so there is nothing to check.
                if (i, a) in tree:
                    continue
                vector = _pushed([image[s] for s in step], y)
                spend(machine.n * len(small[a][i]))
                for j, x in small[a][i]:
                    vector = [v - x * z for v, z in zip(vector, pushed[j], strict=True)]
                span.add([v % PRIME for v in vector])
                # Each independent equation lowers the dimension by one; fewer equations can only give a larger, valid
                # bound.
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
