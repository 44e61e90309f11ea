"""Write lower bounds as certificates for `recheck`: two states that no smaller block separates (T31 to T33)."""

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
    machine: MooreMachine, field: str, size: int, kinds: Sequence[ModuleKind], chain: SubmoduleChain
) -> dict[str, Any] | None:
    """Return a certificate that no layer of blocks of at most this size represents the machine (T31), or None.

    The result is None if U_size separates all states, or if the polynomial of a commutant has no irreducibility proof
    that `recheck` reads (T33).
    """
    states = chain.merged(size) if size < len(chain.sizes) else None
    if states is None or any(why_irreducible(kind.commutant.polynomial) is None for kind in kinds):
        return None
    return {
        **certificate_header(machine, f"block({size})", "impossible"),
        "field": field,
        "states": list(states),
        "kinds": [kind_to_json(kind) for kind in kinds],
        **_copies(machine, chain, _late_copies(kinds, chain, field, size)),
    }


def _late_copies(kinds: Sequence[ModuleKind], chain: SubmoduleChain, field: str, size: int) -> set[int]:
    """Return the numbers of the copies that enter the chain later than T31 (i) implies, in the part up to U_size."""
    late: set[int] = set()
    for number, copy in enumerate(chain.copies):
        start = sum(other.rows.nrows() for other in chain.copies[:number])
        weight = kinds[copy.kind].weight(field)
        if any(copy.base <= chain.sizes[c - weight] <= start for c in range(weight, min(size + 1, copy.level))):
            late.add(number)
    return late


def simple_certificate(
    machine: MooreMachine, element: Element, function: fmpq_mat, covector: fmpq_mat
) -> dict[str, Any]:
    """Return a certificate that blocks of size n − 1 are necessary over Q, R and C, for n ≥ 3 states (T32)."""
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
    chain: SubmoduleChain,
) -> dict[str, Any] | None:
    """Return a certificate that m Householder factors per letter do not suffice (T36), or None if they may.

    Args:
        machine: the minimal machine.
        m: the number of factors, None for any number.
        kinds: the kinds of all constituents of V.
        forbidden: for each kind, words that exclude every inner product of T36 (b), () if none are known.
        chain: V as copies of kinds; those at level 0 span all functions that m factors can represent.
    """
    states = chain.merged(0)
    if states is None or any(why_irreducible(kind.commutant.polynomial) is None for kind in kinds):
        return None
    return {
        **certificate_header(machine, "householder" if m is None else f"householder({m})", "impossible"),
        "states": list(states),
        "kinds": [kind_to_json(kind) for kind in kinds],
        "words": [[list(word) for word in words] for words in forbidden],
        **_copies(machine, chain, set()),
    }


def _copies(machine: MooreMachine, chain: SubmoduleChain, late: set[int]) -> dict[str, Any]:
    rows = linear.stack((copy.rows for copy in chain.copies), machine.n_states - 1)
    return {
        "copies": [
            {
                "kind": copy.kind,
                "base": copy.base,
                "level": copy.level,
                "rows": _integers(copy.rows),
                "late": _late(copy.late) if number in late else None,
            }
            for number, copy in enumerate(chain.copies)
        ],
        "inverse": _integers(linear.together_primitive(rows.inv())),
    }


def kind_to_json(kind: ModuleKind) -> dict[str, Any]:
    """Return a kind as JSON, with the data that prove it irreducible and determine how it splits (T32)."""
    return {
        "letters": [_texts(letter) for letter in kind.standard.module.letters],
        "path": [list(step) for step in kind.standard.path[1:]],
        "element": _words(kind.standard.element),
        "covector": _texts(kind.covector)[0],
        "commutant": _commutant(kind.commutant),
    }


def irreducible_to_json(polynomial: Polynomial) -> list[Any]:
    """Return the proof that a polynomial is irreducible, as JSON for `recheck`. Raises `ValueError` without a proof."""
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
    """Return a rational number for JSON: an int if it is an integer, otherwise text such as "1/2"."""
    text = str(number)
    return text if "/" in text else int(text)


def _texts(matrix: fmpq_mat) -> list[list[int | str]]:
    return [[text(entry) for entry in row] for row in matrix.tolist()]


def _integers(matrix: fmpq_mat) -> list[list[int]]:
    return [[int(entry) for entry in row] for row in matrix.numer_denom()[0].tolist()]
