"""Check that modules are irreducible, and the fields of the maps that commute with their letters (T32)."""

from __future__ import annotations

from typing import Any, NamedTuple

from .certificate_fields import as_list, fields, rationals, require
from .checked_machine import CheckedMachine
from .module_algebra import Letter, check_norton, read_element, times
from .polynomials import check_irreducible, real_roots


class CheckedKind(NamedTuple):
    """An irreducible module; `path` has the origin of each basis vector except the first, (earlier vector, letter)."""

    letters: list[Letter]
    path: list[tuple[int, int]]
    commutant: int  # the dimension of the field of maps that commute with the letters
    weight: int  # the least dimension of a constituent over the field of the blocks


def check_kind(value: Any, machine: CheckedMachine, field: str) -> CheckedKind:
    """Return a module and its data; raise `RejectedCertificate` unless it is proved to be irreducible."""
    names = ("letters", "path", "element", "covector", "polynomial", "irreducible", "generator")
    tables, steps, element, covector, polynomial, reason, generator = fields(value, *names)
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
    require(d % k == 0, f"{d} dimensions are no space over what commutes")
    check_norton(letters, read_element(element, machine), first, rationals(covector, d), k)
    # Over ℂ the module splits into k conjugates; over ℝ they come in pairs unless the polynomial has a real root.
    parts = {"Q": k, "R": 1 if field == "R" and real_roots(polynomial) else 2, "C": 1}[field]
    return CheckedKind(letters, path, k, d // k * parts)


def _endomorphism(row: Any, letters: list[Letter], path: list[tuple[int, int]]) -> Letter:
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
