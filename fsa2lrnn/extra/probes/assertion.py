"""`assert_exact`: run the probes of an operator on a kernel, and report the first wrong bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from . import bounds
from .audit import BITS, InexactProbe
from .calls import Caller, Kernel, WrongResult
from .cases import (
    LONG,
    SIZES,
    WIDE_QUERY,
    Case,
    all_lengths,
    expected,
    long_word,
    packed,
    padded,
    proved,
    with_gradients,
    word,
)  # fmt: skip
from .compare import Difference, difference
from .diagnose import fault
from .operators import Operator, operator
from .report import describe
from .shrink import shrink

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
LENGTHS = (1, 63, 64, 65, 4096, 10**6)
BORDERS = (64,)  # chunk sizes at whose borders sequences are cut by default
_NOT_PACKED = "packed sequences are left out: the kernel does not take cu_seqlens"


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
    """

    op: str
    cases: dict[tuple[str, str], int] = field(default_factory=dict)
    proved: int = 0
    omitted: list[str] = field(default_factory=list)

    def count(self, kind: str, dtype: torch.dtype) -> None:
        key = kind, str(dtype).removeprefix("torch.")
        self.cases[key] = self.cases.get(key, 0) + 1

    def omit(self, sentence: str) -> None:
        if sentence not in self.omitted:
            self.omitted.append(sentence)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} in {dtype}: {n}" for (kind, dtype), n in self.cases.items())
        return "\n".join([f"{self.op}: exact in {sum(self.cases.values())} cases ({kinds})", *self.omitted])


def assert_exact(
    kernel: Kernel,
    op: str,
    dtypes: Sequence[torch.dtype] = DTYPES,
    lengths: Sequence[int] = LENGTHS,
    chunk_sizes: Sequence[int] | None = None,
    variable_lengths: bool = True,
    initial_state: bool = True,
    gradients: bool = True,
    *,
    gates: bool = True,
    head_dim: int | None = None,
    device: str = "cpu",
    seed: int = 0,
) -> ProbeReport:
    """Check that a kernel computes the one correct value of every output, state and gradient, without tolerance.

    Args:
        kernel: a function with the arguments of flash-linear-attention's operator of that name: tensors (B, T, H, K),
            then `scale`, `initial_state` and `output_final_state` by name; it returns (outputs, final state).
        op: the operator, a key of `OPERATORS`.
        dtypes: the dtypes of the tensors. Log gates and states are float32, as in flash-linear-attention.
        lengths: the numbers of tokens. Longer ones than 65,536 run in the first dtype, with one sequence and one head.
        chunk_sizes: values for the kernel's argument `chunk_size`, and borders at which sequences are cut. By default
            the kernel's own chunk size, and borders of 64.
        variable_lengths: whether to test padded batches, and packed sequences if the kernel takes `cu_seqlens`.
        initial_state: whether to test initial states, and a state carried over several calls.
        gradients: whether to test the gradients of all inputs; False for a kernel without a backward pass.
        gates: whether to test gates other than 0 and 1, within a certified bound (`bounds`).
        head_dim: the size of keys and values that the kernel gets, 16 by default. The 16 coordinates of the probes are
            spread over a larger one; the others are zero, which they must stay.
        device: the device on which the kernel runs.
        seed: the seed of the words.

    Returns:
        The numbers of compared cases, and the omitted ones.

    Raises:
        InexactKernel: an `AssertionError`, for the first wrong value.
        InexactProbe: if the audit cannot prove the probe itself exact for a chunk size.
        ValueError: for an unknown operator, a dtype without probes, a length below 1, or a `head_dim` below 16 or for
            an operator without keys and values.

    >>> from fsa2lrnn.extra.probes import assert_exact, reference
    >>> coverage = assert_exact(reference("delta_rule"), op="delta_rule", dtypes=(torch.float32,), lengths=(1, 65))
    >>> coverage.omitted
    []
    """
    operation = operator(op)
    for dtype in dtypes:
        if dtype not in BITS:
            raise ValueError(f"dtypes has {dtype}: the probes are proved for {', '.join(map(str, BITS))}")
    if wrong := [n for n in lengths if n < 1]:
        raise ValueError(f"lengths has {wrong[0]}: a sequence has at least one token")
    coverage = ProbeReport(operation.name)
    borders = tuple(chunk_sizes or BORDERS)
    for chunk in chunk_sizes or (None,):
        caller = Caller(operation, kernel, device, head_dim=head_dim)
        if chunk is not None:
            if caller.takes_chunk_size:
                caller.chunk_size = chunk
            else:
                coverage.omit("chunk_size is not passed: the kernel does not take it")
        for dtype in dtypes:
            coverage.proved += proved(operation.name, dtype, borders, gradients=False)
            for case in _cases(
                operation, dtype, lengths, borders, variable_lengths, initial_state, gates, gradients, seed
            ):
                if case.lengths and not caller.takes_cu_seqlens:
                    coverage.omit(_NOT_PACKED)
                elif operation.length(case.inputs) <= LONG or dtype == dtypes[0]:
                    try:
                        _check(caller, case, dtype, borders)
                    except TypeError as error:  # from a kernel behind *args and **kwargs
                        if not case.lengths or "cu_seqlens" not in str(error):
                            raise
                        caller.takes_cu_seqlens = False
                        coverage.omit(_NOT_PACKED)
                        continue
                    coverage.count(case.kind, dtype)
        if not caller.takes_chunk_size:
            break
    return coverage


