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
    their factors I − k kᵀ, integers, applied in order to unit vectors.

Both speak of a minimal machine with all states reachable (§4): this file looks itself. Words are lists of [letter
number, repetitions]; a certificate has the fields that are read here, and no others.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Hashable
from fractions import Fraction
from typing import Any, NamedTuple

Word = list[list[int]]

# The second is of files from before certificates of horizons had a format of their own.
FORMS = (("fsa2lrnn-family-certificate", 1), ("fsa2lrnn-certificate", 1))
MAX_ORDER = 5_000  # of a root of unity: as far as certificates are made, and this file is quick
MAX_BITS = 10_000  # of the least common denominator of numbers that are added up

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

_HEADER = ("format", "version", "family", "verdict", "machine")


class Rejected(ValueError):
    """The certificate does not prove what it says; the message names the first thing that is wrong."""


class Machine(NamedTuple):
    """A minimal machine: delta[a][q], outputs[q]."""

    delta: list[list[int]]
    outputs: list[Hashable]

    @property
    def n(self) -> int:
        return len(self.outputs)


def recheck(certificate: dict[str, Any]) -> str:
    """What the certificate proves, in one line. Raises `Rejected` if it proves nothing."""
    try:
        return _recheck(certificate)
    except Rejected:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as fault:
        raise Rejected(f"the certificate is malformed ({type(fault).__name__}: {str(fault)[:200]})") from None


def _recheck(certificate: dict[str, Any]) -> str:
    form = certificate["format"], certificate["version"]
    names = f"{str(form[0])[:80]!r}, version {str(form[1])[:80]!r},"
    _require(form in FORMS and type(form[1]) is int, f"{names} is no certificate that this file can read")
    family, verdict = certificate["family"], certificate["verdict"]
    _require(family in (*FAMILIES, *LIQUID, HOUSEHOLDER), f"family {str(family)[:80]!r} is not known")
    machine = _machine(certificate["machine"])
    if verdict == "impossible":
        forced = "diagonal-complex" if family == "liquid-s4-diagonal" else family  # A + diag(Bu) is diagonal
        _require(forced in (*FAMILIES, "liquid-s4"), f"no certificate of impossibility is known for {family}")
        _fields(certificate, *_HEADER, "states", "separator", "terms")
        _check_impossible(certificate, machine, forced)
        p, q = certificate["states"]
        return f"impossible: no {family} layer represents this machine, states {p} and {q} would share one vector"
    _require(verdict == "representable", f"verdict {str(verdict)[:80]!r} is not known")
    dimension = _check_representable(certificate, machine, family)
    size = f"{dimension} dimension{'' if dimension == 1 else 's'}"
    return f"representable: one {family} layer of {size} represents this machine"


def _machine(value: Any) -> Machine:
    """A complete deterministic machine, minimal with all states reachable."""
    alphabet, delta, outputs, start = _fields(value, "alphabet", "delta", "outputs", "start")
    _require(all(type(part) is list for part in (alphabet, delta, outputs)), "alphabet, delta, outputs are lists")
    n = len(outputs)
    _require(n > 0 and len(delta) == len(alphabet) > 0, "the machine has no states or no letters")
    _require(len({_symbol(letter) for letter in alphabet}) == len(alphabet), "a letter stands twice in the alphabet")
    _require(all(len(_list(row)) == n for row in delta), "delta is no complete table")
    _require(all(type(q) is int and 0 <= q < n for row in delta for q in row), "delta is no complete table")
    _require(type(start) is int and 0 <= start < n, "the start is no state")
    _require(_all_reachable(delta, start), "some state can't be reached, so it need not have a vector")
    machine = Machine(delta, [_symbol(output) for output in outputs])
    alike = next((block for block in _blocks(machine) if len(block) > 1), None)
    _require(alike is None, f"the machine is not minimal: states {sorted(alike or ())[:8]} are equivalent")
    return machine


def _symbol(value: Any) -> Any:
    """A letter or an output as an object whose equality is the symbols'."""
    if type(value) is dict and len(value) == 1:
        ((tag, items),) = value.items()
        if tag in ("tuple", "frozenset") and type(items) is list:
            return (tuple if tag == "tuple" else frozenset)(_symbol(item) for item in items)
    _require(value is None or type(value) in (str, int, float, bool), "a letter or output is no symbol")
    _require(value == value, "an output is not equal to itself")
    return value


