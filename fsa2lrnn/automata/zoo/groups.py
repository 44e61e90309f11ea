"""Word problems of finite groups: machines that output the product of the letters of a word.

They separate models by expressive power: the word problem of A₅, the smallest group that is not solvable, is complete
for NC¹ (Barrington 1989), so no model of fixed depth inside TC⁰ is correct on it at every length, unless TC⁰ = NC¹.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

from fsa2lrnn.automata.language import explore
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.zoo.parameters import one_of, within_budget
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat

_FACTOR = re.compile(r"([ZSAD])(\d{1,9})|(Q)8")
_UNITS = "1ijk"


@dataclass(frozen=True)
class _AbstractGroup:
    order: int
    identity: Any
    multiply: Callable[[Any, Any], Any]
    generators: tuple[Any, ...]
    label: Callable[[Any], Any]


def group(spec: str, generators: str = "standard") -> MooreMachine:
    """Return the machine of a group's word problem: after a₁ … a_T it outputs the product a₁·a₂·…·a_T.

    Args:
        spec: a direct product of the factors below, written with x or ×: "Z5", "S4", "Z2xZ3xS3".
        generators: the letters: "standard", the generators below; "all", every element; or, for products of Sn,
            "transpositions", (1,2), (2,3) … (n−1,n), reflections as one factor of a Householder layer represents.

    Letter a maps element q to q·a. The output and the label of a state are its element; in a direct product both are
    a tuple with one entry per factor, and a letter is written with the entries between bars: "1|0|()". Permutations are
    multiplied left to right: in (1,2)·(2,3) the exchange of 1 and 2 comes first.

    | factor | order | elements | standard generators |
    |---|---|---|---|
    | Zn, cyclic, n ≥ 2 | n | integers 0 … n−1, added | 1 |
    | Sn, symmetric, n ≥ 2 | n! | cycles: "()", "(1,2)(3,4)" | (1,2) and (1,2,…,n) |
    | An, alternating, n ≥ 3 | n!/2 | the same | (1,2,k) for k = 3 … n |
    | Dn, dihedral, n ≥ 2 | 2n (D4 has 8) | "1", "r", "r2", "s", "rs", "r2s", with sr = r⁻¹s | r and s |
    | Q8, quaternions | 8 | "1", "-1", "i", "-i" and so on | i and j |

    The machine is minimal, with a state per element, and every letter permutes the states.

    Raises:
        UnsupportedFormat: if `spec` is not a product of these groups, or `generators` is unknown or does not fit it.
        InvalidMachine: if n is too small.
        BudgetExceeded: if the table would have more than 250,000 transitions.

    >>> group("S3").transduce(["(1,2)", "(1,2,3)"])
    ['(1,2)', '(1,3)']
    >>> group("D4").run("r s r s") == group("D4").start
    True
    >>> group("Z2xS3").n_states, group("Z2xS3").alphabet
    (12, ('1|()', '0|(1,2)', '0|(1,2,3)'))
    """
    one_of(("standard", "all", "transpositions"), "group", "generators", generators)
    factors = [_factor(str(part), spec) for part in re.split("[x×]", str(spec))]
    if generators == "transpositions":
        factors = [_by_transpositions(factor, spec) for factor in factors]
    whole = factors[0] if len(factors) == 1 else _direct_product(factors)
    within_budget(f"group({spec})", whole.order, whole.order if generators == "all" else len(whole.generators))
    elements = whole.generators
    if generators == "all":
        elements = explore(elements, whole.identity, whole.multiply, lambda _: None).labels or ()
    by_letter = {_letter(whole.label(a)): a for a in elements}
    machine = explore(
        by_letter, whole.identity, lambda q, letter: whole.multiply(q, by_letter[str(letter)]), whole.label
    )
    return MooreMachine(machine.delta, machine.outputs, machine.start, machine.alphabet, labels=machine.outputs)


def _letter(label: object) -> str:
    return "|".join(map(str, cast("tuple[Any, ...]", label))) if isinstance(label, tuple) else str(label)


def _factor(part: str, spec: str) -> _AbstractGroup:
    """Return the group of one factor of a specification, such as "S3"; raise if it is unknown or trivial."""
    match = _FACTOR.fullmatch(part)
    if match is None:
        raise UnsupportedFormat(
            f"group({spec!r}): {part!r} is not a group of the zoo: write Zn, Sn, An, Dn (of order 2n) or Q8, with n a "
            "number, or a direct product such as Z2xZ3xS3"
        )
    if match[3]:
        return _quaternions()
    kind, n = match[1], int(match[2])
    if n < (least := 3 if kind == "A" else 2):
        raise InvalidMachine(
            f"group({spec!r}): {part} is trivial or not of its kind: {kind}n needs n of at least {least}"
        )
    return {"Z": _cyclic, "S": _symmetric, "A": _alternating, "D": _dihedral}[kind](n)


def _cyclic(n: int) -> _AbstractGroup:
    return _AbstractGroup(n, 0, lambda a, b: (a + b) % n, (1,), int)


def _symmetric(n: int) -> _AbstractGroup:
    identity = tuple(range(min(n, 20)))  # 20! is over every budget, and larger n need no true order
    exchange = (1, 0, *identity[2:])
    turn = (*identity[1:], 0)
    generators = (exchange,) if n == 2 else (exchange, turn)
    return _AbstractGroup(math.factorial(len(identity)), identity, _compose, generators, _cycles)


def _by_transpositions(factor: _AbstractGroup, spec: str) -> _AbstractGroup:
    identity: object = factor.identity
    points = cast("tuple[int, ...]", identity if isinstance(identity, tuple) else ())
    if math.factorial(len(points)) != factor.order:
        raise UnsupportedFormat(
            f"group({spec!r}, transpositions): only symmetric groups are generated by those: S4, S2xS3"
        )
    exchanges = ((*points[:k], k + 1, k, *points[k + 2 :]) for k in range(len(points) - 1))
    return replace(factor, generators=tuple(exchanges))


def _alternating(n: int) -> _AbstractGroup:
    identity = tuple(range(min(n, 20)))
    three_cycles = tuple((1, k, *identity[2:k], 0, *identity[k + 1 :]) for k in range(2, len(identity)))
    return _AbstractGroup(math.factorial(len(identity)) // 2, identity, _compose, three_cycles, _cycles)


def _compose(p: tuple[int, ...], q: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(q[image] for image in p)


def _cycles(p: tuple[int, ...]) -> str:
    """Return a permutation of 0 … n−1 in cycle notation with points from 1, "()" for the identity."""
    text = ""
    seen: set[int] = set()
    for first in range(len(p)):
        cycle: list[str] = []
        point = first
        while point not in seen:
            seen.add(point)
            cycle.append(str(point + 1))
            point = p[point]
        if len(cycle) > 1:
            text += f"({','.join(cycle)})"
    return text or "()"


def _dihedral(n: int) -> _AbstractGroup:
    def multiply(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return (a[0] + (-b[0] if a[1] else b[0])) % n, a[1] ^ b[1]

    def label(a: tuple[int, int]) -> str:
        rotation = {0: "", 1: "r"}.get(a[0], f"r{a[0]}")
        return rotation + "s" * a[1] or "1"

    return _AbstractGroup(2 * n, (0, 0), multiply, ((1, 0), (0, 1)), label)


def _quaternions() -> _AbstractGroup:
    """Return Q8, whose elements are pairs (sign, unit) with units 0 … 3 for 1, i, j, k.

    Units p and q other than 1 multiply to the third, 6 − p − q, with the sign + in the cyclic order i, j, k.
    """

    def multiply(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        (sign, p), (other_sign, q) = a, b
        sign *= other_sign
        if p == 0 or q == 0:
            return sign, p + q
        if p == q:
            return -sign, 0
        third = 6 - p - q
        return (sign if (q - p) % 3 == 1 else -sign), third

    def label(a: tuple[int, int]) -> str:
        return ("-" if a[0] < 0 else "") + _UNITS[a[1]]

    return _AbstractGroup(8, (1, 0), multiply, ((1, 1), (1, 2)), label)


def _direct_product(factors: list[_AbstractGroup]) -> _AbstractGroup:
    """Return the direct product of groups: tuples of elements, generated by the factors' generators at their places."""
    identity = tuple(f.identity for f in factors)

    def multiply(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(f.multiply(x, y) for f, x, y in zip(factors, a, b, strict=True))

    def label(a: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(f.label(x) for f, x in zip(factors, a, strict=True))

    generators = chain.from_iterable(
        ((*identity[:i], g, *identity[i + 1 :]) for g in f.generators) for i, f in enumerate(factors)
    )
    return _AbstractGroup(math.prod(f.order for f in factors), identity, multiply, tuple(generators), label)
