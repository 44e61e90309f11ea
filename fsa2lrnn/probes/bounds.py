"""Test gates that no float format represents exactly, within certified bounds.

Exact probes use only the gates 1 and 0, exp of 0 and of `RESET`. So they do not test the size of a gate. Here gates are
multiples of 1/64 with exact sums, and keys overlap: unit keys write coordinates, and keys e_b − e_a with β = ½ copy
half of coordinate a to b. So decays act in Q Kᵀ, in K D Kᵀ, through its inverse and through states.

Bound. A result is a polynomial of the inputs and decays. An algorithm computes it by sums and products, in whose
expansion each monomial occurs once: recurrences, chunks with the inverse by rows, blocks or powers, prefix products.
If a monomial meets at most m roundings of unit roundoff u (tensors stored in the dtype) and n of unit roundoff w = 2⁻²⁴
(sums, products and exponentials in float32), the error is at most ((1 + u)^m (1 + w)^n − 1) M, where M is the sum of
the absolute values of all monomials: the recurrence on absolute values. The state must accumulate in float32.
"""

from __future__ import annotations

import random
from dataclasses import replace
from math import prod

import torch
from torch import Tensor

from .audit import BITS
from .cases import Case, expected
from .operators import Operator
from .random_words import KEYS, VALUES, add, unit

# The most roundings to the dtype of a monomial: gated q and k, both factors of a decay, scores, gated state, new
# values, output; and per copy the entry of K D Kᵀ, that of the inverse, and a partial result.
STORED, STORED_PER_COPY = 8, 3
TOKENS = 70  # the least length of the word
INITIAL, WRITTEN, COPIES = 4, 3, 3  # coordinates in the initial state and written later; the most copies of copies
GATES = ("g", "w")
TOTAL = 8.0  # gates of a word sum to at least −TOTAL
KIND = "gates within certified bounds"


def gate_case(op: Operator, seed: int, T: int = TOKENS) -> Case:
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
    remaining = [TOTAL] * prod(op.tensors[gate])
    for t in range(T):
        token = {name: [0.0] * prod(shape) for name, shape in op.tensors.items()}
        for channel, left in enumerate(remaining):
            g = rng.randint(8, 32) / 64 if rng.random() < 20 / T else 0.0
            # Gates of a channel sum to at least −TOTAL, which bounds the exponentials' arguments in `bound`.
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
    return Case(KIND, inputs, torch.tensor(state, dtype=torch.float64)[None, None])


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
    return (1 + u) ** (STORED + STORED_PER_COPY * links) * (1 + w) ** ((links + 2) * (T + 6 * TOTAL / 0.69 + 16)) - 1


def sizes(op: Operator, case: Case) -> dict[str, Tensor]:
    """Return the sum of the absolute values of the monomials of each result, by the recurrence on absolute values."""
    inputs = {name: t if name in GATES else t.abs() for name, t in case.inputs.items()}
    if "beta" in inputs:  # the difference v − kᵀS becomes a sum
        # −β k (−v − kᵀS) = β k (v + kᵀS): the same recurrence adds all absolute values.
        inputs |= {name: -inputs[name] for name in ("v", "beta")}
    return expected(op, replace(case, inputs=inputs, state=None if case.state is None else case.state.abs()))


def outside(op: Operator, case: Case, computed: dict[str, Tensor], dtype: torch.dtype) -> str | None:
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
