"""Check certificates on layers of products of a bounded number of Householder factors per letter (T36)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .blocks import check_block_functions
from .certificate_fields import HEADER, fields, rationals, require, spend, steps_of
from .chains import homs, read_chain
from .checked_machine import CheckedMachine, read_states
from .module_algebra import Letter, rank_of
from .polynomials import modulo, real_roots


def recheck_factors(certificate: dict[str, Any], machine: CheckedMachine, m: int) -> str:
    """Check a certificate on at most m Householder factors per letter and head; return the claim that it proves."""
    name = f"layer of products of {m} Householder factors per letter"
    if certificate["verdict"] == "representable":
        n = machine.n
        is_free = all(len(set(row)) in (1, n) for row in machine.delta)
        require(is_free, "a letter is neither a permutation nor a constant")
        sizes = check_block_functions(certificate, machine, "R")
        for block in certificate["blocks"]:
            parts = 1 if real_roots(block["polynomial"]) else 2  # complex numbers come in conjugate pairs
            for row, matrix in zip(machine.delta, block["matrices"], strict=True):
                needed = len(matrix) if len(set(row)) < n else _exact_rank_moved(matrix, block["polynomial"])
                needed *= parts
                require(needed <= m, f"a letter needs {needed} factors in a head, more than {m}")
        return f"representable: one {name} represents this machine, by heads of sizes {', '.join(map(str, sizes))}"
    require(certificate["verdict"] == "impossible", "the verdict is not known")
    states = fields(certificate, *HEADER, "states", "kinds", "copies", "inverse")[len(HEADER)]
    p, q = read_states(states, machine)
    chain = read_chain(certificate, machine, "R")
    require(all(copy.level in (0, 1) for copy in chain.copies), "a copy is neither at level 0 nor at 1")
    require(p != q, "the two states are one")
    # The functions of level 0 are those on which these columns vanish.
    columns = chain.columns[sum(len(copy.rows) for copy in chain.copies if copy.level == 0) :]
    for i, kind in enumerate(chain.kinds):
        # T36 (a): a constituent over ℝ has its share of the rank, weight / dimension, rounded up.
        fewest = max(_rank_moved(letter) for letter in kind.letters)
        if -(-fewest * kind.weight // (len(kind.path) + 1)) <= m:
            require(not homs(kind, machine, columns, 0), f"kind {i} has more copies than are listed")
    values = [[0, *row] for copy in chain.copies if copy.level == 0 for row in copy.rows]
    require(all(row[p] == row[q] for row in values), f"states {p} and {q} are told apart")
    return f"impossible: no {name} represents this machine, states {p} and {q} would share one vector"


def _rank_moved(letter: Letter) -> int:
    d = len(letter)
    return rank_of(([row.get(j, 0) - (i == j) for j in range(d)] for i, row in enumerate(letter)), d)


def _exact_rank_moved(matrix: Any, polynomial: list[int]) -> int:
    """Return the rank of matrix − 1 over ℚ[t]/(polynomial), whose entries are lists of k rational coefficients.

    Each row is written with its products by t, …, t^(k−1) as rational rows; the rational rank is k times that of the
    field.
    """
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