def _all_reachable(delta: list[list[int]], start: int) -> bool:
    seen, stack = {start}, [start]
    while stack:
        q = stack.pop()
        new = {row[q] for row in delta} - seen
        seen |= new
        stack += new
    return len(seen) == len(delta[0])


def _blocks(machine: Machine) -> list[set[int]]:
    """The states in sets of equivalent ones, by Hopcroft's algorithm."""
    before: list[list[list[int]]] = [[[] for _ in machine.outputs] for _ in machine.delta]
    for row, sources in zip(machine.delta, before, strict=True):
        for q, target in enumerate(row):
            sources[target].append(q)
    by_output: dict[Hashable, set[int]] = {}
    for q, output in enumerate(machine.outputs):
        by_output.setdefault(output, set()).add(q)
    blocks = list(by_output.values())
    block_of = {q: i for i, block in enumerate(blocks) for q in block}
    waiting = set(range(len(blocks)))
    while waiting:
        splitter = list(blocks[waiting.pop()])
        for sources in before:
            touched: dict[int, set[int]] = {}
            for p in (p for q in splitter for p in sources[q]):
                touched.setdefault(block_of[p], set()).add(p)
            for i, part in touched.items():
                if len(part) == len(blocks[i]):
                    continue
                blocks[i] -= part
                blocks.append(part)
                block_of.update(dict.fromkeys(part, len(blocks) - 1))
                waiting.add(len(blocks) - 1 if i in waiting or len(part) <= len(blocks[i]) else i)
    return blocks


def _check_impossible(certificate: dict[str, Any], machine: Machine, family: str) -> None:
    p, q = _states(certificate["states"], machine)
    separator = _word(certificate["separator"], machine)
    told_apart = machine.outputs[_after(p, separator, machine)] != machine.outputs[_after(q, separator, machine)]
    _require(told_apart, f"the separator does not tell {p} from {q}")
    terms = [_fields(term, "coefficient", "from", "to", "words", "then") for term in _list(certificate["terms"])]
    scale, coefficients = _integers([term[0] for term in terms])
    total = [0] * machine.n
    for (_, source, target, words, then), coefficient in zip(terms, coefficients, strict=True):
        source, target = _states([source, target], machine)
        then = _word(then, machine)
        for word, sign in _cancelling([_word(word, machine) for word in _list(words)], machine, family):
            total[_after(_after(source, word, machine), then, machine)] += sign * coefficient
            total[_after(_after(target, word, machine), then, machine)] -= sign * coefficient
    total[p] -= scale
    total[q] += scale
    _require(not any(total), f"the terms do not add up to x_{p} − x_{q}")


def _cancelling(words: list[Word], machine: Machine, family: str) -> list[tuple[Word, int]]:
    """The words with signs with which their linear parts add up to zero in every layer of the family."""
    if family == "liquid-s4":  # the differences A_a - A_c and A_b - A_c are diagonal, so they commute
        b, a, c = words[0][0][0], words[0][1][0], words[1][0][0]
        pairs = ((b, a), (c, a), (b, c), (a, b), (c, b), (a, c))
        commutator = [[[first, 1], [second, 1]] for first, second in pairs]
        _require(words == commutator, f"{words} is no commutator")
        return list(zip(words, (1, -1, -1, -1, 1, 1), strict=True))
    u, other = words
    _require(_must_agree(u, other, machine, family), f"the words {u} and {other} may differ in the family {family}")
    return [(u, 1), (other, -1)]


def _must_agree(u: Word, other: Word, machine: Machine, family: str) -> bool:
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
    # high − 1 is a multiple of all cycle lengths of a, so χ^high = χ for χ = 0 and for its roots; n steps lead to them
    cyclic = {_after(q, [[a, machine.n]], machine) for q in range(machine.n)}
    return all(_after(q, [[a, high - 1]], machine) == q for q in cyclic)


def _check_representable(certificate: dict[str, Any], machine: Machine, family: str) -> int:
    if family in LIQUID or "matrix" in certificate:
        return _check_affine(certificate, machine, family)
    if family == HOUSEHOLDER:
        return _check_householder(certificate, machine)
    _fields(certificate, *_HEADER, "lanes")
    lanes = _list(certificate["lanes"])
    codes = zip(*(_check_lane(lane, machine, family) for lane in lanes), strict=True) if lanes else [()]
    _require(len(set(codes)) == machine.n, "two states have the same vector")
    return sum(1 if lane["order"] <= 2 else 2 for lane in lanes)


