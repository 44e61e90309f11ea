"""Test gates that no float format represents exactly, within certified bounds.

Exact probes use only the gates 1 and 0, exp of 0 and of `RESET`. So they do not test the base of the exponential or
the size of a gate. Here every coordinate is written once, with a unit key: no two keys overlap, the triangular inverse
is the identity, and each output is one product q · v · exp(Σ g). The log gates are multiples of 1/64 with exact sums.

Bound. The relative error of one product is at most (1 + u)^m (1 + w)^n − 1 in every order, with m roundings of unit
roundoff u (tensors stored in the dtype: gated q, gated k, scores, gated state, new values, output, and two to
spare) and n of unit roundoff w = 2⁻²⁴ (one product per token, the conversion to base 2 with an argument of at most
Σ|g| / ln 2, and the exponential itself, 4 units). The state must accumulate in float32, as all chunked kernels do.
"""

from __future__ import annotations

import random
from math import prod

import torch
from torch import Tensor

from .audit import BITS
from .cases import Case, expected
from .operators import Operator
from .words import KEYS, VALUES, unit

STORED = 8  # the most roundings to the dtype on one path
TOKENS = 70  # the length of the word
GATES = ("g", "w")
KIND = "gates within certified bounds"


def gate_case(op: Operator, seed: int, T: int = TOKENS) -> Case:
    """Return a case in which each coordinate is written once and then decays by gates of −1/8 to −1/2.

    The outputs read one coordinate each. Raises `StopIteration` for an operator without log gates.
    """
    rng, gate = random.Random(seed), next(name for name in GATES if name in op.tensors)
    n = op.factors.get("k", 1)
    rows: dict[str, list[list[float]]] = {name: [] for name in op.tensors}
    order = rng.sample(range(KEYS), KEYS)
    written = {order.pop() for _ in range(KEYS // 2)}  # these hold the initial state
    state = [[float(rng.randint(1, 3)) if i in written else 0.0 for _ in range(VALUES)] for i in range(KEYS)]
    for _ in range(T):
        token = {name: [0.0] * prod(shape) for name, shape in op.tensors.items()}
        channels = [rng.randint(-32, -8) / 64 if rng.random() < 0.06 else 0.0 for _ in token[gate]]
        token[gate] = channels
        key, value, beta = [0.0] * KEYS, [0.0] * VALUES, 0.0
        if order and rng.random() < 0.2:
            i = order.pop()
            written.add(i)
            key, value, beta = unit(i), [float(rng.randint(1, 3)) for _ in range(VALUES)], 1.0
        read = unit(rng.choice(sorted(written)))
        for name, content in (("q", read), ("r", read), ("k", key), ("v", value), ("beta", [beta]), ("states", value)):
            if name in token:
                token[name] = content
        for name, content in token.items():
            idle = [[0.0] * len(content)] * (op.factors.get(name, 1) - 1)
            rows[name] += [content, *idle]
    inputs = {
        name: torch.tensor(rows[name], dtype=torch.float64).reshape(1, -1, 1, *s) for name, s in op.tensors.items()
    }
    assert n == op.factors.get("v", n)
    return Case(KIND, inputs, torch.tensor(state, dtype=torch.float64)[None, None])


def bound(op: Operator, case: Case, dtype: torch.dtype) -> float:
    """Return the bound on the relative error for any order of operations, which the module's docstring derives.

    >>> from .operators import OPERATORS
    >>> op = OPERATORS["simple_gla"]
    >>> bound(op, gate_case(op, 0), torch.bfloat16) < 0.035
    True
    """
    gate = next(name for name in GATES if name in op.tensors)
    total = float(case.inputs[gate].abs().sum(1).max())
    u, w, T = 2.0 ** -BITS[dtype], 2.0**-24, op.length(case.inputs)
    return (1 + u) ** STORED * (1 + w) ** (T + 3 * total / 0.69 + 8) - 1


def outside(op: Operator, case: Case, computed: dict[str, Tensor], dtype: torch.dtype) -> str | None:
    """Return a sentence on the first result of wrong shape or outside the bound, or `None` if all are within it."""
    limit = bound(op, case, dtype)
    for name, right in expected(op, case).items():
        mine = computed[name].to("cpu").double()
        if mine.shape != right.shape:
            return f"{name} has shape {tuple(mine.shape)}, expected {tuple(right.shape)}"
        wrong = ~((mine - right).abs() <= limit * right.abs())
        if bool(wrong.any()):
            at = tuple(wrong.nonzero()[0].tolist())
            ratio = float(mine[at] / right[at]) if float(right[at]) else float("inf")
            return (
                f"{name}{list(at)} is {float(mine[at])!r}, expected {float(right[at])!r} within {limit:.2g} relative: "
                f"the ratio is {ratio:.6g}"
            )
    return None
