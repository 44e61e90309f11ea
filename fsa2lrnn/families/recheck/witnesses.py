"""Check witnesses: channels, a matrix, or the keys of Householder factors (docs/theory.md §4)."""

from __future__ import annotations

from typing import Any

from .certificate_fields import HEADER, MAX_BITS, as_list, fields, integers, rationals, require, spend, steps_of
from .checked_machine import CheckedMachine
from .impossibilities import MatrixHypotheses
from .polynomials import MAX_ORDER, prime_factors

LIQUID = ("liquid-s4-diagonal", "liquid-s4")
ORDERS = {"[0,1]": 1, "[-1,1]": 2}  # the largest order of an eigenvalue


def check_representable(certificate: dict[str, Any], machine: CheckedMachine, form: MatrixHypotheses) -> int:
    """Return the dimension of a layer; raise `RejectedCertificate` unless it represents the machine in the family."""
    if certificate["family"] in LIQUID or "matrix" in certificate:
        return _check_affine(certificate, machine, certificate["family"])
    if "keys" in certificate:
        return _check_householder(certificate, machine, form)
    channels = as_list(fields(certificate, *HEADER, "channels")[-1])
    codes = zip(*(_check_channel(channel, machine, form) for channel in channels), strict=True) if channels else [()]
    require(len(set(codes)) == machine.n, "two states have the same vector")
    return sum(1 if channel["order"] <= 2 else 2 for channel in channels)


def _check_channel(channel: object, machine: CheckedMachine, form: MatrixHypotheses) -> list[tuple[Any, ...]]:
    """Check f(δ_a(q)) = χ(a) f(q) + v(a) for a scalar channel, exactly in ℚ(ζ); return the value of each state.

    Numbers are coefficients of powers of ζ; a multiplier ζ^k shifts their exponents, None is 0.
    """
    order, exponents, values, shifts = fields(channel, "order", "exponents", "values", "shifts")
    largest = ORDERS.get(form.eigenvalues or "")
    if form.beta is not None:  # a channel is a head of one dimension with the factor 1 - beta
        largest = 1 if form.beta < 2 else 2
    require(type(order) is int and 1 <= order <= MAX_ORDER, f"{order} is not the order of a root of unity up to 5000")
    require(largest is None or order <= largest, f"a multiplier of order {order} is outside the family")
    require(all(power is None or type(power) is int for power in as_list(exponents)), "an exponent is not an integer")
    is_one = len(set(exponents)) == 1
    require(is_one or form.letters != "input-independent", "the multiplier depends on the letter")
    rows = [as_list(row) for row in (*as_list(values), *as_list(shifts))]
    is_whole = len(values) == machine.n and len(shifts) == len(exponents) == len(machine.delta)
    require(is_whole, "a channel has values for other states or letters")
    primes, degree = prime_factors(order)
    require(all(len(row) <= degree for row in rows), f"a number has more than φ({order}) = {degree} coefficients")
    _, numbers = integers([text for row in rows for text in row])
    rest = iter(numbers)
    f, v = [[{i: x for i in range(len(row)) if (x := next(rest))} for row in part] for part in (values, shifts)]
    for a, row in enumerate(machine.delta):
        for q, target in enumerate(row):
            turn = exponents[a]
            moved = {} if turn is None else {(i + turn) % order: x for i, x in f[q].items()}
            fault = f"a channel does not follow state {q} under letter {a}"
            require(_is_zero([(moved, 1), (v[a], 1), (f[target], -1)], order, primes), fault)
    return [tuple(sorted(value.items())) for value in f]


