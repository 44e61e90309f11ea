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

*blocks*   A layer of blocks of bounded size over the rational, real or complex numbers. Representable: the functions of
    each block, closed under letters, in a number field where need be. Impossible: the functions of the state modulo
    constants in copies of irreducible modules, each proved to be one, and a count of all further copies (T31 to T33).

Both speak of a minimal machine with all states reachable (§4): this file looks itself. Words are lists of [letter
number, repetitions]; a certificate has the fields that are read here, and no others.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import sys
from collections.abc import Hashable, Iterable
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
BLOCK = re.compile(r"block\(([1-9][0-9]{0,8})\)")
FACTORS = re.compile(r"householder\(([1-9][0-9]{0,8})\)")
FIELDS = {"Q": "rational", "R": "real", "C": "complex"}
PRIME = 2**61 - 1  # a rank modulo it is at most the rank over the rationals

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
    block, factors = (form.fullmatch(str(family)) for form in (BLOCK, FACTORS))
    is_known = block or factors or family in (*FAMILIES, *LIQUID, HOUSEHOLDER)
    _require(bool(is_known), f"family {str(family)[:80]!r} is not known")
    machine = _machine(certificate["machine"])
    if block:
        return _recheck_block(certificate, machine, int(block[1]))
    if factors or (family == HOUSEHOLDER and verdict == "impossible"):
        return _recheck_factors(certificate, machine, int(factors[1]) if factors else None)
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
    sink = certificate.get("sink")  # at zero, where there is one; other states are at unit vectors
    names = ["keys", "shifts", *(name for name in ("sink", "vectors") if name in certificate)]
    _require(len(names) < 4, "states are at unit vectors but for a sink, or where vectors say: not both")
    keys, shifts = _fields(certificate, *_HEADER, *names)[len(_HEADER) :][:2]
    n = machine.n
    _require("sink" not in names or (type(sink) is int and 0 <= sink < n), "the sink is no state")
    if "vectors" in names:
        rows = [_list(vector) for vector in _list(certificate["vectors"])]
        _require(len(rows) == n, "there are vectors of other states")
        d = len(rows[0])
        _require(all(len(vector) == d for vector in rows), "the vectors have unlike lengths")
        _require(all(type(x) is int for vector in rows for x in vector), "a vector is not of integers")
        _require(len({tuple(vector) for vector in rows}) == n, "two states have the same vector")
    else:
        d, rows = n, [[int(i == q != sink) for i in range(n)] for q in range(n)]
    vectors = [{i: x for i, x in enumerate(row) if x} for row in rows]
    _require(len(_list(keys)) == len(_list(shifts)) == len(machine.delta), "there are keys and shifts of other letters")
    for a, row in enumerate(machine.delta):
        written = [*_list(keys[a]), shifts[a]]
        _require(all(len(_list(key)) == d for key in written), "a key or a shift has other entries than states")
        _require(all(type(k) is int for key in written for k in key), "a key or a shift is not of integers")
        factors = [[(i, k) for i, k in enumerate(key) if k] for key in keys[a]]
        longest = max((sum(k * k for _, k in key) for key in factors), default=0)
        _require(longest <= 2, "a key is longer than √2: its factor would expand")
        for q, target in enumerate(row):
            x = dict(vectors[q])
            for key in factors:
                along = sum(k * x.get(i, 0) for i, k in key)
                x |= {i: x.get(i, 0) - along * k for i, k in key}
            reached = [x.get(i, 0) + v for i, v in enumerate(shifts[a])]
            fault = f"the factors of letter {a} do not lead from state {q} to state {target}"
            _require(reached == rows[target], fault)
    return d


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


# Blocks of bounded size. A module is a list of letters, a letter the list of its rows, a row {column: number}; letters
# act on rows from the right. V has the functions of the state modulo constants; row i is 1 at state i + 1 alone.

Row = dict[int, Any]
Letter = list[Row]


class Kind(NamedTuple):
    """An irreducible module, and where each basis vector but the first comes from: (earlier one, letter)."""

    letters: list[Letter]
    path: list[tuple[int, int]]
    commutant: int  # dimension of the maps that commute with the letters
    splits: bool  # whether over the field it splits in one way: its constituents are finitely many conjugates
    weight: int  # the least dimension of a constituent over the field


class Copy(NamedTuple):
    """Functions that move as the rows of a kind do, modulo the first `base` rows of all; they begin at row `start`."""

    kind: int
    base: int
    level: int
    rows: list[list[int]]
    late: Any
    start: int


class Chain(NamedTuple):
    """A basis of V in copies of kinds; the part of a function in row i is its product with column i, up to a factor."""

    kinds: list[Kind]
    copies: list[Copy]
    columns: list[Any]

    def below(self, i: int, u: int) -> int:
        """The copies of kind i among the first u rows."""
        return sum(copy.kind == i and copy.start < u for copy in self.copies)


