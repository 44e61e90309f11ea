"""`assert_exact`: run the probes of an operator on a kernel, and report the first wrong bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import torch

from .audit import BITS, InexactProbe
from .calls import Caller, Kernel, WrongResult
from .cases import (
    GATE_KIND,
    GATE_TOKENS,
    GATE_TOTAL,
    GATES,
    LONG,
    SIZES,
    WIDE_QUERY,
    Case,
    all_lengths,
    border,
    expected,
    gate_case,
    long_word,
    outside_bound,
    packed,
    padded,
    proved,
    with_gradients,
    word,
)  # fmt: skip
from .diagnose import fault, shrink
from .differences import Difference, describe, difference, shortest
from .operators import Operator, operator
from .random_words import RESET

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
LENGTHS = (4096, 10**6)  # numbers of tokens, in addition to 1 and those at the borders of chunks
BORDERS = (64,)  # chunk sizes at whose borders sequences are cut, for a kernel whose signature has none
RUNS = 12  # the most short cases with which a diagnosis is compared


class InexactKernel(AssertionError):
    """Raised for a kernel that computes a wrong bit.

    Attributes:
        op: the name of the operator.
        dtype: the dtype of the inputs.
        difference: the first wrong entry of the shrunk case; `None` if no result could be compared.
        case: the shrunk case.
        fault: the likely fault class.
    """

    def __init__(
        self, message: str, op: str, dtype: torch.dtype, case: Case, fault: str, difference: Difference | None
    ) -> None:
        super().__init__(message)
        self.op, self.dtype, self.case, self.fault, self.difference = op, dtype, case, fault, difference


@dataclass
class ProbeReport:
    """The cases that were compared, and those that were left out.

    Args:
        op: the name of the operator.
        cases: the number of cases run, by kind and dtype.
        proved: the number of operations of the reference forms that the audit proved exact on words of these families.
        omitted: sentences that name omitted cases, with the reason.
        crossed: the chunk sizes beyond which a compared word went on.
    """

    op: str
    cases: dict[tuple[str, str], int] = field(default_factory=dict)
    proved: int = 0
    omitted: list[str] = field(default_factory=list)
    crossed: set[int] = field(default_factory=set)

    def count(self, kind: str, dtype: torch.dtype) -> None:
        key = kind, str(dtype).removeprefix("torch.")
        self.cases[key] = self.cases.get(key, 0) + 1

    def omit(self, sentence: str) -> None:
        if sentence not in self.omitted:
            self.omitted.append(sentence)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} in {dtype}: {n}" for (kind, dtype), n in self.cases.items())
        total = sum(self.cases.values())
        borders = f", across the borders of chunks of {', '.join(map(str, sorted(self.crossed)))}" * bool(self.crossed)
        return "\n".join([f"{self.op}: exact in {total} case{'s' * (total != 1)} ({kinds}){borders}", *self.omitted])


def assert_exact(
    kernel: Kernel,
    op: str,
    dtypes: Sequence[torch.dtype] = DTYPES,
    lengths: Sequence[int] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    variable_lengths: bool = True,
    initial_state: bool = True,
    gradients: bool = True,
    *,
    gates: bool | tuple[float, float] = True,
    head_dim: int | None = None,
    device: str = "cpu",
    seed: int = 0,
) -> ProbeReport:
    """Check that a kernel computes the one correct value of every output, state and gradient, without tolerance.

    Args:
        kernel: a function with the arguments of flash-linear-attention's operator of that name: tensors (B, T, H, K),
            then `scale`, `initial_state` and `output_final_state` by name; it returns (outputs, final state). What a
            kernel without one of these keywords cannot do is not tried, which the result says.
        op: the operator, a key of `OPERATORS`.
        dtypes: the dtypes of the tensors. Log gates and states are float32, as in flash-linear-attention.
        lengths: the numbers of tokens, by default 1, C − 1, C and C + 1 for each chunk size C, 4,096 and 1,000,000.
            Longer ones than 65,536 run in the first dtype, with one sequence and one head.
        chunk_sizes: values for the kernel's argument `chunk_size`, and borders at which sequences are cut. By default
            the value that the kernel's signature gives `chunk_size`, or borders of 64. A kernel whose chunks are longer
            than that passes though it is wrong at their borders.
        variable_lengths: whether to test padded batches, and packed sequences if the kernel takes `cu_seqlens`.
        initial_state: whether to test initial states, and a state carried over several calls.
        gradients: whether to test the gradients of all inputs; False for a kernel without a backward pass.
        gates: whether to test gates other than 0 and 1, within a certified bound (`cases`). Or the range of the sum
            of log gates over a chunk, from −8 or less to 0, such as (-80, 0): a kernel that multiplies
            exp(g_i − r) by exp(r − g_j) overflows outside of one. Then words have resets only if it contains −128.
        head_dim: the size of keys and values that the kernel gets, 16 by default. The 16 coordinates of the probes are
            spread over a larger one; the others are zero, which they must stay.
        device: the device on which the kernel runs.
        seed: the seed of the words.

    Returns:
        The numbers of compared cases, and the omitted ones.

    Raises:
        InexactKernel: an `AssertionError`, for the first wrong value.
        InexactProbe: if the audit cannot prove the probe itself exact for a chunk size.
        ValueError: for an unknown operator, a dtype without probes, a length below 1, gates in no such range, or a
            `head_dim` below 16 or for an operator without keys and values.

    >>> from fsa2lrnn.probes import assert_exact, reference
    >>> coverage = assert_exact(reference("delta_rule"), op="delta_rule", dtypes=(torch.float32,), lengths=(1, 65))
    >>> coverage.omitted
    []
    """
    __tracebackhide__ = True
    operation = operator(op)
    least, largest = (-torch.inf, 0.0) if isinstance(gates, bool) else gates
    if least > -GATE_TOTAL or largest != 0:
        raise ValueError(f"gates={gates}: a range of log gates is (low, 0) with low at most {-GATE_TOTAL:.0f}")
    for dtype in dtypes:
        if dtype not in BITS:
            raise ValueError(f"dtypes has {dtype}: the probes are proved for {', '.join(map(str, BITS))}")
    own = Caller(operation, kernel, device, head_dim=head_dim).own_chunk
    borders = tuple(chunk_sizes or ((own,) if own else BORDERS))
    if lengths is None:
        lengths = sorted({1, *(c + i for c in borders for i in (-1, 0, 1) if c + i > 0), *LENGTHS})
    if wrong := [n for n in lengths if n < 1]:
        raise ValueError(f"lengths has {wrong[0]}: a sequence has at least one token")
    coverage = ProbeReport(operation.name)
    if least > RESET and operation.wide:
        coverage.omit(f"not tried: resets, whose log gate is {RESET:.0f}: gates={gates}")
        if operation.name in ("simple_gla", "state_passing") and max(lengths) > LONG:
            lengths = [n for n in lengths if n <= LONG]
            coverage.omit(f"not tried: more than {LONG} tokens: without resets a sum of all writes is not periodic")
    for chunk in chunk_sizes or (None,):
        caller = Caller(operation, kernel, device, head_dim=head_dim)
        if chunk is not None:
            if caller.takes("chunk_size"):
                caller.chunk_size = chunk
            else:
                coverage.omit("not tried: chunk_size, which the kernel does not take")
        for dtype in dtypes:
            coverage.proved += proved(operation.name, dtype, borders, gradients=False)
            options = borders, variable_lengths, initial_state, bool(gates), least <= RESET

            def runs(
                options: tuple[Any, ...] = options, caller: Caller = caller, dtype: torch.dtype = dtype
            ) -> list[Case]:
                drawn = _cases(operation, dtype, [n for n in lengths if n <= 512], *options, gradients=False, seed=seed)
                adapted = (_adapted(caller, c, coverage) for c in drawn if c.kind != GATE_KIND)
                return list(islice((c for c in adapted if c is not None), RUNS))

            for drawn in _cases(operation, dtype, lengths, *options, gradients=gradients, seed=seed):
                if operation.length(drawn.inputs) > LONG and dtype != dtypes[0]:
                    continue
                while (case := _adapted(caller, drawn, coverage)) is not None:
                    try:
                        _check(caller, case, dtype, borders, runs)
                    except TypeError as error:  # from a kernel behind **options
                        if not caller.refuse(error):
                            raise
                        continue
                    coverage.count(case.kind, dtype)
                    coverage.crossed |= {c for c in borders if operation.length(case.inputs) > c}
                    break
        if not caller.takes("chunk_size"):
            break
    for chunk in sorted({*borders} - coverage.crossed):
        coverage.omit(f"not tried: words of more than a chunk of {chunk}")
    return coverage


def _adapted(caller: Caller, case: Case, coverage: ProbeReport) -> Case | None:
    """Return a case without what the kernel cannot do; `None`, named in the coverage, if nothing is left to test."""
    op, what = caller.op, coverage.omit
    for name, value in op.options.items():
        if not caller.takes(name):
            what(f"not passed: {name}={value}, which the kernel does not take")
    if case.lengths and not caller.takes("cu_seqlens"):
        return what("not tried: packed sequences: the kernel does not take cu_seqlens")
    if case.scale != 1.0 and not caller.takes("scale"):
        what("not tried: a scale other than 1: the kernel does not take scale")
        case = replace(case, scale=1.0)
    if case.state is not None and not caller.takes("initial_state"):
        what("not tried: initial states: the kernel does not take initial_state")
        if case.cuts or case.kind == "initial state":
            return None
        case = replace(case, state=None)
    if not caller.returns_state:
        what("not tried: final states: the kernel does not take output_final_state, and returns outputs alone")
        if case.cuts:
            return None
        if case.upstream is not None:
            case = replace(case, upstream=(case.upstream[0], torch.zeros_like(case.upstream[1])))
    return case


def _cases(
    op: Operator, dtype: torch.dtype, lengths: Sequence[int], borders: Sequence[int],
    variable: bool, state: bool, gates: bool, resets: bool, *, gradients: bool, seed: int,
) -> Iterator[Case]:  # fmt: skip
    """Yield the cases of a dtype, from short to long words within each kind."""
    size = replace(SIZES[dtype], resets=resets)
    for T in sorted(t for t in lengths if t <= LONG):
        batch = 2 if T <= 256 else 1
        yield word(op, seed + T, size, T, batch=batch, heads=2, state=False)
        if state:
            yield word(op, seed + T + 1, size, T, batch=batch, heads=2, state=True)
    if dtype == torch.float32 and op.queries:  # queries wide enough to show a product in TF32
        yield word(op, seed + 5, replace(WIDE_QUERY, resets=resets), max(borders) + 1, batch=1, heads=2, state=state)
    if resets and any(gate in op.tensors for gate in GATES):
        for c in borders:
            for token in (c, 2 * c - 1):  # the first and the last of the second chunk
                yield border(op, seed + token, c, token)
    if state:
        for cuts, T in all_lengths(borders):
            case = word(op, seed + T, size, T, batch=1, heads=2, state=True)
            yield replace(case, kind="carried state", cuts=tuple(sorted({c for c in cuts if 0 < c < T})))
    if variable:
        c = borders[0]
        for with_state in (False, True) if state else (False,):
            yield packed(op, seed + 3, size, (1, c - 1, c, c + 1, 17), state=with_state)
        if op.pads:
            inner = word(op, seed + 2, size, c - 3, batch=2, heads=2, state=state)
            yield padded(op, inner, 5, 0)
            yield padded(op, inner, 0, 7)
    if gates and op.wide and op.name != "state_passing":
        case = gate_case(op, seed, max(GATE_TOKENS, max(borders) + 6))
        yield case if state else replace(case, state=None)
    if gradients:
        for T in (2, 2 * borders[0] + 1):
            case = with_gradients(op, seed + T, dtype, T, resets)
            yield case if state else replace(case, state=None)
    for T in sorted(t for t in lengths if t > LONG):
        yield long_word(op, seed, size, T)


def _check(
    caller: Caller, case: Case, dtype: torch.dtype, borders: Sequence[int], runs: Callable[[], list[Case]]
) -> None:
    """Raise `InexactKernel` if the kernel computes a wrong value on a case."""
    __tracebackhide__ = True
    op = caller.op
    if case.kind == GATE_KIND:
        _check_gates(caller, case, dtype)
        return

    def wrong(case: Case) -> Difference | WrongResult | None:
        try:
            return difference(op, case, caller.run(case, dtype), expected(op, case))
        except WrongResult as error:
            return error

    first = wrong(case)
    if first is None:
        return

    def fails(smaller: Case) -> bool:
        try:
            return type(wrong(smaller)) is type(first)
        except InexactProbe:
            return False

    likely = ""
    if isinstance(first, Difference):
        try:
            likely = fault(caller, case, dtype, first, borders, runs())
        except WrongResult:  # from another run
            likely = fault(caller, case, dtype, first, borders)
    short = shrink(op, case, dtype, fails)
    # A kernel that is not deterministic may pass here; then the message describes the unshrunk case.
    last = wrong(short)
    if isinstance(first, WrongResult):
        what = str(first)
        likely = (
            "in-place write" if "wrote" in what else "backward pass" if "gradient" in what
            else "state carry" if "state" in what else "result"
        )  # fmt: skip
        message = "\n".join([f"{op.name} in {dtype}, {case.kind}: {what}", *shortest(op, short)])
        raise InexactKernel(message, op.name, dtype, short, likely, None)
    short, last = (short, last) if isinstance(last, Difference) else (case, first)
    raise InexactKernel(describe(op, dtype, case, first, short, last, likely), op.name, dtype, short, likely, last)


def _check_gates(caller: Caller, case: Case, dtype: torch.dtype) -> None:
    """Raise `InexactKernel` if a value is outside the certified bound."""
    __tracebackhide__ = True
    try:
        sentence = outside_bound(caller.op, case, caller.run(case, dtype), dtype)
    except WrongResult as error:
        sentence = str(error)
    if sentence is not None:
        likely = "wrong decay: gates other than 0 and 1 are computed outside of the certified bound"
        message = f"{caller.op.name} in {dtype}, {case.kind}: {sentence}\n  likely fault: {likely}"
        raise InexactKernel(message, caller.op.name, dtype, case, likely, None)