def _cases(
    op: Operator, dtype: torch.dtype, lengths: Sequence[int], borders: Sequence[int],
    variable: bool, state: bool, gates: bool, gradients: bool, seed: int,
) -> Iterator[Case]:  # fmt: skip
    """Yield the cases of a dtype, from short to long words within each kind."""
    size = SIZES[dtype]
    for T in sorted(t for t in lengths if t <= LONG):
        batch = 2 if T <= 256 else 1
        yield word(op, seed + T, size, T, batch=batch, heads=2, state=False)
        if state:
            yield word(op, seed + T + 1, size, T, batch=batch, heads=2, state=True)
    if dtype == torch.float32 and op.queries:  # queries wide enough to show a product in TF32
        yield word(op, seed + 5, WIDE_QUERY, max(borders) + 1, batch=1, heads=2, state=state)
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
        case = bounds.gate_case(op, seed)
        yield case if state else replace(case, state=None)
    if gradients:
        for T in (2, borders[0] + 1):
            yield with_gradients(op, seed + T, dtype, T)
    for T in sorted(t for t in lengths if t > LONG):
        yield long_word(op, seed, size, T)


def _check(caller: Caller, case: Case, dtype: torch.dtype, borders: Sequence[int]) -> None:
    """Raise `InexactKernel` if the kernel computes a wrong value on a case."""
    op = caller.op
    if case.kind == bounds.KIND:
        _check_gates(caller, case, dtype)
        return
    correct = expected(op, case)
    try:
        first = difference(op, case, caller.run(case, dtype), correct)
    except WrongResult as error:
        name = "backward pass" if "gradient" in str(error) else "state carry" if "state" in str(error) else "result"
        raise InexactKernel(f"{op.name} in {dtype}, {case.kind}: {error}", op.name, dtype, case, name, None) from None
    if first is None:
        return

    def fails(smaller: Case) -> bool:
        try:
            return difference(op, smaller, caller.run(smaller, dtype), expected(op, smaller)) is not None
        except (WrongResult, InexactProbe):
            return False

    likely = fault(caller, case, dtype, first, borders)
    short = shrink(op, case, dtype, fails)
    # A kernel that is not deterministic may pass here; then the message describes the unshrunk case.
    last = difference(op, short, caller.run(short, dtype), expected(op, short))
    short, last = (short, last) if last is not None else (case, first)
    raise InexactKernel(describe(op, dtype, case, first, short, last, likely), op.name, dtype, short, likely, last)


def _check_gates(caller: Caller, case: Case, dtype: torch.dtype) -> None:
    """Raise `InexactKernel` if a value is outside the certified bound."""
    try:
        sentence = bounds.outside(caller.op, case, caller.run(case, dtype), dtype)
    except WrongResult as error:
        sentence = str(error)
    if sentence is not None:
        likely = "wrong decay: gates other than 0 and 1 are computed outside of the certified bound"
        message = f"{caller.op.name} in {dtype}, {case.kind}: {sentence}\n  likely fault: {likely}"
        raise InexactKernel(message, caller.op.name, dtype, case, likely, None)