def _check_lane(lane: Any, machine: Machine, family: str) -> list[tuple[Any, ...]]:
    """The numbers of the states, as coefficients of powers of ζ, after the check that letters move them so."""
    order, exponents, values, shifts = _fields(lane, "order", "exponents", "values", "shifts")
    _, _, largest, is_input_independent = FAMILIES[family]
    _require(type(order) is int and 1 <= order <= MAX_ORDER, f"{order} is no order of a root of unity, or beyond 5000")
    _require(largest is None or order <= largest, f"a multiplier of order {order} is outside the family {family}")
    _require(all(power is None or type(power) is int for power in _list(exponents)), "an exponent is no integer")
    _require(not is_input_independent or len(set(exponents)) == 1, "the multiplier depends on the letter")
    rows = [_list(row) for row in (*_list(values), *_list(shifts))]
    is_whole = len(values) == machine.n and len(shifts) == len(exponents) == len(machine.delta)
    _require(is_whole, "a lane has values for other states or letters")
    primes = [p for p in range(2, order + 1) if order % p == 0 and all(p % d for d in range(2, p))]
    degree = order * math.prod(p - 1 for p in primes) // math.prod(primes)
    _require(all(len(row) <= degree for row in rows), f"a number has more than φ({order}) = {degree} coefficients")
    _, numbers = _integers([text for row in rows for text in row])
    rest = iter(numbers)
    f, v = [[{i: x for i in range(len(row)) if (x := next(rest))} for row in part] for part in (values, shifts)]
    for a, row in enumerate(machine.delta):
        for q, target in enumerate(row):
            turn = exponents[a]
            moved = {} if turn is None else {(i + turn) % order: x for i, x in f[q].items()}
            fault = f"a lane does not follow state {q} under letter {a}"
            _require(_is_zero([(moved, 1), (v[a], 1), (f[target], -1)], order, primes), fault)
    return [tuple(sorted(value.items())) for value in f]


