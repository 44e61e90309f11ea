"""Check certificates on layers of blocks of bounded size over the rational, real or complex numbers (T30 to T33)."""

from __future__ import annotations

from typing import Any

from .certificate_fields import HEADER, as_list, fields, rationals, require
from .chains import check_chain
from .checked_machine import CheckedMachine
from .polynomials import check_irreducible, modulo, real_roots

FIELDS = {"Q": "rational", "R": "real", "C": "complex"}


def recheck_block(certificate: dict[str, Any], machine: CheckedMachine, size: int) -> str:
    """Check a certificate on blocks of at most `size` states, and return the claim that it proves."""
    field, verdict = certificate["field"], certificate["verdict"]
    require(field in FIELDS, f"{str(field)[:80]!r} is not a field: rational, real and complex are Q, R and C")
    name = f"layer of {FIELDS[field]} blocks of size {size}"
    if verdict == "representable":
        sizes = check_block_functions(certificate, machine, field)
        require(max(sizes, default=0) <= size, f"a block has size {max(sizes, default=0)}, more than {size}")
        return f"representable: one {name} represents this machine, by blocks of sizes {', '.join(map(str, sizes))}"
    require(verdict == "impossible", f"verdict {str(verdict)[:80]!r} is not known")
    p, q = check_chain(certificate, machine, field, size)
    return f"impossible: no {name} represents this machine, states {p} and {q} would share one vector"


def check_block_functions(certificate: dict[str, Any], machine: CheckedMachine, field: str) -> list[int]:
    """Check that functions of the state follow the blocks' matrices and separate all states; return the block sizes."""
    blocks = as_list(fields(certificate, *HEADER, "field", "blocks")[-1])
    codes: list[tuple[Any, ...]] = [()] * machine.n
    sizes = []
    for block in blocks:
        names = ("polynomial", "irreducible", "functions", "matrices", "shifts")
        h, reason, functions, matrices, shifts = fields(block, *names)
        require(all(type(c) is int for c in as_list(h)), "a polynomial has a coefficient that is not an integer")
        k, b = len(h) - 1, len(as_list(functions))
        require(k >= 1 and h[-1] == 1, "a polynomial is not monic")
        check_irreducible(h, reason)
        require(field != "Q" or k == 1, "a block has numbers that are not rational")
        f = [[rationals(x, k) for x in as_list(row)] for row in functions]
        require(all(len(row) == machine.n for row in f), "a function has values at other states")
        require(len(as_list(matrices)) == len(as_list(shifts)) == len(machine.delta), "a block has other letters")
        for a, step in enumerate(machine.delta):
            A = [[rationals(x, k) for x in as_list(row)] for row in as_list(matrices[a])]
            v = [rationals(x, k) for x in as_list(shifts[a])]
            require(len(A) == len(v) == b and all(len(row) == b for row in A), f"a matrix is not {b} by {b}")
            for i, row in enumerate(A):
                used = [(x, f[j]) for j, x in enumerate(row) if any(x)]
                for q, target in enumerate(step):
                    moved = modulo([*v[i]] + [0] * (k - 1), [(x, g[q]) for x, g in used], h)
                    require(moved == f[i][target], f"a block does not follow state {q} under letter {a}")
        codes = [(*code, *(tuple(row[q]) for row in f)) for q, code in enumerate(codes)]
        # A complex function counts twice over the reals: real and imaginary part.
        parts = 2 if field == "R" and not real_roots(h) else 1
        sizes.append(sum(parts if any(any(x[1:]) for x in row) else 1 for row in f))
    require(len(set(codes)) == machine.n, "two states have the same vector")
    return sizes
