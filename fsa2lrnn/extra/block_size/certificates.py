"""Lower bounds as certificates that `recheck` accepts: what no smaller block can tell apart, and why (T31 to T33)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import fmpq_mat  # pyright: ignore[reportMissingTypeStubs]

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.block_size.chain import SubmoduleChain
from fsa2lrnn.extra.block_size.commutant import Commutant
from fsa2lrnn.extra.block_size.kinds import ModuleKind
from fsa2lrnn.extra.block_size.late import LateCopy
from fsa2lrnn.extra.block_size.polynomials import Polynomial, why_irreducible
from fsa2lrnn.families import linear
from fsa2lrnn.families.modules import Element, Word
from fsa2lrnn.families.verdicts import certificate_header


def chain_certificate(
    machine: MooreMachine, field: str, size: int, kinds: Sequence[ModuleKind], found: SubmoduleChain
) -> dict[str, Any] | None:
    """That no layer of blocks of the size or less represents the machine; None if U_size does tell all states apart.

    None too where the polynomial of a field is too large for the proofs of irreducibility that `recheck` reads.
    """
    states = found.merged(size) if size < len(found.sizes) else None
    if states is None or any(why_irreducible(kind.commutant.polynomial) is None for kind in kinds):
        return None
    return {
        **certificate_header(machine, f"block({size})", "impossible"),
        "field": field,
        "states": list(states),
        "kinds": [kind_to_json(kind) for kind in kinds],
        **_copies(machine, found, _late_copies(kinds, found, field, size)),
    }


def _late_copies(kinds: Sequence[ModuleKind], found: SubmoduleChain, field: str, size: int) -> set[int]:
    """The copies that some level c ≤ size lacks although they stand on U_j, j = c less the weight of their kind."""
    late: set[int] = set()
    for number, copy in enumerate(found.copies):
        start = sum(other.rows.nrows() for other in found.copies[:number])
        weight = kinds[copy.kind].weight(field)
        if any(copy.base <= found.sizes[c - weight] <= start for c in range(weight, min(size + 1, copy.level))):
            late.add(number)
    return late


def simple_certificate(
    machine: MooreMachine, element: Element, function: fmpq_mat, covector: fmpq_mat
) -> dict[str, Any]:
    """That only all n − 1 dimensions will do, over every field, for a machine of at least three states."""
    return {
        **certificate_header(machine, f"block({machine.n_states - 2})", "impossible"),
        "field": "C",
        "element": _words(element),
        "function": _texts(function)[0],
        "covector": _texts(covector)[0],
    }


def _late(late: LateCopy | None) -> dict[str, Any] | None:
    if late is None:
        return None
    return {
        "element": _words(late.element),
        "function": _integers(late.function)[0],
        "parameters": _integers(late.parameters),
        "moves": [_words(move) for move in late.moves],
    }


def factor_certificate(
    machine: MooreMachine,
    m: int | None,
    kinds: Sequence[ModuleKind],
    forbidden: Sequence[Sequence[Word]],
    found: SubmoduleChain,
) -> dict[str, Any] | None:
    """That m Householder factors do not suffice, or that no number does; None if level 0 tells all states apart.

    Args:
        machine: the minimal machine.
        m: the number, None for any.
        kinds: of all constituents.
        forbidden: for each kind words with which no inner product agrees; none for a kind that has not so many.
        found: copies of the kinds, at level 0 those that qualify.
    """
    states = found.merged(0)
    if states is None or any(why_irreducible(kind.commutant.polynomial) is None for kind in kinds):
        return None
    return {
        **certificate_header(machine, "householder" if m is None else f"householder({m})", "impossible"),
        "states": list(states),
        "kinds": [kind_to_json(kind) for kind in kinds],
        "words": [[list(word) for word in words] for words in forbidden],
        **_copies(machine, found, set()),
    }


def _copies(machine: MooreMachine, found: SubmoduleChain, late: set[int]) -> dict[str, Any]:
    rows = linear.stack((copy.rows for copy in found.copies), machine.n_states - 1)
    return {
        "copies": [
            {
                "kind": copy.kind,
                "base": copy.base,
                "level": copy.level,
                "rows": _integers(copy.rows),
                "late": _late(copy.late) if number in late else None,
            }
            for number, copy in enumerate(found.copies)
        ],
        "inverse": _integers(linear.together_primitive(rows.inv())),
    }


def kind_to_json(kind: ModuleKind) -> dict[str, Any]:
    """A kind with what proves it irreducible and tells its constituents."""
    return {
        "letters": [_texts(letter) for letter in kind.standard.module.letters],
        "path": [list(step) for step in kind.standard.path[1:]],
        "element": _words(kind.standard.element),
        "covector": _texts(kind.covector)[0],
        "commutant": _commutant(kind.commutant),
    }


def irreducible_to_json(polynomial: Polynomial) -> list[Any]:
    """The reason that `recheck` wants."""
    reason = why_irreducible(polynomial)
    if reason is None:
        raise ValueError(f"no short proof that {polynomial} is irreducible: take another generator of the field")
    return list(reason)


def _commutant(commutant: Commutant) -> dict[str, Any]:
    squares = () if commutant.squares is None else commutant.squares
    return {
        "polynomial": list(commutant.polynomial),
        "irreducible": irreducible_to_json(commutant.polynomial),
        "generator": _texts(commutant.generator)[0],
        "pair": [_texts(row)[0] for row in commutant.pair or ()],
        "squares": [[text(c) for c in square] for square in squares],
        "prime": commutant.prime,
    }


def _words(element: Element) -> list[list[Any]]:
    return [[coefficient, list(word)] for coefficient, word in element]


def text(number: object) -> int | str:
    """An integer as such, another rational as text."""
    text = str(number)
    return text if "/" in text else int(text)


def _texts(matrix: fmpq_mat) -> list[list[int | str]]:
    return [[text(entry) for entry in row] for row in matrix.tolist()]


def _integers(matrix: fmpq_mat) -> list[list[int]]:
    return [[int(entry) for entry in row] for row in matrix.numer_denom()[0].tolist()]