def _is_zero(terms: list[tuple[dict[int, int], int]], order: int, primes: list[int]) -> bool:
    """Whether a sum of ± polynomials vanishes at ζ: whether times ∏ (1 − x^(m/p)), p prime, it is zero modulo x^m − 1.

    The roots of the product are the m-th roots of unity that are not primitive, and ζ's conjugates are the others.
    """
    total: dict[int, int] = {}
    for polynomial, sign in terms:
        for i, x in polynomial.items():
            total[i] = total.get(i, 0) + sign * x
    for p in primes:
        found = {i: x for i, x in total.items() if x}
        total = dict(found)
        for i, x in found.items():
            j = (i + order // p) % order
            total[j] = total.get(j, 0) - x
    return not any(total.values())


def _check_affine(certificate: dict[str, Any], machine: Machine, family: str) -> int:
    is_liquid = family in LIQUID  # whose letters add diag(B) to A, and B to the state
    names = ("A", "vectors", "B") if is_liquid else ("matrix", "vectors", "shifts")
    _fields(certificate, *_HEADER, *names)
    _require(is_liquid or family == "lti", "a matrix is a witness for the family lti only")
    scale, (A, x, shifts) = _tables(certificate, *names)
    d = len(A)
    _require(len(x) == machine.n and len(shifts) == len(machine.delta), "there are vectors of other states or letters")
    _require(all(len(row) == d for row in (*A, *x, *shifts)), f"a row has not {d} entries, as many as the matrix rows")
    _require(len({tuple(vector) for vector in x}) == machine.n, "two states have the same vector")
    is_diagonal = not any(A[i][j] for i in range(d) for j in range(d) if i != j)
    _require(is_diagonal or family != "liquid-s4-diagonal", "A is not diagonal")
    moved = [[sum(row[j] * y for j, y in enumerate(vector) if y) for row in A] for vector in x]
    for a, row in enumerate(machine.delta):
        for q, target in enumerate(row):
            added = [b * (z * is_liquid + scale) for b, z in zip(shifts[a], x[q], strict=True)]
            reached = [y + b for y, b in zip(moved[q], added, strict=True)]
            fault = f"the layer does not lead from state {q} under letter {a} to state {target}"
            _require(reached == [scale * y for y in x[target]], fault)
    return d


def _check_householder(certificate: dict[str, Any], machine: Machine) -> int:
    (*_, keys, shifts), n = _fields(certificate, *_HEADER, "keys", "shifts"), machine.n
    _require(len(_list(keys)) == len(_list(shifts)) == len(machine.delta), "there are keys and shifts of other letters")
    for a, row in enumerate(machine.delta):
        rows = [*_list(keys[a]), shifts[a]]
        _require(all(len(_list(key)) == n for key in rows), "a key or a shift has other entries than states")
        _require(all(type(k) is int for key in rows for k in key), "a key or a shift is not of integers")
        factors = [[(i, k) for i, k in enumerate(key) if k] for key in keys[a]]
        longest = max((sum(k * k for _, k in key) for key in factors), default=0)
        _require(longest <= 2, "a key is longer than √2: its factor would expand")
        for q, target in enumerate(row):
            x = {q: 1}
            for key in factors:
                along = sum(k * x.get(i, 0) for i, k in key)
                x |= {i: x.get(i, 0) - along * k for i, k in key}
            reached = [x.get(i, 0) + v for i, v in enumerate(shifts[a])]
            fault = f"the factors of letter {a} do not lead from state {q} to state {target}"
            _require(reached == [int(i == target) for i in range(n)], fault)
    return n


def _tables(certificate: dict[str, Any], *names: str) -> tuple[int, list[list[list[int]]]]:
    """Tables of rationals as integers over one denominator, and that."""
    tables = [[_list(row) for row in _list(certificate[name])] for name in names]
    scale, numbers = _integers([text for table in tables for row in table for text in row])
    rest = iter(numbers)
    return scale, [[[next(rest) for _ in row] for row in table] for table in tables]


def _word(value: Any, machine: Machine) -> Word:
    for run in _list(value):
        a, repetitions = _list(run)
        _require(type(a) is int and 0 <= a < len(machine.delta), "a word has a letter that is none of the machine's")
        is_number = type(repetitions) is int and repetitions >= 0
        _require(is_number, "a word repeats a letter a negative number of times, or one that is no integer")
    return value


def _after(q: int, word: Word, machine: Machine) -> int:
    """The state that a word leads to from q; repetitions can be astronomical, so cycles are cut short."""
    for a, repetitions in word:
        row, path, place = machine.delta[a], list[int](), dict[int, int]()
        while len(path) < repetitions and q not in place:
            place[q] = len(path)
            path.append(q)
            q = row[q]
        if (left := repetitions - len(path)) > 0:
            cycle = path[place[q] :]
            q = cycle[left % len(cycle)]
    return q


def _counts(word: Word) -> dict[int, int]:
    counts: dict[int, int] = {}
    for a, repetitions in word:
        counts[a] = counts.get(a, 0) + repetitions
    return {a: count for a, count in sorted(counts.items()) if count}


def _states(value: Any, machine: Machine) -> tuple[int, int]:
    p, q = _list(value)
    _require(all(type(s) is int and 0 <= s < machine.n for s in (p, q)), "a state is none of the machine's")
    return p, q


def _integers(texts: list[Any]) -> tuple[int, list[int]]:
    """Rationals as integers over their least common denominator, and that."""
    _require(all(type(text) in (int, str) for text in texts), "a number is neither an integer nor a text such as 2/3")
    numbers = [Fraction(text) if "/" in str(text) else int(text) for text in texts]
    scale = 1
    for denominator in {number.denominator for number in numbers}:
        scale = math.lcm(scale, denominator)
        _require(scale.bit_length() <= MAX_BITS, f"a common denominator has more than {MAX_BITS} bits")
    return scale, [number.numerator * (scale // number.denominator) for number in numbers]


def _fields(value: Any, *names: str) -> list[Any]:
    _require(type(value) is dict, f"an object of {', '.join(names)} is no object")
    odd = min(map(str, set(names) ^ set(value)), default=None)
    _require(odd is None, f"{str(odd)[:80]!r} is missing or too many: expected are {', '.join(names)}")
    return [value[name] for name in names]


def _list(value: Any) -> list[Any]:
    _require(type(value) is list, "something is no list")
    return value


def _require(condition: bool, fault: str) -> None:
    if not condition:
        raise Rejected(fault)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _require(len(dict(pairs)) == len(pairs), "a field stands twice in one object")
    return dict(pairs)


def main(arguments: list[str]) -> str:
    """What the certificate in a file proves. Raises `SystemExit` with the reason if it proves nothing."""
    if len(arguments) != 1:
        sys.exit("usage: python recheck.py certificate.json")
    try:
        with open(arguments[0], encoding="utf-8") as file:  # noqa: PTH123 - this file stands alone
            return recheck(json.load(file, object_pairs_hook=_object))
    except (OSError, RecursionError, ValueError) as fault:  # of the file, of JSON, or of the check
        sys.exit(f"rejected: {fault}")


if __name__ == "__main__":
    print(main(sys.argv[1:]))
