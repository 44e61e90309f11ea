"""Check certificates on layers of products of a bounded number of Householder factors per letter (T36)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from .blocks import check_block_functions, check_smaller
from .chains import homs, read_chain
from .kinds import CheckedKind
from .machine import CheckedMachine, read_states
from .modules import PRIME, Letter, Span, applied, dot, rank_of, read_element, residue, state_functions
from .polynomials import modulo, sum_of_signs
from .reading import HEADER, as_list, fields, rationals, require, spend, steps_of


def recheck_factors(certificate: dict[str, Any], machine: CheckedMachine, m: int | None) -> str:
    """Check a certificate on at most m Householder factors per letter and head (None: any number); return its claim."""
    name = f"layer of products of {'Householder' if m is None else f'{m} Householder'} factors per letter"
    if certificate["verdict"] == "representable":
        n, m = machine.n, m or 0
        is_free = all(len(set(row)) in (1, n) for row in machine.delta)
        require(is_free, "a letter is neither a permutation nor a constant")
        sizes = check_block_functions(certificate, machine, "R")
        for block in certificate["blocks"]:
            parts = 1 if sum_of_signs(block["polynomial"], [1]) else 2  # complex numbers come in conjugate pairs
            for row, matrix in zip(machine.delta, block["matrices"], strict=True):
                needed = len(matrix) if len(set(row)) < n else _exact_rank_moved(matrix, block["polynomial"])
                needed *= parts
                require(needed <= m, f"a letter needs {needed} factors in a head, more than {m}")
        return f"representable: one {name} represents this machine, by heads of sizes {', '.join(map(str, sizes))}"
    require(certificate["verdict"] == "impossible", "the verdict is not known")
    if "words" not in certificate:  # no smaller block than V does, so the head is all of V
        d, fewest = machine.n - 1, max(_rank_moved(letter) for letter in state_functions(machine))
        require(m is not None and fewest > m, f"the letters need {fewest} factors, no more than {m}")
        check_smaller(certificate, machine, "R", machine.n - 2)
        return f"impossible: no {name} represents this machine, a head needs all {d} functions"
    states = certificate["states"]
    names = (*HEADER, "states", "kinds", "words", "copies", "inverse")
    words = fields(certificate, *names)[names.index("words")]
    p, q = read_states(states, machine)
    chain = read_chain(certificate, machine, "R")
    is_plain = all(copy.late is None and copy.level in (0, 1) for copy in chain.copies)
    require(is_plain, "a copy is neither at level 0 nor at 1, or has a reason to be late")
    require(p != q and len(as_list(words)) == len(chain.kinds), "the two states are one, or kinds lack their words")
    columns = chain.columns[sum(len(copy.rows) for copy in chain.copies if copy.level == 0) :]
    for i, kind in enumerate(chain.kinds):
        d, fewest = len(kind.path) + 1, 0
        if as_list(words[i]):
            require(_has_no_inner_product(kind, words[i], machine), f"kind {i} may have an inner product")
            continue
        for letter in kind.letters:
            fewest = max(fewest, -(-_rank_moved(letter) * kind.weight // d))
        if m is None or fewest <= m:
            require(not homs(kind, machine, columns, 0), f"kind {i} has more copies than are listed")
    values = [[0, *row] for copy in chain.copies if copy.level == 0 for row in copy.rows]
    require(all(row[p] == row[q] for row in values), f"states {p} and {q} are told apart")
    return f"impossible: no {name} represents this machine, states {p} and {q} would share one vector"


def _rank_moved(letter: Letter) -> int:
    d = len(letter)
    return rank_of(([row.get(j, 0) - (i == j) for j in range(d)] for i, row in enumerate(letter)), d)


def _exact_rank_moved(matrix: Any, polynomial: list[int]) -> int:
    k, b = len(polynomial) - 1, len(matrix)
    entries = [[rationals(x, k) for x in row] for row in matrix]
    rows = []
    for i in range(b):
        line = [[x - (i == j and not m) for m, x in enumerate(number)] for j, number in enumerate(entries[i])]
        for _ in range(k):
            rows.append([x for number in line for x in number])
            line = [modulo([0, *number], [], polynomial) for number in line]
    rank = 0
    while rows:
        row = rows.pop()
        place = next((j for j, x in enumerate(row) if x), None)
        if place is not None:
            rank += 1
            spend(steps_of(row) * len(rows) + sum(steps_of(other[place : place + 1]) for other in rows) * len(row))
            rows = [
                [x - y * Fraction(other[place]) / row[place] for x, y in zip(other, row, strict=True)] for other in rows
            ]
    return rank // k


def _has_no_inner_product(kind: CheckedKind, words: list[Any], machine: CheckedMachine) -> bool:
    """Return whether only G = 0 is symmetric, modulo the prime, with P G = G Pᵀ, M G Mᵀ = P G Pᵀ, P = w^ω, M = w P."""
    d = len(kind.path) + 1
    small = [[{j: residue(x) for j, x in row.items()} for row in letter] for letter in kind.letters]
    place = {pair: k for k, pair in enumerate((i, j) for i in range(d) for j in range(i, d))}
    span = Span()
    for _, word in read_element([[1, word] for word in words], machine):
        step = list(range(machine.n))
        for a in word:
            step = [step[s] for s in machine.delta[a]]
        w = [[x % PRIME for x in applied([(1, word)], [int(i == j) for j in range(d)], small)] for i in range(d)]
        power = _power(w, _period(step) * machine.n)  # so many repetitions are idempotent, on the states and here
        both = _matrix_product(w, power)
        for i in range(d):
            for j in range(d):
                spend(len(place) + d * d)
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
    period = 1
    spend(2 * len(step) ** 2)
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
    return [[dot(row, column) % PRIME for column in columns] for row in x]
