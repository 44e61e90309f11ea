"""Diagnose a kernel's fault from a failing case, by comparison with the results of wrong definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from .audit import InexactProbe
from .calls import Caller, WrongResult
from .cases import Case, expected
from .differences import Difference, difference
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
            return f"{_by_position(op, run, other, chunk_sizes)} (in a word of {op.length(run.inputs)} tokens)"
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