def _is_zero(terms: list[tuple[dict[int, int], int]], order: int, primes: list[int]) -> bool:
    """Return whether a signed sum of polynomials vanishes at ζ.

    It does if and only if its product with ∏ (1 − x^(m/p)), for the primes p that divide m, is 0 modulo x^m − 1: the
    roots of ∏ are the m-th roots of unity that are not primitive, and the others are the conjugates of ζ.
    """
    total: dict[int, int] = {}
    spend(2 ** len(primes) * sum(len(polynomial) + 1 for polynomial, _ in terms))
    for polynomial, sign in terms:
        for i, x in polynomial.items():
            total[i] = total.get(i, 0) + sign * x
    # Multiplication by 1 − x^(m/p) modulo x^m − 1.
    for p in primes:
        nonzero = {i: x for i, x in total.items() if x}
        total = dict(nonzero)
        for i, x in nonzero.items():
            j = (i + order // p) % order
            total[j] = total.get(j, 0) - x
    return not any(total.values())


def _check_affine(certificate: dict[str, Any], machine: CheckedMachine, family: str) -> int:
    """Check A x_q + v_a = x_δ(a,q) in integers, all scaled by one denominator; return the dimension.

    For Liquid-S4, the letter also adds diag(B_a) to A.
    """
    is_liquid = family in LIQUID  # letters add diag(B) to A, and B to the state
    names = ("A", "vectors", "B") if is_liquid else ("matrix", "vectors", "shifts")
    fields(certificate, *HEADER, *names)
    require(is_liquid or family == "lti", "a matrix is a witness for the family lti only")
    scale, (A, x, shifts) = _tables(certificate, *names)
    d = len(A)
    require(len(x) == machine.n and len(shifts) == len(machine.delta), "there are vectors of other states or letters")
    require(all(len(row) == d for row in (*A, *x, *shifts)), f"a row has not {d} entries, as many as the matrix rows")
    require(len({tuple(vector) for vector in x}) == machine.n, "two states have the same vector")
    spend(d * sum(steps_of(vector) for vector in (*A, *x)) + machine.n * d * (d + len(machine.delta)))
    is_diagonal = not any(A[i][j] for i in range(d) for j in range(d) if i != j)
    require(is_diagonal or family != "liquid-s4-diagonal", "A is not diagonal")
    moved = [[sum(row[j] * y for j, y in enumerate(vector) if y) for row in A] for vector in x]
    for a, row in enumerate(machine.delta):
        for q, target in enumerate(row):
            # A, x and B are all multiplied by `scale`, so products carry its square: B alone needs one more factor.
            added = [b * (z * is_liquid + scale) for b, z in zip(shifts[a], x[q], strict=True)]
            reached = [y + b for y, b in zip(moved[q], added, strict=True)]
            fault = f"the layer does not lead from state {q} under letter {a} to state {target}"
            require(reached == [scale * y for y in x[target]], fault)
    return d


def _check_householder(certificate: dict[str, Any], machine: CheckedMachine, form: MatrixHypotheses) -> int:
    """Check that factors I − β k kᵀ lead each state's vector to its successor's; return the dimension.

    Keys are integers of any length, so β |k|² takes the place of β in the bounds of the family.
    """
    largest = form.beta or 0
    require(bool(largest), "keys are no witness for this family")
    sink = certificate.get("sink")  # at zero, where there is one; other states are at unit vectors
    names = ["keys", "shifts", *(name for name in ("sink", "vectors", "rates") if name in certificate)]
    require(not {"sink", "vectors"} <= {*names}, "states are at unit vectors but for a sink, or at vectors: not both")
    keys, shifts = fields(certificate, *HEADER, *names)[len(HEADER) :][:2]
    rates = as_list(certificate.get("rates", [[1] * len(as_list(letter)) for letter in as_list(keys)]))
    n = machine.n
    require("sink" not in names or (type(sink) is int and 0 <= sink < n), "the sink is not a state")
    if "vectors" in names:
        rows = [as_list(vector) for vector in as_list(certificate["vectors"])]
        require(len(rows) == n, "there are vectors of other states")
        d = len(rows[0])
        require(all(len(vector) == d for vector in rows), "the vectors have unlike lengths")
        require(all(type(x) is int for vector in rows for x in vector), "a vector is not of integers")
        require(len({tuple(vector) for vector in rows}) == n, "two states have the same vector")
    else:
        spend(2 * n * n)
        d, rows = n, [[int(i == q != sink) for i in range(n)] for q in range(n)]
    vectors = [{i: x for i, x in enumerate(row) if x} for row in rows]
    is_complete = len(as_list(keys)) == len(as_list(shifts)) == len(rates) == len(machine.delta)
    require(is_complete, "there are keys, rates or shifts of other letters")
    spend(2 * n * d * len(machine.delta))
    for a, row in enumerate(machine.delta):
        written = [*as_list(keys[a]), shifts[a]]
        require(all(len(as_list(key)) == d for key in written), "a key or a shift has other entries than states")
        require(all(type(k) is int for key in written for k in key), "a key or a shift is not of integers")
        most = len(keys[a]) if form.factors is None else form.factors
        require(len(keys[a]) <= most, f"letter {a} has {len(keys[a])} factors, more than {most}")
        factors = [[(i, k) for i, k in enumerate(key) if k] for key in keys[a]]
        beta = rationals(rates[a], len(factors))
        require(sum(b.denominator.bit_length() - 1 for b in beta) <= MAX_BITS, f"letter {a} has too long rates")
        lengths = [b * sum(k * k for _, k in key) for b, key in zip(beta, factors, strict=True)]
        is_short = all(0 <= length <= largest for length in lengths)
        require(is_short, f"a factor of letter {a} has a beta outside [0, {largest}], for a key of length 1")
        for q, target in enumerate(row):
            x = dict(vectors[q])
            for b, key in zip(beta, factors, strict=True):
                spend(len(key) + len(x))
                # (I − β k kᵀ) x = x − β (k·x) k.
                along = b * sum(k * x.get(i, 0) for i, k in key)
                x |= {i: x.get(i, 0) - along * k for i, k in key}
            reached = [x.get(i, 0) + v for i, v in enumerate(shifts[a])]
            fault = f"the factors of letter {a} do not lead from state {q} to state {target}"
            require(reached == rows[target], fault)
    return d


def _tables(certificate: dict[str, Any], *names: str) -> tuple[int, list[list[list[int]]]]:
    tables = [[as_list(row) for row in as_list(certificate[name])] for name in names]
    scale, numbers = integers([text for table in tables for row in table for text in row])
    rest = iter(numbers)
    return scale, [[[next(rest) for _ in row] for row in table] for table in tables]
