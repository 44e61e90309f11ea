"""Build the cases of a probe, compute the one correct result of each, and bound the error of those that are inexact.

Exact probes use only the gates 1 and 0, exp of 0 and of `RESET`. So they do not test the size of a gate. In the case of
`gate_case` gates are multiples of 1/64, which no float format represents exactly, with exact sums, and keys overlap:
unit keys write coordinates, and keys e_b − e_a with β = ½ copy half of coordinate a to b. So decays act in Q Kᵀ, in
K D Kᵀ, through its inverse and through states.

Bound. A result is a polynomial of the inputs and decays. An algorithm computes it by sums and products, in whose
expansion each monomial occurs once: recurrences, chunks with the inverse by rows, blocks or powers, prefix products.
If a monomial meets at most m roundings of unit roundoff u (tensors stored in the dtype) and n of unit roundoff w = 2⁻²⁴
(sums, products and exponentials in float32), the error is at most ((1 + u)^m (1 + w)^n − 1) M, where M is the sum of
the absolute values of all monomials: the recurrence on absolute values. The state must accumulate in float32.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import prod

import torch
from torch import Tensor

from .audit import BITS, Audit, InexactProbe
from .operators import Operator, sequential
from .random_words import KEYS, RESET, VALUES, Magnitudes, add, draw, draw_state, unit

PERIOD = 4099  # the length of the word that longer words repeat, a prime; it begins by writing every coordinate
LONG = 65_536  # longer words run once, with one sequence and one head
# Words for a dtype: the audit accepts them with every intermediate tensor stored in it (verify/, p-probe-*).
SIZES = {torch.float32: Magnitudes(4095), torch.float16: Magnitudes(127), torch.bfloat16: Magnitudes(15)}
WIDE_QUERY = Magnitudes(3, query=4095)
GRADIENT_SIZES = {
    torch.float32: Magnitudes(63), torch.float16: Magnitudes(3, columns=2), torch.bfloat16: Magnitudes(1, columns=1),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A probe: exact inputs in float64, and the way in which they are passed to the kernel.

    Args:
        kind: the name of the property under test, for messages.
        inputs: the tensors by name, (B, T, H, …); packed sequences are concatenated in a batch of one.
        state: the initial state (N, H, …), or `None`.
        scale: the factor of the outputs.
        cuts: tokens before which the sequence is cut; each piece starts from the state that the previous one returned.
        lengths: the lengths of packed sequences.
        upstream: gradients of the outputs and of the final state; `None` if gradients are not compared.
        period: the period of a long word.
    """

    kind: str
    inputs: dict[str, Tensor]
    state: Tensor | None = None
    scale: float = 1.0
    cuts: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    upstream: tuple[Tensor, Tensor] | None = None
    period: int = 0


def zero_state(op: Operator, case: Case) -> Tensor:
    """Return zeros in the shape of the initial states of a case, float64 (N, H, …)."""
    first = case.inputs[next(iter(op.tensors))]
    heads = (first.shape[2],) if op.heads else ()
    return torch.zeros(len(case.lengths) or first.shape[0], *heads, *op.state, dtype=torch.float64)


def expected(op: Operator, case: Case) -> dict[str, Tensor]:
    """Return the outputs `o`, the final `state` and the gradients of a case, by exact operations in float64."""
    S = zero_state(op, case) if case.state is None else case.state
    if case.upstream is not None:
        return _gradients(op, case, S)
    if case.lengths:
        starts = [sum(case.lengths[:i]) for i in range(len(case.lengths) + 1)]
        parts = [sequential(op, op.cut(case.inputs, a, b), S[i : i + 1]) for i, (a, b) in enumerate(pairwise(starts))]
        o, S = torch.cat([part[0] for part in parts], 1), torch.cat([part[1] for part in parts])
    elif case.period and op.length(case.inputs) > 2 * case.period:
        o, S = _periodic(op, case, S)
    else:
        o, S = sequential(op, case.inputs, S)
    return {"o": o * case.scale, "state": S}


