"""Compare a kernel's results with the one correct result, value by value, and describe the first difference as text."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .cases import Case
from .operators import Operator

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Difference:
    """The first wrong entry of a result.

    Args:
        quantity: `o`, `state`, or `dNAME` for a gradient.
        sequence: the index in the batch, or of the packed sequence.
        token: the index in the sequence; `None` for states.
        head: the index of the head; `None` if the quantity has no head axis.
        entry: the index in the head's entry.
        expected: the correct value.
        computed: the value that the kernel computed.
        expected_bits: the correct value in the dtype that the kernel returned, in hexadecimal; a shape if these differ.
        computed_bits: the computed value, likewise.
        wrong: the number of entries that differ.
        entries: the number of entries.
        last_token: the last wrong token; `None` for states and packed sequences.
        error: the largest error relative to the largest correct value, or to 1; infinite for infinities and NaN.
    """

    quantity: str
    sequence: int
    token: int | None
    head: int | None
    entry: tuple[int, ...]
    expected: float
    computed: float
    expected_bits: str
    computed_bits: str
    wrong: int
    entries: int
    last_token: int | None
    error: float

    @property
    def values(self) -> tuple[str, str]:
        """The expected and the computed value with their bits, or the shapes."""
        if self.is_shape:
            return self.expected_bits, self.computed_bits
        return f"{self.expected!r} = {self.expected_bits}", f"{self.computed!r} = {self.computed_bits}"

    @property
    def is_shape(self) -> bool:
        return self.expected_bits.startswith("shape")

    def __str__(self) -> str:
        if self.is_shape:
            return f"{self.quantity} has a wrong shape"
        where = "" if self.token is None else f"token {self.token}, "
        where += "" if self.head is None else f"head {self.head}, "
        place = "first at " if self.token is not None else "at "
        return f"{self.quantity} is wrong {place}{where}entry {list(self.entry)} (sequence {self.sequence})"


def bits(value: float, dtype: torch.dtype) -> str:
    """Return the bit pattern of a value in a dtype, in hexadecimal.

    >>> bits(1.0, torch.bfloat16)
    '0x3f80'
    """
    x = torch.tensor(value, dtype=torch.float64).to(dtype)
    width = x.element_size()
    return f"0x{int(x.view(INTEGERS[width])) & (1 << 8 * width) - 1:0{2 * width}x}"


def difference(op: Operator, case: Case, computed: dict[str, Tensor], correct: dict[str, Tensor]) -> Difference | None:
    """Return the first difference, outputs before states before gradients; `None` if all values are equal.

    −0 and +0 are equal, because both arise from legitimate orders of summation. NaN differs from every value.
    """
    for name, right in correct.items():
        if name not in computed:
            continue
        mine = computed[name].to("cpu")
        if mine.shape != right.shape:
            return _unlike(name, mine, right)
        values = mine.float().double()  # a kernel in float64 may return residues of exp(−128)
        wrong = ~(values == right)
        if bool(wrong.any()):
            return _first(op, case, name, mine, values, right, wrong)
    return None


def _unlike(name: str, mine: Tensor, right: Tensor) -> Difference:
    shapes = f"shape {tuple(right.shape)}", f"shape {tuple(mine.shape)}"
    return Difference(name, 0, None, None, (), 0.0, 0.0, *shapes, right.numel(), right.numel(), None, float("inf"))


def _first(
    op: Operator, case: Case, name: str, mine: Tensor, values: Tensor, right: Tensor, wrong: Tensor
) -> Difference:
    has_tokens = name == "o" or name.removeprefix("d") in op.tensors
    places = wrong.nonzero()
    column = int(has_tokens)  # the token's axis is the second: sort by token first, then by sequence
    order = places[:, column] * wrong.shape[0] + places[:, 0] if has_tokens else places[:, 0]
    at = tuple(places[int(order.argmin())].tolist())
    error = (values - right).abs().max() / right.abs().max().clamp(min=1)
    sequence, token, rest = (at[0], at[1], at[2:]) if has_tokens else (at[0], None, at[1:])
    last = int(places[:, 1].max()) if has_tokens else None
    if token is not None and case.lengths:
        # Packed sequences share one time axis, so the token's number is converted to one within its sequence.
        starts = [sum(case.lengths[:i]) for i in range(len(case.lengths))]
        sequence = max(i for i, start in enumerate(starts) if start <= token)
        token, last = token - starts[sequence], None
    head, entry = (rest[0], rest[1:]) if op.heads and rest and name.removeprefix("d") not in op.static else (None, rest)
    expected, computed = float(right[at]), float(values[at])
    return Difference(
        name, sequence, token, head, entry, expected, computed, bits(expected, mine.dtype), bits(computed, mine.dtype),
        int(wrong.sum()), right.numel(), last, float(error) if bool(values.isfinite().all()) else float("inf"),
    )  # fmt: skip


_LINES = 12  # the most tokens of a word that a message shows


def counted(n: int) -> str:
    """Return a number of tokens as text.

    >>> counted(1), counted(2)
    ('1 token', '2 tokens')
    """
    return f"{n} token{'s' * (n != 1)}"


def describe(
    op: Operator, dtype: torch.dtype, case: Case, first: Difference, short: Case, last: Difference, likely: str
) -> str:
    """Return the message of `InexactKernel` for a case, its first difference, and the same for the shrunk case."""
    T = op.length(case.inputs)
    share = f"{first.wrong} of {first.entries} entries of {first.quantity} {'is' if first.wrong == 1 else 'are'} wrong"
    if first.last_token is not None:
        one = first.token == first.last_token
        share += f", token {first.token} of {T}" if one else f", tokens {first.token} to {first.last_token} of {T}"
    lines = [
        f"{op.name} in {dtype}, {case.kind}: {first}",
        f"  expected {first.values[0]}",
        f"  computed {first.values[1]}",
        *([] if first.is_shape else [f"  {share}"]),
        f"  likely fault: {likely}",
        *shortest(op, short, f"; there {last},\n  expected {last.values[0]}, computed {last.values[1]}"),
    ]
    return "\n".join(lines)


def shortest(op: Operator, short: Case, there: str = "") -> list[str]:
    """Return lines that describe a shrunk case."""
    n = op.length(short.inputs)
    return [
        f"  shortest word found: {counted(n)}{there}",
        *(f"    {line}" for line in letters(op, short)),
    ]


def letters(op: Operator, case: Case) -> list[str]:
    """Return lines that describe a case: its scale and cuts, its initial state, and the inputs at each token.

    The lines contain the nonzero entries of the first sequence and head, for at most 12 tokens, which change the state
    or read it; of more such tokens the first and the last 6.
    """
    lines = [f"scale {case.scale}" + (f", cut before tokens {list(case.cuts)}" if case.cuts else "")]
    if case.lengths:
        lines[0] += f", packed lengths {list(case.lengths)}"
    if case.state is not None:
        lines.append(f"initial state {_sparse(case.state[0, 0] if op.heads else case.state[0])}")
    T = op.length(case.inputs)
    entries = {n: x[0, :, 0] if op.heads else x[0] for n, x in case.inputs.items() if n not in op.static}
    acts = [(x != op.idle.get(n, torch.zeros(())).to(x)).reshape(T, -1).any(1) for n, x in entries.items()]
    active = torch.stack(acts).any(0).nonzero()[:, 0].tolist()
    if len(active) < T:
        lines.append(f"{counted(T - len(active))} without effect")
    for i, t in enumerate(active):
        if _LINES // 2 <= i < len(active) - _LINES // 2 and len(active) > _LINES:
            if i == _LINES // 2:
                lines.append(f"… {counted(len(active) - _LINES)} …")
            continue
        rows = {n: x.reshape(T, -1, *x.shape[1:])[t] for n, x in entries.items()}
        parts = (f"{n} {_sparse(x[0] if x.shape[0] == 1 else x)}" for n, x in rows.items())
        lines.append(f"token {t}: " + ", ".join(parts))
    return lines


def _sparse(x: Tensor) -> str:
    if not x.dim():
        return f"{float(x):g}"
    places = x.nonzero().tolist()
    text = " ".join(f"[{','.join(map(str, at))}]={float(x[tuple(at)]):g}" for at in places[:4])
    return (text or "0") + (f" and {len(places) - 4} more" if len(places) > 4 else "")
