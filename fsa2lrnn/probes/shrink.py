"""Shrink a failing case to a short word: fewer sequences, heads and tokens, and simpler letters."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from .audit import Audit, InexactProbe
from .cases import Case, expected
from .operators import Operator

CALLS, SECONDS = 1000, 8.0  # limits of the search


def shrink(op: Operator, case: Case, dtype: torch.dtype, fails: Callable[[Case], bool]) -> Case:
    """Return a simpler case that fails, found by accepting simplifications until none fails or a limit is reached.

    Args:
        op: the operator.
        case: a case that fails.
        dtype: the format in which the result must be exact as well; if it is not, `case` is returned.
        fails: a function that returns whether the kernel computes a wrong value on a case.
    """
    deadline, calls, improved, first = time.monotonic() + SECONDS, 0, True, case
    while improved:
        improved = False
        for smaller in simpler(op, case):
            if calls >= CALLS or time.monotonic() > deadline:
                return case if is_exact(op, case, dtype) else first
            calls += 1
            if fails(smaller) and _fits(op, smaller, dtype):
                case, improved = smaller, True
                break
    return case if is_exact(op, case, dtype) else first


def _fits(op: Operator, case: Case, dtype: torch.dtype) -> bool:
    """Return whether a dtype represents all correct results of a case: a quick test before the audit."""
    return all(torch.equal(x, x.to(dtype).double()) for x in expected(op, case).values())


def is_exact(op: Operator, case: Case, dtype: torch.dtype) -> bool:
    """Return whether the audit proves a case exact; True without an audit if it is packed or above 300 tokens."""
    if op.length(case.inputs) > 300 or case.lengths:
        return True
    try:
        with Audit(dtype):
            expected(op, replace(case, scale=1.0))
    except InexactProbe:
        return False
    return True


def simpler(op: Operator, case: Case) -> Iterator[Case]:
    """Yield simpler cases, those with the largest simplification first."""
    T = op.length(case.inputs)
    first = case.inputs[next(iter(op.tensors))]
    if case.lengths:
        starts = [sum(case.lengths[:i]) for i in range(len(case.lengths))]
        for i, (start, n) in enumerate(zip(starts, case.lengths, strict=True)):
            state = None if case.state is None else case.state[i : i + 1]
            yield replace(case, inputs=op.cut(case.inputs, start, start + n), state=state, lengths=())
        for i in range(len(case.lengths) if len(case.lengths) > 1 else 0):  # without one of the sequences
            start, stop = starts[i], starts[i] + case.lengths[i]
            rest = case.lengths[:i] + case.lengths[i + 1 :]
            state = None if case.state is None else torch.cat([case.state[:i], case.state[i + 1 :]])
            yield replace(case, inputs=_without(op, case.inputs, start, stop), state=state, lengths=rest)
        return
    for b in range(first.shape[0] if first.shape[0] > 1 else 0):
        yield _select(op, case, 0, b)
    if op.heads:
        for h in range(first.shape[2] if first.shape[2] > 1 else 0):
            yield _select(op, case, 2, h)
    if case.cuts:
        yield replace(case, cuts=())
        for i in range(len(case.cuts)):
            yield replace(case, cuts=case.cuts[:i] + case.cuts[i + 1 :])
    if case.state is not None and case.upstream is None:
        yield replace(case, state=None)
    # Shorter prefixes first, then words without an interval, then single letters made idle.
    for stop in sorted({1, 2, 3, 5, 9, 17, 33, 65, 129, 257, T // 4, T // 2, T * 3 // 4, T - 1}):
        if 0 < stop < T:
            yield _shorter(op, case, stop, T)
    if T > 300:
        return
    yield from _zeroed(op, case, T // 8)
    width = T // 2
    while width:
        for start in range(0, T - width + 1, width):
            if width < T:
                yield _shorter(op, case, start, start + width)
        width //= 2
    yield from _zeroed(op, case, 0)


def _zeroed(op: Operator, case: Case, least: int) -> Iterator[Case]:
    """Yield the case with intervals of more than `least` tokens of one tensor set to 0, if 0 is its padding."""
    for name, x in case.inputs.items():
        if name in op.idle or name in op.wide or name in op.static:
            continue
        width = x.shape[1]
        while width > least:
            for start in range(0, x.shape[1], width):
                if bool(x[:, start : start + width].any()):
                    changed = x.clone()
                    changed[:, start : start + width] = 0
                    yield replace(case, inputs={**case.inputs, name: changed})
            width //= 2


def _without(op: Operator, inputs: dict[str, Tensor], start: int, stop: int) -> dict[str, Tensor]:
    T = op.length(inputs)
    before, after = op.cut(inputs, 0, start), op.cut(inputs, stop, T)
    return {n: t if n in op.static else torch.cat([before[n], after[n]], 1) for n, t in inputs.items()}


def _shorter(op: Operator, case: Case, start: int, stop: int) -> Case:
    """Return the case without the tokens from `start` up to `stop`; cuts move with the tokens that follow them."""
    moved = {c if c <= start else max(start, c - (stop - start)) for c in case.cuts}
    inputs = _without(op, case.inputs, start, stop)
    T, upstream = op.length(inputs), case.upstream
    if upstream is not None:
        upstream = torch.cat([upstream[0][:, :start], upstream[0][:, stop:]], 1), upstream[1]
    return replace(
        case,
        inputs=inputs,
        upstream=upstream,
        cuts=tuple(sorted(c for c in moved if 0 < c < T)),
        period=case.period if start == T else 0,
    )


def _select(op: Operator, case: Case, axis: int, index: int) -> Case:
    def pick(t: Tensor, dim: int) -> Tensor:
        return t.narrow(dim, index, 1)

    inputs = {n: t if n in op.static else pick(t, axis) for n, t in case.inputs.items()}
    state = None if case.state is None else pick(case.state, min(axis, 1))
    upstream = case.upstream
    if upstream is not None:
        upstream = (pick(upstream[0], axis), pick(upstream[1], min(axis, 1)))
    return replace(case, inputs=inputs, state=state, upstream=upstream)