def _periodic(op: Operator, case: Case, S: Tensor) -> tuple[Tensor, Tensor]:
    """Return outputs and final state of a periodic word; raise `InexactProbe` if its states are not periodic."""
    # If two periods end in the same state, so does each later one, with the outputs of the second.
    T, P = op.length(case.inputs), case.period
    first, S1 = sequential(op, op.cut(case.inputs, 0, P), S)
    again, S2 = sequential(op, op.cut(case.inputs, P, 2 * P), S1)
    if not torch.equal(S1, S2):
        raise InexactProbe(
            f"a period of {P} tokens does not end in the state of the one before: it must write every row"
        )
    rest = T % P
    last = sequential(op, op.cut(case.inputs, 0, rest), S2)[1] if rest else S2
    repeated = [again] * (T // P - 1) + ([again[:, :rest]] if rest else [])
    return torch.cat([first, *repeated], 1), last


def _gradients(op: Operator, case: Case, S: Tensor) -> dict[str, Tensor]:
    leaves = {n: t.clone().requires_grad_() for n, t in case.inputs.items() if n != "p"}
    S = S.clone().requires_grad_()
    o, final = sequential(op, {**case.inputs, **leaves}, S)
    return {"o": o.detach() * case.scale, "state": final.detach(), **backward(leaves, S, o * case.scale, final, case)}


def backward(leaves: dict[str, Tensor], S: Tensor | None, o: Tensor, final: Tensor, case: Case) -> dict[str, Tensor]:
    """Return the gradients of all inputs, named "d" + name, for the upstream gradients of a case.

    They include `dstate` if S is not None, and are zeros for inputs that neither o nor `final` depends on.
    """
    assert case.upstream is not None
    into = {**leaves, **({} if S is None else {"state": S})}
    do, dS = (u.to(t) for u, t in zip(case.upstream, (o, final), strict=True))
    gradients = torch.autograd.grad((o, final), tuple(into.values()), (do, dS), allow_unused=True)
    return {f"d{n}": torch.zeros_like(t) if d is None else d for (n, t), d in zip(into.items(), gradients, strict=True)}


# Construction.


def word(op: Operator, seed: int, size: Magnitudes, T: int, *, batch: int, heads: int, state: bool) -> Case:
    """Return a case of `batch` sequences of T tokens with `heads` heads, each with a different random word.

    Args:
        op: the operator; `heads` is ignored if its tensors have no head axis.
        seed: the seed of all words; if it is odd and the operator takes `scale`, the scale is ½, else 1.
        size: bounds on the integers in a word.
        state: whether the case has a drawn initial state; else `Case.state` is None.
    """
    heads = heads if op.heads else 1
    seeds = [[seed + 1009 * (b * heads + h) for h in range(heads)] for b in range(batch)]
    states = [[draw_state(op.state, s + 7, size) if state else None for s in row] for row in seeds]
    drawn = [
        [draw(op.letters, s, size, T, S) for s, S in zip(*pair, strict=True)]
        for pair in zip(seeds, states, strict=True)
    ]
    inputs = dict[str, Tensor]()
    for name, shape in op.tensors.items():
        rows = [torch.stack([w[name].reshape(-1, *shape) for w in row], 1) for row in drawn]
        inputs[name] = torch.stack(rows) if op.heads else torch.stack(rows)[:, :, 0]
    generator = torch.Generator().manual_seed(seed)
    for name, shape in op.static.items():
        inputs[name] = torch.randint(-3, 4, shape, generator=generator).double()
    S = None
    if state:
        S = torch.stack([torch.stack([s for s in row if s is not None]) for row in states])
        S = S if op.heads else S[:, 0]
    return Case("initial state" if state else "whole sequence", inputs, S, scale=0.5 if op.scaled and seed % 2 else 1.0)


def border(op: Operator, seed: int, chunk: int, token: int) -> Case:
    """Return a case whose only reset is at one token, whose gate thus meets a state from the first chunk.

    Its integers are those for bfloat16, since many words without resets need more bits than others. Raises
    `StopIteration` for an operator without log gates.
    """
    size = replace(SIZES[torch.bfloat16], resets=False)
    case = word(op, seed, size, 2 * chunk + 2, batch=1, heads=2, state=False)
    gate = next(name for name in GATES if name in op.tensors)
    gates = case.inputs[gate].clone()
    gates[:, token] = RESET
    return replace(case, kind=f"a reset at token {token} alone", inputs={**case.inputs, gate: gates})


def long_word(op: Operator, seed: int, size: Magnitudes, T: int) -> Case:
    """Return a case of one sequence that repeats a word of `PERIOD` tokens."""
    block = word(op, seed, size, min(T, PERIOD), batch=1, heads=1, state=False)
    inputs = {}
    for name, t in block.inputs.items():
        stop = T * op.factors.get(name, 1)
        inputs[name] = t if name in op.static else t.repeat(1, -(-T // PERIOD), *[1] * (t.dim() - 2))[:, :stop]
    return replace(block, inputs=inputs, period=PERIOD)


def padded(op: Operator, case: Case, before: int, after: int) -> Case:
    """Return a case padded by tokens that change no state, `before` on the left and `after` on the right."""
    inputs = dict(case.inputs)
    for name, shape in op.tensors.items():
        fill, t, n = op.idle.get(name, torch.zeros(shape)), case.inputs[name], op.factors.get(name, 1)
        left, right = (fill.to(t).expand(t.shape[0], k * n, *t.shape[2:]) for k in (before, after))
        inputs[name] = torch.cat([left, t, right], 1)
    return replace(case, kind="left padding" if before else "right padding", inputs=inputs)


def packed(op: Operator, seed: int, size: Magnitudes, lengths: tuple[int, ...], *, state: bool) -> Case:
    """Return a case of several sequences, one per length, concatenated in a batch of one."""
    parts = [word(op, seed + 31 * i, size, T, batch=1, heads=2, state=state) for i, T in enumerate(lengths)]
    inputs = {
        n: t if n in op.static else torch.cat([p.inputs[n] for p in parts], 1) for n, t in parts[0].inputs.items()
    }
    states = torch.cat([p.state for p in parts if p.state is not None]) if state else None
    return replace(parts[0], kind="packed sequences", inputs=inputs, state=states, lengths=lengths)


def with_gradients(op: Operator, seed: int, dtype: torch.dtype, T: int, resets: bool = True) -> Case:
    """Return a case of two sequences of T tokens with sparse upstream gradients of entries 0 and ±1."""
    size = replace(GRADIENT_SIZES[dtype], resets=resets)
    case = replace(word(op, seed, size, T, batch=2, heads=2, state=True), kind="gradients")
    assert case.state is not None
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        o, S = sequential(op, case.inputs, case.state)
    do = torch.randint(-1, 2, o.shape, generator=generator).double()
    do *= torch.rand(o.shape, generator=generator) < 0.5
    # About six tokens per sequence have a gradient, so that its sums over tokens need few bits.
    do *= torch.rand(o.shape[:2], generator=generator).reshape(*o.shape[:2], *[1] * (o.dim() - 2)) < 6 / T
    dS = torch.zeros_like(S)
    if dtype == torch.float32:
        dS = torch.randint(-1, 2, S.shape, generator=generator).double() * (
            torch.rand(S.shape, generator=generator) < 0.2
        )
    return replace(case, upstream=(do, dS))


def all_lengths(chunk_sizes: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the cuts and the lengths of cases with a carried state: near borders of chunks, and single tokens."""
    for c in chunk_sizes:
        T = 2 * c + 2
        yield (c,), T
        yield (1, c - 1, c + 1), T
        yield tuple(range(T - 5, T)), T


@cache
def proved(name: str, dtype: torch.dtype, chunk_sizes: tuple[int, ...], gradients: bool) -> int:
    """Audit a word of an operator in its sequential and chunked forms; return the number of operations proved exact.

    Raises `InexactProbe` if an operation may round.
    """
    from .operators import OPERATORS

    op, count = OPERATORS[name], 0
    T = max(chunk_sizes) + 2
    case = (
        with_gradients(op, 11, dtype, T) if gradients else word(op, 11, SIZES[dtype], T, batch=1, heads=1, state=True)
    )
    runs = [("sequential", 0), *((form, c) for c in chunk_sizes for form in op.forms)]
    for form, c in runs:
        with Audit(dtype) as audit:
            assert case.state is not None
            leaves = {n: t.clone().requires_grad_(gradients and n != "p") for n, t in case.inputs.items()}
            S = case.state.clone().requires_grad_(gradients)
            o, final = sequential(op, leaves, S) if form == "sequential" else op.forms[form](leaves, S, c)
            if gradients:
                backward({n: t for n, t in leaves.items() if t.requires_grad}, S, o * case.scale, final, case)
        count += audit.operations
    return count


# The most roundings to the dtype of a monomial: gated q and k, both factors of a decay, scores, gated state, new
# values, output; and per copy the entry of K D Kᵀ, that of the inverse, and a partial result.
STORED, STORED_PER_COPY = 8, 3
GATE_TOKENS = 70  # the least length of the word
INITIAL, WRITTEN, COPIES = 4, 3, 3  # coordinates in the initial state and written later; the most copies of copies
GATES = ("g", "w")
GATE_TOTAL = 8.0  # gates of a word sum to at least −GATE_TOTAL
GATE_KIND = "gates within certified bounds"


def gate_case(op: Operator, seed: int, T: int = GATE_TOKENS) -> Case:
    """Return a case whose coordinates are written, copied and read once or more under gates of −1/8 to −1/2.

    Raises `StopIteration` for an operator without log gates.
    """
    rng, gate = random.Random(seed), next(name for name in GATES if name in op.tensors)
    factors = op.factors.get("k", 1)
    rows: dict[str, list[list[float]]] = {name: [] for name in op.tensors}
    order = rng.sample(range(KEYS), KEYS)
    copies = {order.pop(): 0 for _ in range(INITIAL)}  # the number of copies that led to a coordinate
    state = [[float(rng.randint(1, 3)) if i in copies else 0.0 for _ in range(VALUES)] for i in range(KEYS)]
    # The tokens that write a coordinate (True) or copy one to it.
    events = {t: n < WRITTEN for n, t in enumerate(rng.sample(range(T - 1), len(order)))}
    remaining = [GATE_TOTAL] * prod(op.tensors[gate])
    for t in range(T):
        token = {name: [0.0] * prod(shape) for name, shape in op.tensors.items()}
        for channel, left in enumerate(remaining):
            g = rng.randint(8, 32) / 64 if rng.random() < 20 / T else 0.0
            # Gates of a channel sum to at least −GATE_TOTAL, which bounds the exponentials' arguments in `bound`.
            token[gate][channel], remaining[channel] = -min(g, left), left - min(g, left)
        content = dict[str, list[float]]()
        if t in events:
            i, sources = order.pop(), sorted(c for c, n in copies.items() if n < COPIES)
            if events[t] or not _copies(op):
                copies[i], values = 0, [float(rng.randint(1, 3)) for _ in range(VALUES)]
                content = {"k": unit(i), "v": values, "beta": [1.0], "states": values}
            else:
                j = rng.choice(sources[-4:] if rng.random() < 0.5 else sources)
                copies[i] = copies[j] + 1
                # β k kᵀ S with k = e_i − e_j and β = ½ moves half the difference of the two coordinates.
                content = {"k": add(unit(i), unit(j, -1.0)), "beta": [0.5]}
                content = {"a": unit(j), "b": unit(i, 0.5)} if "a" in token else content
        read = unit(rng.choice(sorted(copies)))
        at = rng.randrange(factors)
        for name in token:
            entry = {**content, "q": read, "r": read}.get(name, token[name])
            idle = [[0.0] * len(entry)] * (op.factors.get(name, 1) - 1)
            rows[name] += [*idle[:at], entry, *idle[at:]]
    inputs = {
        name: torch.tensor(rows[name], dtype=torch.float64).reshape(1, -1, 1, *s) for name, s in op.tensors.items()
    }
    return Case(GATE_KIND, inputs, torch.tensor(state, dtype=torch.float64)[None, None])


def _copies(op: Operator) -> bool:
    return "beta" in op.tensors or "a" in op.tensors


def bound(op: Operator, case: Case, dtype: torch.dtype) -> float:
    """Return the bound on the error for any order of operations, relative to the sum of absolute monomials.

    >>> from .operators import OPERATORS
    >>> op = OPERATORS["simple_gla"]
    >>> bound(op, gate_case(op, 0), torch.bfloat16) < 0.035
    True
    """
    links = COPIES if _copies(op) else 0
    u, w, T = 2.0 ** -BITS[dtype], 2.0**-24, op.length(case.inputs) * op.factors.get("k", 1)
    # On the way of a monomial, each copy and the output meet a sum over the tokens, and products with decays that are
    # exponentials of two arguments, each converted to base 2; the last term is the error of the reference in float64.
    return (1 + u) ** (STORED + STORED_PER_COPY * links) * (1 + w) ** (
        (links + 2) * (T + 6 * GATE_TOTAL / 0.69 + 16)
    ) - 1


def sizes(op: Operator, case: Case) -> dict[str, Tensor]:
    """Return the sum of the absolute values of the monomials of each result, by the recurrence on absolute values."""
    inputs = {name: t if name in GATES else t.abs() for name, t in case.inputs.items()}
    if "beta" in inputs:  # the difference v − kᵀS becomes a sum
        # −β k (−v − kᵀS) = β k (v + kᵀS): the same recurrence adds all absolute values.
        inputs |= {name: -inputs[name] for name in ("v", "beta")}
    return expected(op, replace(case, inputs=inputs, state=None if case.state is None else case.state.abs()))


def outside_bound(op: Operator, case: Case, computed: dict[str, Tensor], dtype: torch.dtype) -> str | None:
    """Return a sentence on the first result of wrong shape or outside the bound, or `None` if all are within it."""
    limit, whole = bound(op, case, dtype) + 2.0**-40, sizes(op, case)
    for name, right in expected(op, case).items():
        mine = computed[name].to("cpu").double()
        if mine.shape != right.shape:
            return f"{name} has shape {tuple(mine.shape)}, expected {tuple(right.shape)}"
        # Subnormal numbers round with an absolute error; the factors that follow are at most 16.
        size = whole[name] + (whole[name] > 0) * 16 * torch.finfo(dtype).smallest_normal
        wrong = ~((mine - right).abs() <= limit * size)
        if bool(wrong.any()):
            at = tuple(wrong.nonzero()[0].tolist())
            return (
                f"{name}{list(at)} is {float(mine[at])!r}, expected {float(right[at])!r} within "
                f"{limit * float(size[at]):.2g}"
            )
    return None
