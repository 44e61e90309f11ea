"""The independent checker of certificates: `python recheck.py certificate.json`. Standard library only, no search.

It shares no code with what finds certificates, so that a third party can read this one file and trust the answer. What
it relies on is docs/theory.md §4:

*impossible*   In the family, some pairs of words (u, u') must have equal linear parts, A_u = A_u' (`_must_agree`). Then
    x_{su} − x_{tu} = x_{su'} − x_{tu'} for all states s, t, and the same after any further word w. The certificate is
    a combination of such equations that adds up to x_p = x_q, for two states that a word tells apart.
*representable*   Functions f of the state with f(δ(q,a)) = χ(a) f(q) + v(a), one a lane, or vectors x_q with
    x_{δ(q,a)} = A x_q + v(a); together they tell all states apart. χ(a) is 0 or a root of unity, a power of
    ζ = exp(2πi/m); numbers are polynomials in ζ modulo the m-th cyclotomic polynomial.

    Liquid-S4 gives A, B and x_q with x_{δ(q,a)} = (A + diag(B_a)) x_q + B_a; Householder products give the keys k of
    their factors I − k kᵀ, applied in order to unit vectors.

Words are lists of [letter number, repetitions].
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Word = Sequence[Sequence[int]]

FORM = ("fsa2lrnn-certificate", 1)
MAX_ORDER = 5_000  # of a root of unity: as far as certificates are made, and this file is quick

# Which words must have equal linear parts, and which multipliers a lane may have: (rearranged letters or only equal
# length, power k with A_a^k = A_a for a letter or "cycle", largest order of χ(a), one χ for all letters).
FAMILIES: dict[str, tuple[str, int | str | None, int | None, bool]] = {
    "lti": ("length", None, None, True),
    "lti-diagonalisable": ("length", "cycle", None, True),
    "diagonal[0,1]": ("letters", 2, 1, False),
    "diagonal[-1,1]": ("letters", 3, 2, False),
    "diagonal-complex": ("letters", "cycle", None, False),
}
# Families that have witnesses, and no certificates of impossibility of their own.
LIQUID = ("liquid-s4-diagonal", "liquid-s4")
HOUSEHOLDER = "householder"


class Rejected(ValueError):
    """The certificate does not prove what it says; the message names the first thing that is wrong."""


def recheck(certificate: dict[str, Any]) -> str:
    """What the certificate proves, in one line. Raises `Rejected` if it proves nothing."""
    try:
        return _recheck(certificate)
    except Rejected:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as fault:
        raise Rejected(f"the certificate is malformed ({type(fault).__name__}: {fault})") from None


def _recheck(certificate: dict[str, Any]) -> str:
    form = certificate["format"], certificate["version"]
    _require(form == FORM, f"{form[0]!r}, version {form[1]!r}, is no certificate that this file can read")
    machine, family = certificate["machine"], certificate["family"]
    delta, outputs = machine["delta"], machine["outputs"]
    n = len(outputs)
    _require(n > 0 and len(delta) == len(machine["alphabet"]) > 0, "the machine has no states or no letters")
    _require(all(len(row) == n and all(0 <= q < n for q in row) for row in delta), "delta is no complete table")
    _require(json.loads(json.dumps(outputs)) == outputs, "an output is not equal to itself")
    _require(0 <= machine["start"] < n, "the start is no state")
    _require(_all_reachable(delta, machine["start"]), "some state can't be reached, so it need not have a vector")
    _require(family in (*FAMILIES, *LIQUID, HOUSEHOLDER), f"family {family!r} is not known")
    if certificate["verdict"] == "impossible":
        forced = "diagonal-complex" if family == "liquid-s4-diagonal" else family  # A + diag(Bu) is diagonal
        _require(forced in (*FAMILIES, "liquid-s4"), f"no certificate of impossibility is known for {family}")
        _check_impossible(certificate, delta, outputs, forced)
        p, q = certificate["states"]
        return f"impossible: no {family} layer represents this machine, states {p} and {q} would share one vector"
    _require(certificate["verdict"] == "representable", f"verdict {certificate['verdict']!r} is not known")
    dimension = _check_representable(certificate, delta, n, family)
    plural = "" if dimension == 1 else "s"
    return f"representable: one {family} layer of {dimension} dimension{plural} represents this machine"


def _check_impossible(certificate: dict[str, Any], delta: list[list[int]], outputs: list[Any], family: str) -> None:
    p, q = certificate["states"]
    _require(min(p, q) >= 0, "a state is negative")
    separator = _map(certificate["separator"], delta)
    _require(p != q and outputs[separator[p]] != outputs[separator[q]], f"the separator does not tell {p} from {q}")
    total = [Fraction(0)] * len(outputs)
    for term in certificate["terms"]:
        signed = _cancelling(term["words"], delta, family)
        _require(min(term["from"], term["to"]) >= 0, "a state is negative")
        after, coefficient = _map(term["then"], delta), _numbers([term["coefficient"]])[0]
        for word, sign in signed:
            image = _map(word, delta)
            total[after[image[term["from"]]]] += sign * coefficient
            total[after[image[term["to"]]]] -= sign * coefficient
    total[p] -= 1
    total[q] += 1
    _require(not any(total), f"the terms do not add up to x_{p} − x_{q}")


def _cancelling(words: Sequence[Word], delta: list[list[int]], family: str) -> list[tuple[Word, int]]:
    """The words with signs with which their linear parts add up to zero in every layer of the family."""
    if family == "liquid-s4":  # the differences A_a - A_c and A_b - A_c are diagonal, so they commute
        b, a, c = words[0][0][0], words[0][1][0], words[1][0][0]
        pairs = ((b, a), (c, a), (b, c), (a, b), (c, b), (a, c))
        commutator = [[[first, 1], [second, 1]] for first, second in pairs]
        _require([[list(run) for run in word] for word in words] == commutator, f"{words} is no commutator")
        return list(zip(words, (1, -1, -1, -1, 1, 1), strict=True))
    u, other = words
    _require(_must_agree(u, other, delta, family), f"the words {u} and {other} may differ in the family {family}")
    return [(u, 1), (other, -1)]


def _must_agree(u: Word, other: Word, delta: list[list[int]], family: str) -> bool:
    """Whether A_u = A_other in every layer of the family that represents the machine."""
    kind, power, _, _ = FAMILIES[family]
    letters, others = _counts(u), _counts(other)
    if (sum(letters.values()) == sum(others.values())) if kind == "length" else letters == others:
        return True
    if power is None or len(letters) != 1 or list(letters) != list(others):
        return False
    ((a, high),), low = letters.items(), sum(others.values())
    if low != 1:
        return False
    if power != "cycle":  # χ² = χ for entries in [0,1], χ³ = χ in [−1,1]: eigenvalues of a map are 0 or roots of unity
        return high == power
    n = len(delta[a])  # high − 1 is a multiple of all cycle lengths of a, so χ^high = χ for χ = 0 and for its roots
    return _map([[a, n + high - 1]], delta) == _map([[a, n]], delta)


def _check_representable(certificate: dict[str, Any], delta: list[list[int]], n: int, family: str) -> int:
    if family in LIQUID:
        return _check_liquid(certificate, delta, n, family)
    if family == HOUSEHOLDER:
        return _check_householder(certificate, delta, n)
    if "matrix" in certificate:
        _require(family == "lti", "a matrix is a witness for the family lti only")
        return _check_matrix(certificate, delta, n)
    _, _, largest, is_input_independent = FAMILIES[family]
    seen: list[tuple[Any, ...]] = [()] * n
    for lane in certificate["lanes"]:
        order, exponents = lane["order"], lane["exponents"]
        modulus = _cyclotomic(order)
        _require(largest is None or order <= largest, f"a multiplier of order {order} is outside the family {family}")
        _require(not is_input_independent or len(set(exponents)) == 1, "the multiplier depends on the letter")
        values = [_reduced(_numbers(value), modulus) for value in lane["values"]]
        _require(len(values) == n and len(exponents) == len(delta), "a lane has values for other states or letters")
        for a, row in enumerate(delta):
            shift = _reduced(_numbers(lane["shifts"][a]), modulus)
            for q, target in enumerate(row):
                turned = [] if exponents[a] is None else [Fraction(0)] * (exponents[a] % order) + values[q]
                _require(
                    _reduced(_sum(turned, shift), modulus) == values[target],
                    f"a lane does not follow state {q} under letter {a}",
                )
        seen = [(*codes, tuple(value)) for codes, value in zip(seen, values, strict=True)]
    _require(len(set(seen)) == n, "two states have the same vector")
    return sum(1 if lane["order"] <= 2 else 2 for lane in certificate["lanes"])


def _check_matrix(certificate: dict[str, Any], delta: list[list[int]], n: int) -> int:
    A = [_numbers(row) for row in certificate["matrix"]]
    x = [_numbers(row) for row in certificate["vectors"]]
    _require(len(x) == n and len({tuple(vector) for vector in x}) == n, "two states have the same vector")
    for a, row in enumerate(delta):
        v = _numbers(certificate["shifts"][a])
        for q, target in enumerate(row):
            moved = [sum((c * y for c, y in zip(line, x[q], strict=True)), w) for line, w in zip(A, v, strict=True)]
            _require(moved == x[target], f"A x + v does not lead from state {q} under letter {a} to state {target}")
    return len(A)


def _check_liquid(certificate: dict[str, Any], delta: list[list[int]], n: int, family: str) -> int:
    A = [_numbers(row) for row in certificate["A"]]
    x = [_numbers(row) for row in certificate["vectors"]]
    d = len(A)
    is_diagonal = all(not A[i][j] for i in range(d) for j in range(d) if i != j)
    _require(is_diagonal or family == "liquid-s4", "A is not diagonal")
    _require(len(x) == n and len({tuple(vector) for vector in x}) == n, "two states have the same vector")
    for a, row in enumerate(delta):
        b = _numbers(certificate["B"][a])
        for q, target in enumerate(row):
            moved = [sum((c * y for c, y in zip(A[i], x[q], strict=True)), b[i] * x[q][i] + b[i]) for i in range(d)]
            _require(moved == x[target], f"the layer does not lead from state {q} under letter {a} to state {target}")
    return d


def _check_householder(certificate: dict[str, Any], delta: list[list[int]], n: int) -> int:
    for a, row in enumerate(delta):
        shift = _numbers(certificate["shifts"][a])
        for q, target in enumerate(row):
            x = [int(i == q) for i in range(n)]
            for key in map(_numbers, certificate["keys"][a]):
                _require(sum(k * k for k in key) <= 2, "a key is longer than √2: its factor would expand")
                along = sum(k * y for k, y in zip(key, x, strict=True))
                x = [y - along * k for k, y in zip(key, x, strict=True)]
            reached = [y + v for y, v in zip(x, shift, strict=True)]
            wanted = [int(i == target) for i in range(n)]
            _require(reached == wanted, f"the factors of letter {a} do not lead from state {q} to state {target}")
    return n


def _map(word: Word, delta: list[list[int]]) -> list[int]:
    """δ(·, word) as a list; repetitions by squaring, since they can be astronomical."""
    image = list(range(len(delta[0])))
    for a, repetitions in word:
        power, k = delta[a], repetitions
        _require(k >= 0, "a word repeats a letter a negative number of times")
        while k:
            if k & 1:
                image = [power[q] for q in image]
            power, k = [power[q] for q in power], k >> 1
    return image


def _counts(word: Word) -> dict[int, int]:
    counts: dict[int, int] = {}
    for a, repetitions in word:
        counts[a] = counts.get(a, 0) + repetitions
    return {a: count for a, count in sorted(counts.items()) if count}


def _all_reachable(delta: list[list[int]], start: int) -> bool:
    seen, stack = {start}, [start]
    while stack:
        q = stack.pop()
        new = {row[q] for row in delta} - seen
        seen |= new
        stack += new
    return len(seen) == len(delta[0])


def _cyclotomic(m: int) -> list[int]:
    """The m-th cyclotomic polynomial, constant term first: x^m − 1 divided by those of the proper divisors of m."""
    _require(1 <= m <= MAX_ORDER, f"{m} is no order of a root of unity, or beyond {MAX_ORDER}")
    polynomial = [-1] + [0] * (m - 1) + [1]
    for d in range(1, m):
        if m % d == 0:
            polynomial = _quotient(polynomial, _cyclotomic(d))
    return polynomial


def _quotient(dividend: list[int], monic: list[int]) -> list[int]:
    rest, quotient = list(dividend), [0] * (len(dividend) - len(monic) + 1)
    for i in range(len(quotient) - 1, -1, -1):
        quotient[i] = rest[i + len(monic) - 1]
        for j, coefficient in enumerate(monic):
            rest[i + j] -= quotient[i] * coefficient
    return quotient


def _reduced(polynomial: list[Fraction], monic: list[int]) -> list[Fraction]:
    degree = len(monic) - 1
    rest = polynomial + [Fraction(0)] * (degree - len(polynomial))
    for i in range(len(rest) - 1, degree - 1, -1):
        top = rest[i]
        if top:
            for j, coefficient in enumerate(monic):
                rest[i - degree + j] -= top * coefficient
    return rest[:degree]


def _sum(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    size = max(len(a), len(b))
    longer = [*a, *[Fraction(0)] * (size - len(a))], [*b, *[Fraction(0)] * (size - len(b))]
    return [x + y for x, y in zip(*longer, strict=True)]


def _numbers(texts: Sequence[str | int]) -> list[Fraction]:
    """Rationals; integers stay int, whose arithmetic is a hundred times faster and the same."""
    _require(all(type(text) in (int, str) for text in texts), "a number is neither an integer nor a text such as 2/3")
    return [Fraction(text) if "/" in str(text) else int(text) for text in texts]  # type: ignore[misc]


def _require(condition: bool, fault: str) -> None:
    if not condition:
        raise Rejected(fault)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - this file stands alone
        try:
            print(recheck(json.load(file)))
        except ValueError as fault:  # of the check, or of JSON
            sys.exit(f"rejected: {fault}")
