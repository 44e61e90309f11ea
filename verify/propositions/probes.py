"""Exact probes of kernels: why the correct result is one bit pattern, and that the generated words satisfy it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
from typing import cast

import torch
from hypothesis import strategies as st
from torch import Tensor

from fsa2lrnn.probes import OPERATORS, Audit, InexactProbe
from fsa2lrnn.probes.audit import BITS
from fsa2lrnn.probes.calls import Caller
from fsa2lrnn.probes.cases import SIZES, Case, backward, gate_case, outside_bound, with_gradients, word, zero_state
from fsa2lrnn.probes.forms import invert_by_rows
from fsa2lrnn.probes.operators import Operator, reference, sequential
from fsa2lrnn.probes.random_words import Magnitudes
from verify.propositions.registry import Answer, Effort, Proposition, Proved, Tested, refuted, trial

_SOURCE = "docs/kernel-probes.md"
_TOKENS, _CHUNK = 34, 16  # two chunks and two tokens
_TERMS = st.lists(st.integers(-(2**10), 2**10), min_size=1, max_size=60)
Terms = tuple[list[int], int, list[int]]


def sums_do_not_round(effort: Effort, limit: int = 8) -> Answer:
    """Sum integers with Σ|terms| ≤ 2^limit in random orders in bfloat16, whose significand has 8 bits."""

    def fault(case: Terms) -> str | None:
        terms, exponent, order = case
        kept = list[int]()
        for term in terms:
            if sum(map(abs, kept)) + abs(term) <= 2**limit:
                kept.append(term)
        parts = [torch.tensor(float(t) * 2.0**exponent, dtype=torch.bfloat16) for t in kept] or [torch.zeros(())]
        for at in order:  # add two of them, wherever they are, until one is left
            if len(parts) > 1:
                first = parts.pop(at % len(parts))
                parts[at % len(parts)] += first
        total = float(sum(parts, torch.zeros((), dtype=torch.float64)))
        exact = sum(kept) * 2.0**exponent
        return (
            None if total == exact else f"{kept} · 2^{exponent} add up to {total} in the order {order}, not to {exact}"
        )

    cases = st.tuples(_TERMS, st.integers(-20, 20), st.lists(st.integers(0, 99), max_size=60))
    return trial("integers, exponents and orders", cases, fault, effort)


def roots_of_e8() -> list[tuple[int, ...]]:
    """Return twice the 240 roots: ±e_i ± e_j, and (±½, …, ±½) with an even number of minus signs."""
    pairs = [
        tuple(2 * s if c == i else 2 * t if c == j else 0 for c in range(8))
        for i in range(8) for j in range(i) for s, t in product((-1, 1), repeat=2)
    ]  # fmt: skip
    return pairs + [signs for signs in product((-1, 1), repeat=8) if signs.count(-1) % 2 == 0]


def roots_are_closed(effort: Effort, roots: Callable[[], list[tuple[int, ...]]] = roots_of_e8) -> Answer:
    """Reflect every root in every root and take all inner products, in integers."""
    vectors = roots()
    members, cases = set(vectors), 0
    for a in effort.track(vectors):
        for b in vectors:
            inner = sum(x * y for x, y in zip(a, b, strict=True))  # four times that of the roots
            if inner not in (-8, -4, 0, 4, 8):
                return refuted(f"the inner product of {a} and {b}, halved, is {inner / 4}", a=a, b=b)
            cases += 1
            image = tuple(y - inner // 4 * x for x, y in zip(a, b, strict=True))
            if image not in members:
                return refuted(f"the reflection of {b} in {a} leaves the root system", a=a, b=b)
    return Proved("240 roots, every reflection of every root, in integers", cases)


def inverse_is_a_product(effort: Effort, invert: Callable[[Tensor], Tensor] = invert_by_rows) -> Answer:
    """Compare the entries of the inverse with −β_i k_iᵀ P_{i−1} ⋯ P_{j+1} k_j, on words of the delta rule."""
    cases = 0
    for seed in effort.track(range(max(1, effort.examples // 25))):
        x = word(OPERATORS["delta_rule"], seed, SIZES[torch.float32], 40, batch=1, heads=1, state=True).inputs
        k, beta = x["k"][0, :, 0], x["beta"][0, :, 0]
        inverse = invert((beta[:, None] * (k @ k.T)).tril(-1))
        for j in range(40):
            image = k[j]
            for i in range(j + 1, 40):
                cases += 1
                if inverse[i, j] != -beta[i] * (k[i] @ image):
                    return refuted(
                        f"entry ({i}, {j}) of seed {seed} is {float(inverse[i, j])}", seed=seed, entry=[i, j]
                    )
                image = image - beta[i] * k[i] * (k[i] @ image)
                if abs(float(inverse[i, j])) > 2:
                    return refuted(f"entry ({i}, {j}) is {float(inverse[i, j])}, above 2", seed=seed, entry=[i, j])
    return Tested("words of 40 letters of the delta rule", cases, effort.seed)


def every_operation_is_exact(
    effort: Effort, op: str, sizes: Mapping[torch.dtype, Magnitudes] = SIZES, gradients: bool = True
) -> Answer:
    """Audit words in the sequential form and all others, forward and backward, with tensors stored in each dtype."""
    operator, operations = OPERATORS[op], 0
    for seed in effort.track(range(max(1, effort.examples // 25))):
        # One dtype per seed, that with the fewest bits first.
        dtype, size = sorted(sizes.items(), key=lambda item: BITS[item[0]])[seed % len(sizes)]
        case = word(operator, seed, size, _TOKENS, batch=1, heads=1, state=bool(seed % 2))
        for run in _forms(operator):
            try:
                with Audit(dtype) as audit:
                    run(case.inputs, _start(operator, case))
                operations += audit.operations
                operations += _backward(operator, seed, dtype, run) if gradients else 0
            except InexactProbe as error:
                return refuted(f"seed {seed}, {dtype}: {error}", seed=seed, dtype=str(dtype))
    return Tested(f"words of {_TOKENS} letters, each operation of every form", operations, effort.seed)


def _forms(operator: Operator) -> Iterable[Callable[[dict[str, Tensor], Tensor], tuple[Tensor, Tensor]]]:
    yield lambda x, S: sequential(operator, x, S)
    for form in operator.forms.values():
        yield partial(_chunked, form)


def _chunked(form: Callable[..., tuple[Tensor, Tensor]], x: dict[str, Tensor], S: Tensor) -> tuple[Tensor, Tensor]:
    return form(x, S, _CHUNK)


def _start(operator: Operator, case: Case) -> Tensor:
    return zero_state(operator, case) if case.state is None else case.state


def _backward(
    operator: Operator, seed: int, dtype: torch.dtype, run: Callable[[dict[str, Tensor], Tensor], tuple[Tensor, Tensor]]
) -> int:
    case = with_gradients(operator, seed, dtype, _TOKENS)
    leaves = {n: t.clone().requires_grad_(n != "p") for n, t in case.inputs.items()}
    S = _start(operator, case).clone().requires_grad_()
    with Audit(dtype) as audit:
        o, final = run(leaves, S)
        backward({n: t for n, t in leaves.items() if t.requires_grad}, S, o * case.scale, final, case)
    return audit.operations


def gates_stay_within_bounds(effort: Effort, base: float = 1.0) -> Answer:
    """Compare the sequential and the chunked forms in float32 and bfloat16 with the certified bounds."""
    cases = 0
    gated = [op for op in OPERATORS.values() if op.wide and op.name != "state_passing"]
    for seed, op in effort.track(list(product(range(max(1, effort.examples // 50)), gated))):
        case = gate_case(op, seed)
        for form, dtype in product(("sequential", *op.forms), (torch.float32, torch.bfloat16)):
            gate = next(iter(op.wide))
            slower = {**case.inputs, gate: case.inputs[gate] * base}
            tensors = Caller(op, reference(op.name, form, _CHUNK)).prepare(slower, dtype)
            o, S = Caller(op, reference(op.name, form, _CHUNK))(tensors, case.state, case.scale)
            cases += 1
            if (sentence := outside_bound(op, case, {"o": o, "state": cast("Tensor", S)}, dtype)) is not None:
                return refuted(f"{op.name}, {form}, {dtype}: {sentence}", op=op.name, seed=seed)
    return Tested("words of 70 tokens with gates of −1/8 to −1/2", cases, effort.seed)


_BITS = ", ".join(f"{str(dtype).removeprefix('torch.')} ({bits} bits)" for dtype, bits in BITS.items())
PROPOSITIONS = (
    Proposition(
        "probe-sums",
        "A sum of multiples of 2^e with Σ|terms| ≤ 2^p·2^e is computed without rounding in every order by a format "
        "with p significant bits.",
        "exponents within the range of the format",
        _SOURCE,
        sums_do_not_round,
        Tested,
    ),
    Proposition(
        "probe-roots",
        "The 240 roots of E8 are closed under their reflections, and the inner product of two of them is 0, ±1 or ±2.",
        "integer arithmetic on doubled coordinates",
        _SOURCE,
        roots_are_closed,
        Proved,
    ),
    Proposition(
        "probe-inverse",
        "Entry (i, j) of the triangular inverse of a chunk is −β_i k_iᵀ P_{i−1} ⋯ P_{j+1} k_j with P = I − β k kᵀ, and "
        "at most 2 on words of the delta rule.",
        "float64, in which these words are exact",
        _SOURCE,
        inverse_is_a_product,
        Tested,
    ),
    *(
        Proposition(
            f"probe-{name}",
            f"On words of the family of {name}, no operation of any form, forward or backward, rounds.",
            f"tensors stored in {_BITS}, sums of 24 bits; chunks of {_CHUNK} with the inverse by rows and by blocks",
            _SOURCE,
            partial(every_operation_is_exact, op=name),
            Tested,
        )
        for name in OPERATORS
    ),
    Proposition(
        "probe-gates",
        "Sequential and chunked forms stay within the certified bounds where gates are neither 0 nor 1.",
        "float32 and bfloat16, the state in float32",
        _SOURCE,
        gates_stay_within_bounds,
        Tested,
    ),
)
