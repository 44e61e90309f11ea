"""Shrink a failing case to a short word, and diagnose the fault by comparison with the results of wrong definitions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from .audit import Audit, InexactProbe
from .calls import Caller, WrongResult
from .cases import Case, expected
from .differences import Difference, counted, difference
from .operators import Operator
from .random_words import RESET

ROUNDING = 2.0**-5  # errors up to this part of the largest value are attributed to rounding
RESIDUE = 2.0**-60  # a wrong value below it, in place of 0, is what a gate should have cleared
# What a kernel may be that is exact for gates of 0 alone, though correct in the range for which it was written.
FACTORISED = (
    ", as from decays of the wrong sign, or in the factorised form exp(g_i − r) exp(r − g_j), which overflow or round "
    "where gates sum below about −80: if the kernel is meant for a smaller range, pass it, such as gates=(-80, 0)"
)
Change = Callable[[Tensor], Tensor]


def _changed(case: Case, name: str, change: Change) -> Case:
    return replace(case, inputs={**case.inputs, name: change(case.inputs[name])})


def wrong_definitions(op: Operator, case: Case) -> Iterator[tuple[str, Case]]:
    """Yield fault classes, each with the case whose correct result equals that of a kernel with this fault."""
    for name in op.wide:
        yield f"gate sign: as if {name} were negated", _changed(case, name, lambda t: -t)
        yield f"wrong decay: as if {name} were 0", _changed(case, name, torch.zeros_like)
        yield f"wrong decay: as if {name} acted one token late", _changed(case, name, lambda t: _shift(t, 1))
        yield f"wrong decay: as if {name} acted one token early", _changed(case, name, lambda t: _shift(t, -1))
    for name in ("a", "d"):
        if name in op.tensors and op.state == op.tensors[name]:
            yield f"wrong decay: as if {name} acted one token late", _changed(case, name, lambda t: _shift(t, 1))
            yield f"wrong decay: as if {name} were squared", _changed(case, name, torch.square)
            yield f"gate sign: as if {name} lost its sign", _changed(case, name, torch.abs)
    if "beta" in op.tensors:
        for how, change in (
            ("negated", torch.neg), ("1", torch.ones_like), ("clamped to at most 1", lambda t: t.clamp(max=1)),
            ("squared", torch.square), ("halved", lambda t: t / 2), ("doubled", lambda t: t * 2),
        ):  # fmt: skip
            yield f"sign or size of beta: as if beta were {how}", _changed(case, "beta", change)
    if case.state is not None:
        yield "state carry: as if the initial state were dropped", replace(case, state=None)
        if case.state.shape[-1] == case.state.shape[-2]:
            yield (
                "state carry: as if the initial state were transposed",
                replace(case, state=case.state.mT.contiguous()),
            )
    if case.lengths and case.state is None:
        yield "variable lengths: the state leaks from one packed sequence into the next", replace(case, lengths=())
    if op.scaled:
        for how, scale in (
            ("1", 1.0), ("squared", case.scale**2), ("0.25", 0.25), ("multiplied by 0.25", 0.25 * case.scale)
        ):  # fmt: skip
            if scale != case.scale:
                yield f"scale: as if the scale were {how}", replace(case, scale=scale)
    if op.heads:
        for name in op.tensors:
            yield f"head index: as if {name} came from the next head", _changed(case, name, lambda t: t.roll(-1, 2))


def _shift(t: Tensor, by: int) -> Tensor:
    moved = t.roll(by, 1)
    moved[:, :by] = 0 if by > 0 else moved[:, :by]
    if by < 0:
        moved[:, by:] = 0
    return moved


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.nan_to_num(7.25, 9e9, -9e9), b.nan_to_num(7.25, 9e9, -9e9))


def pieces(op: Operator, case: Case) -> list[Case]:
    """Split a case at its cuts into separate cases, each from the correct state; return [case] if it has no cuts."""
    if not case.cuts:
        return [case]
    T, S, parts = op.length(case.inputs), case.state, list[Case]()
    for start, stop in zip((0, *case.cuts), (*case.cuts, T), strict=True):
        parts.append(replace(case, inputs=op.cut(case.inputs, start, stop), state=S, cuts=(), kind="one piece"))
        S = expected(op, parts[-1])["state"]
    return parts


TRAITS: dict[str, Callable[[Operator, Case], bool]] = {
    "in packed sequences": lambda _, case: bool(case.lengths),
    "in a batch of one": lambda op, case: case.inputs[next(iter(op.tensors))].shape[0] == 1,
    "in a call with one token": lambda op, case: op.length(case.inputs) == 1,
}


def _where(caller: Caller, name: str, runs: Sequence[Case], dtype: torch.dtype) -> str | None:
    """Return where a wrong definition explains the kernel: "" for all runs; `None` if a wrong result contradicts it."""
    op, explained, right = caller.op, list[Case](), list[Case]()
    for part in (part for case in runs for part in pieces(op, case)):
        mine, correct = caller.run(part, dtype), expected(op, part)
        defined = expected(op, dict(wrong_definitions(op, part)).get(name, part))
        # What the definition does not change, or where its own result rounds, says nothing.
        rounds = any(not _same(x, x.to(dtype).double()) or float(x.abs().max()) > 2.0**24 for x in defined.values())
        if rounds or all(_same(defined[n], correct[n]) for n in ("o", "state")):
            continue
        if all(_same(mine[n].cpu().double(), defined[n]) for n in mine):
            explained.append(part)
        elif difference(op, part, mine, correct) is None:
            right.append(part)
        else:
            return None
    if not right:
        return ""
    traits = (
        trait for trait, has in TRAITS.items()
        if all(has(op, c) for c in explained) and not any(has(op, c) for c in right)
    )  # fmt: skip
    return f", but only {next(traits, 'in some calls')}"


def fault(
    caller: Caller, case: Case, dtype: torch.dtype, first: Difference, chunk_sizes: Sequence[int],
    runs: Sequence[Case] = (),
) -> str:  # fmt: skip
    """Return a sentence that names the likely fault class of a failing case, whose first difference is `first`.

    A sentence that one of `runs`, other short cases without gradients, contradicts is not returned.
    """
    op = caller.op
    if first.is_shape:
        return f"{'variable lengths' if case.lengths else 'shape'}: {first.quantity} has {first.computed_bits}"
    computed, again = caller.run(case, dtype), caller.run(case, dtype)
    if any(not _same(computed[n], again[n]) for n in computed):
        return "non-determinism: two calls with the same inputs differ"
    if first.quantity not in ("o", "state"):
        sentence = f"backward pass: outputs and final state are correct, the gradient of {first.quantity[1:]} is not"
        zero = [n for n in op.wide if _passes(caller, _changed(case, n, torch.zeros_like), dtype)]
        return (
            f"{sentence}; exact where {zero[0]} is 0{FACTORISED}" if zero and first.error == float("inf") else sentence
        )
    # A wrong definition that explains every value of the kernel names the fault.
    if op.length(case.inputs) <= 512:
        for part in pieces(op, case):
            mine = caller.run(part, dtype)
            if difference(op, part, mine, expected(op, part)) is None:
                continue
            for name, other in wrong_definitions(op, replace(part, upstream=None)):
                wrong = expected(op, other)
                if all(_same(mine[n].cpu().double(), wrong[n]) for n in mine if n in wrong):
                    where = _where(caller, name, runs, dtype)
                    if where is not None:
                        return name + where
            break

    def passes(change: Callable[[Case], Case]) -> bool:
        return all(_passes(caller, change(c), dtype) for c in (case, *runs))

    exact_without = [n for n in op.wide if passes(lambda c: replace(_changed(c, n, torch.zeros_like), period=0))]  # noqa: B023
    if exact_without and first.expected == 0 and 0 < abs(first.computed) < RESIDUE:
        return (
            f"wrong decay: where {exact_without[0]} is {RESET:.0f}, a decay is not 0, as in base 2 or of half the gate"
        )
    if exact_without and (first.error == float("inf") or first.error <= 2.0**-16):
        how = "infinities or NaN" if first.error == float("inf") else f"errors up to {first.error:.1e}"
        return f"range of gates: {how} where {exact_without[0]} is not 0{FACTORISED}"
    if first.error == float("inf"):
        return "gate sign: infinities or NaN from a bounded computation" if op.wide else "overflow: infinities or NaN"
    if case.cuts and _passes(caller, replace(case, cuts=()), dtype):
        return "state carry: the same tokens in one call are correct"
    if case.lengths:
        return "variable lengths: a packed sequence differs from the sequence alone"
    if "padding" in case.kind:
        return "padding: tokens that leave the state unchanged change the result"
    # If the result is correct without a part of the inputs, this part names the fault.
    if exact_without:
        return f"wrong decay: correct where {exact_without[0]} is 0"
    if first.error <= ROUNDING:
        return (
            f"accumulation dtype: errors up to {first.error:.1e} of the largest value, as if a sum or product rounded"
        )
    if case.state is not None and passes(lambda c: replace(c, state=None, cuts=())):
        return "state carry: correct without an initial state"
    for run in (c for c in runs if first.quantity == "state" and not c.cuts):
        other = difference(op, run, caller.run(run, dtype), expected(op, run))
        if other is not None and other.quantity == "o":  # says more than the final state of a shorter word
            return f"{_by_position(op, run, other, chunk_sizes)} (in a word of {counted(op.length(run.inputs))})"
    return _by_position(op, case, first, chunk_sizes)


def _by_position(op: Operator, case: Case, first: Difference, chunk_sizes: Sequence[int]) -> str:
    T = op.length(case.inputs)
    if first.quantity == "state":
        return "state carry: every output is correct, the final state is not"
    token = first.token or 0
    for chunk in sorted(set(chunk_sizes), reverse=True):
        if token and (token % chunk == 0 or (token + 1) % chunk == 0):
            return f"chunk boundary: the first wrong token, {token}, is at a border of chunks of {chunk}"
    for chunk in sorted(set(chunk_sizes), reverse=True):
        if chunk < T and T % chunk and token >= T - T % chunk:
            return f"padding: only tokens of the last, incomplete chunk of {chunk} are wrong"
        if token > chunk:
            return f"chunk boundary: the first {token} tokens, more than a chunk of {chunk}, are correct"
    return f"within a chunk: wrong from token {token} on; no definition that was tried explains it"


def _passes(caller: Caller, case: Case, dtype: torch.dtype) -> bool:
    try:
        return difference(caller.op, case, caller.run(case, dtype), expected(caller.op, case)) is None
    except (WrongResult, InexactProbe):
        return False


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
