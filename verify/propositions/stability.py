"""The guarantees of a bound on column norms: the paper's Eqs. 6 and 7, and its choice p = 1.2."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from fsa2lrnn.nn.normalise import normalise
from fsa2lrnn.testing.strategies import block_transitions
from verify.propositions.registry import Answer, Effort, Proposition, Proved, Refuted, Tested, Undecided, refuted, trial
from verify.stability import FORMATS, growth_bound, measured_overflow, overflow_length, witness

ROUNDING = 1e-12  # relative, of a p-norm in float64
TEST_LENGTH = 500  # the length at which the paper tests

Rule = Callable[[Tensor, str, float], Tensor]
Block = Callable[[int, float, bool], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Ball:
    """A unit ball by its extreme points, integer vectors, and its norm, exact on rationals."""

    name: str
    extreme_points: Callable[[int], Iterator[tuple[int, ...]]]
    norm: Callable[[list[Fraction]], Fraction]


def _signed_units(b: int) -> Iterator[tuple[int, ...]]:
    for i, sign in itertools.product(range(b), (1, -1)):
        yield tuple(sign * (i == j) for j in range(b))


ONE_NORM = Ball("1-norm", _signed_units, lambda v: sum(map(abs, v), Fraction(0)))


def closed_under_products(effort: Effort, ball: Ball = ONE_NORM) -> Answer:
    """Check Eq. 7 on extreme points, then on random rational matrices.

    ‖column of AB‖ is convex in A and in B, so over the set of admissible matrices, a polytope, it is largest where the
    columns of both are extreme points of the ball.
    """
    pairs = 0
    for b in (1, 2, 3):
        matrices = [np.array(columns).T for columns in itertools.product(ball.extreme_points(b), repeat=b)]
        for A in effort.track(matrices):
            products = A @ np.stack(matrices)  # (N, b, b)
            for column in np.unique(products.swapaxes(1, 2).reshape(-1, b), axis=0).tolist():
                if (size := ball.norm([Fraction(x) for x in column])) > 1:
                    return refuted(
                        f"b = {b}: a product has a column {column} of {ball.name} {size}", b=b, column=column
                    )
            pairs += len(matrices)

    def fault(case: tuple[list[list[Fraction]], list[list[Fraction]]]) -> str | None:
        A, B = (np.array(columns, dtype=object).T for columns in case)
        sizes = [ball.norm(column) for column in (A @ B).T.tolist()]
        return None if max(sizes) <= 1 else f"a product has a column of {ball.name} {max(sizes)}"

    drawn = trial("", _rational_pairs(ball), fault, effort)
    if not isinstance(drawn, Tested):
        return drawn
    how = (
        f"all {pairs:,} pairs of extreme matrices for b ≤ 3, on which a convex function is largest; every b by the "
        f"proof of S1; {drawn.cases} random pairs of rational matrices with b ≤ 5 besides"
    )
    return Proved(how, pairs + drawn.cases)


@st.composite
def _rational_pairs(draw: st.DrawFn, ball: Ball) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    b = draw(st.integers(1, 5))
    column = st.lists(st.integers(-6, 6), min_size=b, max_size=b).map(lambda v: _within(v, ball))
    matrix = st.lists(column, min_size=b, max_size=b)
    return draw(matrix), draw(matrix)


def _within(column: list[int], ball: Ball) -> list[Fraction]:
    exact = [Fraction(x) for x in column]
    return [x / max(Fraction(1), ball.norm(exact)) for x in exact]


def growth_is_bounded(effort: Effort, bound: Callable[[int, float], float] = growth_bound) -> Answer:
    """Check ‖A x‖_p ≤ b^{1−1/p} ‖x‖_p on random blocks, with equality on the witness."""
    for b, p in effort.track(list(itertools.product((1, 2, 3, 5, 8, 64), (1.0, 1.2, 1.5, 2.0, 4.0)))):
        A, s = witness(b, p)
        reached = _norm(A @ s, p) / _norm(s, p)
        if abs(reached - bound(b, p)) > ROUNDING * reached:
            return refuted(f"b = {b}, p = {p}: the witness grows by {reached}, the bound is {bound(b, p)}", b=b, p=p)

    def fault(case: tuple[float, Tensor, list[int]]) -> str | None:
        p, A, x = case
        vector = torch.tensor(x, dtype=torch.float64)
        before, after = _norm(vector, p), _norm(A[0, 0] @ vector, p)
        largest = bound(len(x), p) * before
        return None if after <= largest * (1 + ROUNDING) else f"p = {p}: ‖Ax‖ = {after} exceeds {largest}"

    return trial(
        "random blocks with columns in the unit ball, p from 1 to 4; the witness attains", _cases(), fault, effort
    )


@st.composite
def _cases(draw: st.DrawFn) -> tuple[float, Tensor, list[int]]:
    p, b = draw(st.sampled_from([1.0, 1.2, 1.5, 2.0, 4.0])), draw(st.integers(1, 6))
    A = draw(block_transitions(p, b, heads=1, length=1))
    return p, A, draw(st.lists(st.integers(-9, 9), min_size=b, max_size=b))


def no_state_grows(
    effort: Effort, p: float = 1.2, rule: str = "clip", apply: Rule = normalise, block: Block = witness
) -> Answer:
    """Search for a block that the rule leaves unchanged and that stretches a vector at every step; then run it.

    `Refuted` if there is one, with the length at which each float format overflows; `Undecided` if none was found.
    """
    for b in effort.track([8, 5, 2, 64] if rule == "clip" else [8, 2, 64]):
        A, s = block(b, p, rule == "paper")
        kept = apply(A, rule, p)
        growth = _norm(kept @ s, p) / _norm(s, p)
        if not torch.allclose(kept, A, rtol=ROUNDING, atol=0) or growth <= 1 + ROUNDING:
            continue
        lengths = {name: overflow_length(b, p, dtype) for name, dtype in FORMATS.items()}
        measured = {name: measured_overflow(b, p, dtype, rule) for name, dtype in FORMATS.items()}
        shown = ", ".join(f"{name} {lengths[name]} (measured {measured[name]})" for name in FORMATS)
        kind = "b^{−1/p} s sᵀ with half of s = −1" if rule == "paper" else "b^{−1/p} 11ᵀ"
        return refuted(
            f"A = {kind}, b = {b}: columns of {p}-norm 1, yet a state grows by b^(1−1/p) = {growth:.4f} a step and "
            f"overflows after {shown} steps; the paper tests at length {TEST_LENGTH}",
            b=b,
            p=p,
            growth=growth,
            overflow=lengths,
            measured=measured,
        )
    return Undecided("blocks s sᵀ of sizes 2, 5, 8 and 64")


def no_state_grows_when_centred(
    effort: Effort, p: float = 1.2, apply: Rule = normalise, block: Block = witness
) -> Answer:
    """Search for such a block under the rule of the published code."""
    return no_state_grows(effort, p, "paper", apply, block)


def norms_fall_with_p(effort: Effort, norm: Callable[[Tensor, float], float] | None = None) -> Answer:
    """Check ‖v‖_p ≥ ‖v‖_q for p ≤ q."""
    measure = norm or _norm

    def fault(case: tuple[list[int], list[float]]) -> str | None:
        vector, (p, q) = torch.tensor(case[0], dtype=torch.float64), sorted(case[1])
        small, large = measure(vector, q), measure(vector, p)
        return None if small <= large * (1 + ROUNDING) else f"‖{case[0]}‖ is {large} for p = {p}, {small} for q = {q}"

    order = st.sampled_from([1.0, 1.2, 1.5, 2.0, 3.0, 7.5])
    vectors = st.lists(st.integers(-9, 9), min_size=1, max_size=6)
    return trial("random integer vectors", st.tuples(vectors, st.lists(order, min_size=2, max_size=2)), fault, effort)


def clip_meets_the_bound(effort: Effort, apply: Rule = normalise) -> Answer:
    """Check that v / max(1, ‖v‖_p) has p-norm at most 1, and equals v where that already holds."""

    def fault(case: tuple[float, list[list[int]]]) -> str | None:
        p, rows = case
        A = torch.tensor(rows, dtype=torch.float64) / 4
        clipped = apply(A, "clip", p)
        for column, result in zip(A.unbind(1), clipped.unbind(1), strict=True):
            if _norm(result, p) > 1 + ROUNDING:
                return f"p = {p}: {column} is clipped to norm {_norm(result, p)}"
            if _norm(column, p) <= 1 - ROUNDING and not torch.equal(column, result):
                return f"p = {p}: {column} is short enough, yet becomes {result}"
        return None

    square = st.integers(1, 5).flatmap(
        lambda b: st.lists(st.lists(st.integers(-8, 8), min_size=b, max_size=b), min_size=b, max_size=b)
    )
    return trial("random blocks in float64", st.tuples(st.sampled_from([1.0, 1.2, 2.0, 7.5]), square), fault, effort)


def _norm(vector: Tensor, p: float) -> float:
    return float(vector.abs().pow(p).sum().pow(1 / p))


_SECTION = "the paper, Block-diagonal Input-dependent LRNN"

PROPOSITIONS = (
    Proposition(
        "eq-7",
        "Matrices whose columns have 1-norm at most 1 are closed under products, so that no product of them is large.",
        "p = 1, exact arithmetic",
        "the paper, Eq. 7; docs/theory.md, S1",
        closed_under_products,
        Proved,
    ),
    Proposition(
        "eq-6",
        "v ↦ v / max(1, ‖v‖_p) gives columns of p-norm at most 1 and leaves shorter ones as they are.",
        "float64, up to rounding of the norm",
        "the paper, Eq. 6",
        clip_meets_the_bound,
        Tested,
    ),
    Proposition(
        "norm-order",
        "‖v‖_p ≥ ‖v‖_q for p ≤ q, so that a smaller p is a stronger constraint.",
        "1 ≤ p ≤ q",
        _SECTION,
        norms_fall_with_p,
        Tested,
    ),
    Proposition(
        "growth-bound",
        "A block of size b with columns of p-norm at most 1 stretches no vector by more than b^{1−1/p}, and one of "
        "them does stretch by that.",
        "p ≥ 1",
        "docs/theory.md, S2",
        growth_is_bounded,
        Tested,
    ),
    Proposition(
        "p-1.2-stable",
        "p = 1.2 is small enough to stabilise the block-diagonal recurrence.",
        "any weights that the rule v / max(1, ‖v‖_p) admits, any length",
        f"{_SECTION}, after Eq. 7",
        no_state_grows,
        Refuted,
        instead="p = 1 stabilises (eq-7), and compiled weights meet it; for p > 1 a step stretches by at most "
        "b^(1−1/p) (growth-bound), so products stay finite up to the overflow length given; that trained weights stay "
        "stable is an observation",
    ),
    Proposition(
        "p-1.2-released",
        "The normalisation of the released code (centred columns, largest 1.2-norm 1) stabilises the recurrence.",
        "any weights that the rule admits, any length",
        "the code released with the paper; docs/theory.md, S2",
        no_state_grows_when_centred,
        Refuted,
        instead="centring excludes b^(−1/p) 11ᵀ but not s sᵀ: the bound b^(1−1/p) is attained for every even b",
    ),
)