def _recheck_block(certificate: dict[str, Any], machine: Machine, size: int) -> str:
    field, verdict = certificate["field"], certificate["verdict"]
    _require(field in FIELDS, f"{str(field)[:80]!r} is no field: rational, real and complex are Q, R and C")
    name = f"layer of {FIELDS[field]} blocks of size {size}"
    if verdict == "representable":
        sizes = _check_block_functions(certificate, machine, field)
        _require(max(sizes, default=0) <= size, f"a block has size {max(sizes, default=0)}, more than {size}")
        return f"representable: one {name} represents this machine, by blocks of sizes {', '.join(map(str, sizes))}"
    _require(verdict == "impossible", f"verdict {str(verdict)[:80]!r} is not known")
    return f"impossible: no {name} represents this machine, {_check_smaller(certificate, machine, field, size)}"


def _check_smaller(certificate: dict[str, Any], machine: Machine, field: str, size: int) -> str:
    """That blocks of a size leave two states with one vector; which, in words."""
    if "function" in certificate:
        element, f, u = _fields(certificate, *_HEADER, "field", "element", "function", "covector")[6:]
        letters, d = _functions(machine), machine.n - 1
        _require(size < d, f"blocks of size {size} could hold all {d} functions")
        _check_norton(letters, _element(element, machine), _numbers(f, d), _numbers(u, d), 1)
        return "all functions of the state form a simple module"
    p, q = _check_chain(certificate, machine, field, size)
    return f"states {p} and {q} would share one vector"


def _recheck_factors(certificate: dict[str, Any], machine: Machine, m: int | None) -> str:
    """Householder products of m factors a letter and head, or of any number (T36)."""
    name = f"layer of products of {'Householder' if m is None else f'{m} Householder'} factors a letter"
    if certificate["verdict"] == "representable":
        n, m = machine.n, m or 0
        is_free = all(len(set(row)) in (1, n) for row in machine.delta)
        _require(is_free, "a letter is neither a permutation nor a constant")
        sizes = _check_block_functions(certificate, machine, "R")
        for block in certificate["blocks"]:
            parts = 1 if _signs(block["polynomial"], [1]) else 2  # a complex one has its conjugate beside it
            for row, matrix in zip(machine.delta, block["matrices"], strict=True):
                needed = len(matrix) if len(set(row)) < n else _exact_rank_moved(matrix, block["polynomial"])
                needed *= parts
                _require(needed <= m, f"a letter needs {needed} factors in a head, more than {m}")
        return f"representable: one {name} represents this machine, by heads of sizes {', '.join(map(str, sizes))}"
    _require(certificate["verdict"] == "impossible", "the verdict is not known")
    if "words" not in certificate:  # no smaller block than V does, so the head is all of V
        d, fewest = machine.n - 1, max(_rank_moved(letter) for letter in _functions(machine))
        _require(m is not None and fewest > m, f"the letters need {fewest} factors, no more than {m}")
        _check_smaller(certificate, machine, "R", machine.n - 2)
        return f"impossible: no {name} represents this machine, a head needs all {d} functions"
    states = certificate["states"]
    names = (*_HEADER, "states", "kinds", "words", "copies", "inverse")
    words = _fields(certificate, *names)[names.index("words")]
    p, q = _states(states, machine)
    chain = _chain(certificate, machine, "R")
    is_plain = all(copy.late is None and copy.level in (0, 1) for copy in chain.copies)
    _require(is_plain, "a copy is neither at level 0 nor at 1, or has a reason to be late")
    _require(p != q and len(_list(words)) == len(chain.kinds), "the two states are one, or kinds lack their words")
    columns = chain.columns[sum(len(copy.rows) for copy in chain.copies if copy.level == 0) :]
    for i, kind in enumerate(chain.kinds):
        d, fewest = len(kind.path) + 1, 0
        if _list(words[i]):
            _require(_has_no_inner_product(kind, words[i], machine), f"kind {i} may have an inner product")
            continue
        for letter in kind.letters:
            fewest = max(fewest, -(-_rank_moved(letter) * kind.weight // d))
        if m is None or fewest <= m:
            _require(not _homs(kind, machine, columns, 0), f"kind {i} has more copies than are listed")
    values = [[0, *row] for copy in chain.copies if copy.level == 0 for row in copy.rows]
    _require(all(row[p] == row[q] for row in values), f"states {p} and {q} are told apart")
    return f"impossible: no {name} represents this machine, states {p} and {q} would share one vector"


def _rank_moved(letter: Letter) -> int:
    """The rank modulo the prime of a letter less the identity."""
    d = len(letter)
    return _rank(([row.get(j, 0) - (i == j) for j in range(d)] for i, row in enumerate(letter)), d)


def _exact_rank_moved(matrix: Any, polynomial: list[int]) -> int:
    """The rank of A − 1 over Q[t]/(h): that of the rational matrix with t·x for each entry x, divided by the degree."""
    k, b = len(polynomial) - 1, len(matrix)
    entries = [[_numbers(x, k) for x in row] for row in matrix]
    rows = []
    for i in range(b):
        line = [[x - (i == j and not m) for m, x in enumerate(number)] for j, number in enumerate(entries[i])]
        for _ in range(k):
            rows.append([x for number in line for x in number])
            line = [_modulo([0, *number], [], polynomial) for number in line]
    rank = 0
    while rows:
        row = rows.pop()
        place = next((j for j, x in enumerate(row) if x), None)
        if place is not None:
            rank += 1
            rows = [
                [x - y * Fraction(other[place]) / row[place] for x, y in zip(other, row, strict=True)] for other in rows
            ]
    return rank // k


def _has_no_inner_product(kind: Kind, words: list[Any], machine: Machine) -> bool:
    """Whether 0 is the only symmetric G, modulo the prime, with P G = G Pᵀ and M G Mᵀ = P G Pᵀ, P = w^ω and M = w P."""
    d = len(kind.path) + 1
    small = [[{j: _residue(x) for j, x in row.items()} for row in letter] for letter in kind.letters]
    place = {pair: k for k, pair in enumerate((i, j) for i in range(d) for j in range(i, d))}
    span = _Span()
    for _, word in _element([[1, word] for word in words], machine):
        step = list(range(machine.n))
        for a in word:
            step = [step[s] for s in machine.delta[a]]
        w = [[x % PRIME for x in _applied([(1, word)], [int(i == j) for j in range(d)], small)] for i in range(d)]
        power = _power(w, _period(step) * machine.n)  # so many repetitions are idempotent, on the states and here
        both = _matrix_product(w, power)
        for i in range(d):
            for j in range(d):
                first, second = [0] * len(place), [0] * len(place)
                for k in range(d):
                    first[place[min(k, j), max(k, j)]] += power[i][k]
                    first[place[min(i, k), max(i, k)]] -= power[j][k]
                    for r in range(d):
                        second[place[min(k, r), max(k, r)]] += both[i][k] * both[j][r] - power[i][k] * power[j][r]
                span.add([x % PRIME for x in first])
                span.add([x % PRIME for x in second])
        if len(span.rows) == len(place):
            return True
    return False


def _period(step: list[int]) -> int:
    """The least common multiple of the cycle lengths of a map."""
    period = 1
    for q in range(len(step)):
        for _ in step:
            q = step[q]
        p, length = step[q], 1
        while p != q:
            p, length = step[p], length + 1
        period = math.lcm(period, length)
    return period


def _power(matrix: list[list[int]], exponent: int) -> list[list[int]]:
    total = [[int(i == j) for j in range(len(matrix))] for i in range(len(matrix))]
    while exponent:
        if exponent & 1:
            total = _matrix_product(total, matrix)
        matrix, exponent = _matrix_product(matrix, matrix), exponent >> 1
    return total


def _matrix_product(x: list[list[int]], y: list[list[int]]) -> list[list[int]]:
    columns = list(zip(*y, strict=True))
    return [[_dot(row, column) % PRIME for column in columns] for row in x]


def _functions(machine: Machine) -> list[Letter]:
    """V: f ↦ f ∘ δ_a, in the values f(q) − f(0), q = 1 … n−1."""
    letters = []
    for step in machine.delta:
        rows: Letter = [{} for _ in range(machine.n)]
        for q in range(1, machine.n):
            for state, sign in ((step[q], 1), (step[0], -1)):
                rows[state][q - 1] = rows[state].get(q - 1, 0) + sign
        letters.append(rows[1:])
    return letters


def _check_norton(letters: list[Letter], element: list[Any], v: list[Any], u: list[Any], nullity: int) -> None:
    """The element kills the row v and the column u, no more than `nullity` dimensions, and both span all.

    Then any submodule meets its kernel or lies in its image, over every field that holds the rationals (T32).
    """
    d = len(v)
    transposed = [_transposed(letter) for letter in letters]
    backwards = [(c, word[::-1]) for c, word in element]
    _require(not any(_applied(element, v, letters)), "the element does not kill the vector")
    _require(not any(_applied(backwards, u, transposed)), "the element does not kill the covector")
    small = [[{j: _residue(x) for j, x in row.items()} for row in letter] for letter in letters]
    images = (_applied(element, [int(i == j) for j in range(d)], small) for i in range(d))
    _require(_rank(images, d - nullity) >= d - nullity, "the element kills more than it should")
    _require(_spun([v], small) == d, "the vector does not span the module")
    _require(_spun([u], [_transposed(letter) for letter in small]) == d, "the covector does not span the dual")


def _check_kind(value: Any, machine: Machine, field: str) -> Kind:
    names = ("letters", "path", "element", "covector", "commutant")
    tables, steps, element, covector, commutant = _fields(value, *names)
    d, n_letters = len(_list(steps)) + 1, len(machine.delta)
    _require(len(_list(tables)) == n_letters, "a kind has letters that are not the machine's")
    letters: list[Letter] = []
    for table in tables:
        _require(len(_list(table)) == d, f"a letter of a kind has not {d} rows")
        letters.append([{j: x for j, x in enumerate(_numbers(row, d)) if x} for row in table])
    path = [(parent, a) for parent, a in map(_list, steps)]
    for i, (parent, a) in enumerate(path, 1):
        is_step = type(parent) is type(a) is int and 0 <= parent < i and 0 <= a < n_letters
        _require(is_step and letters[a][parent] == {i: 1}, f"row {i} of a kind is not the image it should be")
    kind = Kind(letters, path, 0, True, 0)
    first = [int(j == 0) for j in range(d)]
    dimension, ideal = _check_commutant(commutant, kind, field)
    _require(d % dimension == 0, f"{d} dimensions are no space over what commutes")
    _check_norton(letters, _element(element, machine), first, _numbers(covector, d), dimension)
    splits = not commutant["pair"] or field == "Q" or (field == "R" and commutant["prime"] is None)
    return kind._replace(commutant=dimension, splits=splits, weight=d // dimension * ideal)


def _check_commutant(value: Any, kind: Kind, field: str) -> tuple[int, int]:
    """(dimension of the maps that commute, dimension over the field of a least one-sided ideal of them)."""
    d = len(kind.path) + 1
    names = ("polynomial", "irreducible", "generator", "pair", "squares", "prime")
    polynomial, reason, generator, pair, squares, prime = _fields(value, *names)
    _require(all(type(c) is int for c in _list(polynomial)), "a polynomial has a coefficient that is no integer")
    k, one = len(polynomial) - 1, [int(j == 0) for j in range(d)]
    _require(k >= 1 and polynomial[-1] == 1, "a polynomial is not monic")
    _check_irreducible(polynomial, reason)
    t = _endomorphism(generator, kind)
    powers = [one]
    for _ in range(k):
        powers.append(_times(powers[-1], t))
    _require(not any(_combination(polynomial, powers)), "what commutes does not satisfy its polynomial")
    query = _signs(polynomial, [1]) if field == "R" or _list(pair) else 0
    if not _list(pair):
        _require(not _list(squares) and prime is None, "there are squares of no quaternions")
        return k, {"Q": k, "R": 1 if query else 2, "C": 1}[field]
    _require(query == k, "the center of the quaternions has a root that is not real")
    _require(len(_list(squares)) == len(pair) == 2, "there are not two quaternions and their squares")
    i, j = (_endomorphism(row, kind) for row in pair)
    v_i, v_j = _times(one, i), _times(one, j)
    for (unit, image), square in zip(((i, v_i), (j, v_j)), squares, strict=True):
        value = _numbers(square, k)
        _require(_times(image, unit) == _combination(value, powers), "a square of a quaternion is wrong")
        _require(_times(image, t) == _times(powers[1], unit), "the quaternions don't commute with their center")
        is_negative = prime is not None or _signs(polynomial, value) == -k
        _require(is_negative, "the quaternions are not Hamilton's over every real root")
    _require(not any(map(sum, zip(_times(v_i, j), _times(v_j, i), strict=True))), "i and j don't anticommute")
    if prime is not None:
        _require(
            type(prime) is int and k == 1 and _is_prime(prime), "a prime for quaternions over the rationals is none"
        )
        (a,), (b,) = (_numbers(square, k) for square in squares)
        _require(_hilbert_symbol(Fraction(a), Fraction(b), prime) == -1, "the quaternions may have zero divisors")
    return 4 * k, {"Q": 4 * k, "R": 4 if prime is None else 2, "C": 2}[field]


def _hilbert_symbol(a: Fraction, b: Fraction, p: int) -> int:
    """1 if a x² + b y² = z² has a p-adic solution that is not zero, else −1 (Serre, A Course in Arithmetic, III)."""
    parts = []
    for x in (a.numerator * a.denominator, b.numerator * b.denominator):
        _require(x != 0, "the square of a quaternion is zero")
        exponent = 0
        while x % p == 0:
            x, exponent = x // p, exponent + 1
        parts.append((exponent, x))
    (i, u), (j, v) = parts
    if p == 2:
        return (-1) ** ((u - 1) // 2 * ((v - 1) // 2) + i * ((v * v - 1) // 8) + j * ((u * u - 1) // 8) & 1)
    legendre = [1 if pow(x, (p - 1) // 2, p) == 1 else -1 for x in (u, v)]
    return (-1) ** (i * j * (p - 1) // 2 & 1) * legendre[0] ** (j & 1) * legendre[1] ** (i & 1)


def _endomorphism(row: Any, kind: Kind) -> Letter:
    """The map that takes the first basis vector to the row, and commutes with the letters."""
    d = len(kind.path) + 1
    images = [_numbers(row, d)]
    for parent, a in kind.path:
        images.append(_times(images[parent], kind.letters[a]))
    rows = [{j: x for j, x in enumerate(image) if x} for image in images]
    for letter in kind.letters:
        for i, relation in enumerate(letter):
            expected = _times([relation.get(j, 0) for j in range(d)], rows)
            _require(_times(images[i], letter) == expected, "a map does not commute with the letters")
    return rows


def _check_chain(certificate: dict[str, Any], machine: Machine, field: str, size: int) -> tuple[int, int]:
    """That no submodule of dimension `size` or less tells two states apart (T31); returns them."""
    states = certificate["states"]
    _fields(certificate, *_HEADER, "field", "states", "kinds", "copies", "inverse")
    p, q = _states(states, machine)
    _require(p != q and size < machine.n, "the two states are one, or the size is beyond them all")
    chain = _chain(certificate, machine, field)
    below = [sum(len(copy.rows) for copy in chain.copies if copy.level <= c) for c in range(size + 1)]
    counted: dict[tuple[int, int], int] = {}
    late: set[int] = set()
    for i, kind in enumerate(chain.kinds):
        for c in range(kind.weight, size + 1):
            u = below[c - kind.weight]
            above = [copy for copy in chain.copies if copy.kind == i and copy.base <= u <= copy.start]
            if (i, u) not in counted:
                counted[i, u] = _homs(kind, machine, chain.columns[u:], kind.commutant * len(above))
            fault = f"kind {i} has more copies above level {c - kind.weight} than are listed"
            _require(counted[i, u] <= kind.commutant * len(above), fault)
            for copy in above:
                if copy.level > c:
                    _require(copy.late is not None, f"a copy comes after level {c} without a reason")
                    is_alone = len(above) == 1 and chain.below(i, u) == chain.below(i, copy.base)
                    _require(is_alone, "a copy comes late though it is not the only one")
                    least = _least_above(chain, copy, machine)
                    _require(least > c, f"a copy comes after level {c}, where it may be needed")
                    late.add(copy.start)
    is_needed = all(copy.late is None or copy.start in late for copy in chain.copies)
    _require(is_needed, "a copy that is not late has a reason to be")
    values = [[0, *row] for copy in chain.copies if copy.level <= size for row in copy.rows]
    _require(all(row[p] == row[q] for row in values), f"states {p} and {q} are told apart")
    return p, q


def _chain(certificate: dict[str, Any], machine: Machine, field: str) -> Chain:
    """Kinds that are irreducible, and copies of them that are a basis of V and move as they should."""
    d, module = machine.n - 1, _functions(machine)
    kinds = [_check_kind(kind, machine, field) for kind in _list(certificate["kinds"])]
    columns = list(zip(*(_whole(row, d) for row in _list(certificate["inverse"])), strict=True))
    copies, rows = list[Copy](), list[list[int]]()
    for value in _list(certificate["copies"]):
        i, base, level, functions, late = _fields(value, "kind", "base", "level", "rows", "late")
        _require(type(i) is type(base) is type(level) is int and 0 <= i < len(kinds), "a copy is of no kind")
        _require(len(_list(functions)) == len(kinds[i].path) + 1, "a copy has other rows than its kind")
        copies.append(Copy(i, base, level, [_whole(row, d) for row in functions], late, len(rows)))
        is_based = any(base == copy.start for copy in copies)
        _require(is_based and level >= copies[-2:][0].level >= 0, "a copy stands on no submodule, or out of order")
        rows += functions
    _require(len(rows) == len(columns) == d, f"the copies have not {d} rows together")
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            _require((_dot(row, column) != 0) == (i == j), "the inverse is none")
    for copy in copies:
        for letter, table in zip(module, kinds[copy.kind].letters, strict=True):
            for function, relation in zip(copy.rows, table, strict=True):
                rest = _times(function, letter)
                for j, x in relation.items():
                    rest = [y - x * z for y, z in zip(rest, copy.rows[j], strict=True)]
                is_below = not any(rest) or not any(_dot(rest, column) for column in columns[copy.base :])
                _require(is_below, "a copy does not move as its kind does")
    return Chain(kinds, copies, columns)


def _least_above(chain: Chain, copy: Copy, machine: Machine) -> int:
    """At least which dimension over the field a submodule has that has one copy as its head.

    An element finds a function f of each such submodule, up to parameters: other functions, in U_base. Without those
    all that f generates is in it; else what moves take f to that take the parameters to zero (T31).
    """
    element, function, parameters, moves = _fields(copy.late, "element", "function", "parameters", "moves")
    element, kind, module = _element(element, machine), chain.kinds[copy.kind], _functions(machine)
    d, own = len(kind.path) + 1, range(copy.start, copy.start + len(copy.rows))
    f, rest = _whole(function, machine.n - 1), [_whole(row, machine.n - 1) for row in _list(parameters)]
    parts = [_dot(f, column) for column in chain.columns]
    is_part = any(parts[i] for i in own) and not any(parts[i] for i in range(copy.base, len(parts)) if i not in own)
    _require(is_part, "a function is not in the submodule with its copy, or below it")
    for i, other in enumerate(chain.kinds):
        if i != copy.kind:
            _require(_rank_on(other, element, 1) == len(other.path) + 1, f"an element kills something in kind {i}")
    _require(
        chain.below(copy.kind, copy.base) == len(rest),
        "there are other parameters than copies of the kind below",
    )
    if not rest:
        _require(not any(_applied(element, f, module)), "the element does not kill the function")
        _require(kind.splits, "the submodules above quaternions are not all alike")
        return -(-_spun([f], module) * kind.weight // d)
    _require(
        kind.commutant == 1 and _rank_on(kind, element, 2) == d - 1, "the element kills more than a line of its kind"
    )
    for row in (f, *rest):
        for _ in range(machine.n):
            row = _applied(element, row, module)
        _require(not any(row), "no power of the element kills the function and the parameters")
    _require(_rank(rest, len(rest)) == len(rest), "the parameters are dependent")
    _require(
        not any(_dot(row, column) for row in rest for column in chain.columns[copy.base :]), "a parameter is not below"
    )
    found = []
    for value in _list(moves):
        move = _element(value, machine)
        _require(not any(any(_applied(move, row, module)) for row in rest), "a move does not kill the parameters")
        found.append(_applied(move, f, module))
        is_below = not any(_dot(found[-1], column) for column in chain.columns[copy.base :])
        _require(is_below, "a move leads out of what is below")
    return _spun(found, module) + d


def _rank_on(kind: Kind, element: list[Any], times: int) -> int:
    """The rank modulo the prime of a power of an element on a kind."""
    d = len(kind.path) + 1
    letters = [[{j: _residue(x) for j, x in row.items()} for row in letter] for letter in kind.letters]
    images = [[int(i == j) for j in range(d)] for i in range(d)]
    for _ in range(times):
        images = [[x % PRIME for x in _applied(element, row, letters)] for row in images]
    return _rank(images, d)


def _homs(kind: Kind, machine: Machine, columns: list[Any], wanted: int) -> int:
    """At most how many dimensions of maps there are from the kind to V modulo what the columns vanish on.

    A map is known by a function f, the image of the first basis vector; the relations of the others, applied to f, must
    vanish on the columns. Relations modulo the prime are counted until `wanted` dimensions are left.
    """
    maps = [list(range(machine.n))]
    for parent, a in kind.path:
        maps.append([maps[parent][s] for s in machine.delta[a]])
    small = [[[(j, _residue(x)) for j, x in row.items()] for row in letter] for letter in kind.letters]
    rng, span, tree = random.Random(0), _Span(), set(kind.path)
    for _ in range(len(columns)):
        y = [0] * (machine.n - 1)
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
                for j, x in small[a][i]:
                    vector = [v - x * z for v, z in zip(vector, pushed[j], strict=True)]
                span.add([v % PRIME for v in vector])
                if len(columns) - len(span.rows) <= wanted:
                    return len(columns) - len(span.rows)
    return len(columns) - len(span.rows)


def _pushed(image: list[int], y: list[int]) -> list[int]:
    """The column that a function f pairs with as f ∘ image does with y, less its entry at state 0."""
    total = [0] * len(image)
    for target, x in zip(image, y, strict=True):
        total[target] += x
    return total[1:]


def _check_block_functions(certificate: dict[str, Any], machine: Machine, field: str) -> list[int]:
    """The sizes of blocks whose functions move as their matrices say, and tell all states apart together."""
    blocks = _list(_fields(certificate, *_HEADER, "field", "blocks")[-1])
    codes: list[tuple[Any, ...]] = [()] * machine.n
    sizes = []
    for block in blocks:
        names = ("polynomial", "irreducible", "functions", "matrices", "shifts")
        h, reason, functions, matrices, shifts = _fields(block, *names)
        _require(all(type(c) is int for c in _list(h)), "a polynomial has a coefficient that is no integer")
        k, b = len(h) - 1, len(_list(functions))
        _require(k >= 1 and h[-1] == 1, "a polynomial is not monic")
        _check_irreducible(h, reason)
        _require(field != "Q" or k == 1, "a block has numbers that are not rational")
        f = [[_numbers(x, k) for x in _list(row)] for row in functions]
        _require(all(len(row) == machine.n for row in f), "a function has values at other states")
        _require(len(_list(matrices)) == len(_list(shifts)) == len(machine.delta), "a block has other letters")
        for a, step in enumerate(machine.delta):
            A = [[_numbers(x, k) for x in _list(row)] for row in _list(matrices[a])]
            v = [_numbers(x, k) for x in _list(shifts[a])]
            _require(len(A) == len(v) == b and all(len(row) == b for row in A), f"a matrix is not {b} by {b}")
            for i, row in enumerate(A):
                used = [(x, f[j]) for j, x in enumerate(row) if any(x)]
                for q, target in enumerate(step):
                    moved = _modulo([*v[i]] + [0] * (k - 1), [(x, g[q]) for x, g in used], h)
                    _require(moved == f[i][target], f"a block does not follow state {q} under letter {a}")
        codes = [(*code, *(tuple(row[q]) for row in f)) for q, code in enumerate(codes)]
        parts = 2 if field == "R" and not _signs(h, [1]) else 1  # a complex function is a real and an imaginary one
        sizes.append(sum(parts if any(any(x[1:]) for x in row) else 1 for row in f))
    _require(len(set(codes)) == machine.n, "two states have the same vector")
    return sizes


def _modulo(total: list[Any], products: list[tuple[list[Any], list[Any]]], h: list[int]) -> list[Any]:
    """A polynomial plus products of two, all of degree less than that of h, modulo h."""
    k = len(h) - 1
    for x, y in products:
        for i, c in enumerate(x):
            if c:
                for j, z in enumerate(y):
                    total[i + j] += c * z
    for i in range(len(total) - 1, k - 1, -1):
        if total[i]:
            top = total[i]
            for j, c in enumerate(h):
                total[i - k + j] -= top * c
    return total[:k]


def _check_irreducible(polynomial: list[int], reason: Any) -> None:
    """Over the rationals: of degree at most 3 without an integer root, cyclotomic, or prime at a large number."""
    kind, m = _list(reason)
    largest = max(map(abs, polynomial[:-1]))
    k = len(polynomial) - 1
    _require(type(m) is int and m >= 0, "a reason has no number")
    if kind == "degree":
        _require(m == 0 and k <= 3 and largest <= 10**5, "a polynomial of this degree or size needs another reason")
        roots = k > 1 and any(not _value(polynomial, r) for r in range(-largest - 1, largest + 2))
        _require(not roots, "a polynomial has a root")
    elif kind == "cyclotomic":
        _require(1 <= m <= MAX_ORDER, f"{m} is no order of a root of unity, or beyond {MAX_ORDER}")
        _require(polynomial == _cyclotomic(m), f"a polynomial is not the {m}-th cyclotomic one")
    else:
        _require(kind == "prime" and m >= largest + 3, "a value at a small number proves nothing")
        _require(_is_prime(abs(_value(polynomial, m))), f"the value at {m} is no prime, or too large to tell")


def _value(polynomial: list[Any], x: Any) -> Any:
    total = 0
    for c in reversed(polynomial):
        total = total * x + c
    return total


def _cyclotomic(m: int) -> list[int]:
    """∏ (x^d − 1)^μ(m/d) over the divisors d of m, as a power series: up to sign, and of degree φ(m)."""
    primes = [p for p in range(2, m + 1) if m % p == 0 and all(p % r for r in range(2, p))]
    degree = m * math.prod(p - 1 for p in primes) // math.prod(primes)
    series = [1] + [0] * degree
    for chosen in range(2 ** len(primes)):
        used = [p for i, p in enumerate(primes) if chosen >> i & 1]
        d = m // math.prod(used)
        for i in range(d, degree + 1) if len(used) % 2 else range(degree, d - 1, -1):
            series[i] += series[i - d] if len(used) % 2 else -series[i - d]
    return [c * series[-1] for c in series]


def _is_prime(number: int) -> bool:
    """By Miller and Rabin's test for the first 13 primes, which is exact below 3.3 · 10²⁴ (Sorenson and Webster)."""
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
    if number in bases:
        return True
    if number < 2 or number >= 3_317_044_064_679_887_385_961_981 or not all(number % b for b in bases):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for b in bases:
        x = pow(b, odd, number)
        if x not in (1, number - 1) and all((x := x * x % number) != number - 1 for _ in range(twos - 1)):
            return False
    return True


def _signs(polynomial: list[int], value: list[Any]) -> int:
    """Σ sign(value) over the real roots of an irreducible polynomial, by the sequence of Sturm and Tarski."""
    derivative = [i * Fraction(c) for i, c in enumerate(polynomial)][1:]
    chain = [[Fraction(c) for c in polynomial], _remainder(_polynomial_product(derivative, value), polynomial)]
    while len(chain[-1]) > 1:
        chain.append([-c for c in _remainder(chain[-2], chain[-1])])
    ends = []
    for sign in (-1, 1):
        leading = [c[-1] * sign ** (len(c) - 1) for c in chain if c]
        ends.append(sum(x * y < 0 for x, y in itertools.pairwise(leading)))
    return ends[0] - ends[1]


def _polynomial_product(x: list[Any], y: list[Any]) -> list[Any]:
    total = [Fraction(0)] * (len(x) + len(y))
    for i, c in enumerate(x):
        for j, z in enumerate(y):
            total[i + j] += c * z
    return total


def _remainder(dividend: list[Any], divisor: list[Any]) -> list[Any]:
    """Without leading zeros: [] for zero."""
    rest = list(dividend)
    while rest and (not rest[-1] or len(rest) >= len(divisor)):
        if rest[-1]:
            factor = rest[-1] / divisor[-1]
            for j, c in enumerate(divisor):
                rest[len(rest) - len(divisor) + j] -= factor * c
        rest.pop()
    return rest


class _Span:
    """Independent vectors modulo the prime, reduced, with the place of the first entry of each."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, list[int]]] = []

    def add(self, vector: list[int]) -> bool:
        """Whether a vector of residues is independent of those before; it is kept."""
        for place, row in self.rows:
            if c := vector[place]:
                vector = [(x - c * y) % PRIME for x, y in zip(vector, row, strict=True)]
        place = next((i for i, x in enumerate(vector) if x), None)
        if place is None:
            return False
        inverse = pow(vector[place], -1, PRIME)
        self.rows.append((place, [x * inverse % PRIME for x in vector]))
        return True


def _rank(vectors: Iterable[list[Any]], enough: int) -> int:
    span = _Span()
    for vector in vectors:
        if len(span.rows) >= enough:
            break
        span.add([_residue(x) for x in vector])
    return len(span.rows)


def _spun(start: list[list[Any]], letters: list[Letter]) -> int:
    """The dimension modulo the prime of what rows generate."""
    span, queue = _Span(), [[_residue(x) for x in row] for row in start]
    for vector in queue:
        if span.add(vector):
            queue += [[x % PRIME for x in _times(vector, letter)] for letter in letters]
        if len(span.rows) == len(vector):
            break
    return len(span.rows)


def _times(row: list[Any], letter: Letter) -> list[Any]:
    total = [0] * len(row)
    for x, line in zip(row, letter, strict=True):
        if x:
            for j, y in line.items():
                total[j] += x * y
    return total


def _transposed(letter: Letter) -> Letter:
    rows: Letter = [{} for _ in letter]
    for i, line in enumerate(letter):
        for j, x in line.items():
            rows[j][i] = x
    return rows


def _applied(element: list[Any], row: list[Any], letters: list[Letter]) -> list[Any]:
    """Σ coefficient × word, the letters of a word acting one after the other."""
    total = [0] * len(row)
    for c, word in element:
        image = row
        for a in word:
            image = _times(image, letters[a])
        total = [x + c * y for x, y in zip(total, image, strict=True)]
    return total


def _element(value: Any, machine: Machine) -> list[tuple[int, list[int]]]:
    found = [(c, _list(word)) for c, word in map(_list, _list(value))]
    letters = range(len(machine.delta))
    is_element = all(type(c) is int and all(type(a) is int and a in letters for a in word) for c, word in found)
    _require(is_element, "an element is no combination of words")
    return found


def _combination(coefficients: list[Any], rows: list[list[Any]]) -> list[Any]:
    total = [0] * len(rows[0])
    for c, row in zip(coefficients, rows, strict=False):
        total = [x + c * y for x, y in zip(total, row, strict=True)]
    return total


def _numbers(value: Any, length: int) -> list[Any]:
    """Rationals, integers as such."""
    _require(len(_list(value)) == length, f"a row has not {length} numbers")
    scale, numbers = _integers(value)
    return numbers if scale == 1 else [Fraction(x, scale) for x in numbers]


def _whole(value: Any, length: int) -> list[int]:
    _require(len(_list(value)) == length and all(type(x) is int for x in value), f"a row has not {length} integers")
    return value


def _dot(row: list[Any], column: Any) -> Any:
    return sum(x * y for x, y in zip(row, column, strict=True) if x)


def _residue(x: Any) -> int:
    return x % PRIME if type(x) is int else x.numerator * pow(x.denominator, -1, PRIME) % PRIME


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
