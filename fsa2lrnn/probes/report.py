"""Describe a wrong result as text: the first wrong value, its bits, and the shortest word found."""

from __future__ import annotations

import torch
from torch import Tensor

from .cases import Case
from .compare import Difference
from .operators import Operator

_LINES = 12  # the most tokens of a word that a message shows


def describe(
    op: Operator, dtype: torch.dtype, case: Case, first: Difference, short: Case, last: Difference, likely: str
) -> str:
    """Return the message of `InexactKernel` for a case, its first difference, and the same for the shrunk case."""
    T = op.length(case.inputs)
    share = f"{first.wrong} of {first.entries} entries of {first.quantity} are wrong"
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
        f"  shortest word found: {n} token{'s' * (n > 1)}{there}",
        *(f"    {line}" for line in letters(op, short)),
    ]


def letters(op: Operator, case: Case) -> list[str]:
    """Return lines that describe a case: its scale and cuts, its initial state, and the inputs at each token.

    The lines contain the nonzero entries of the first sequence and head, for at most 12 tokens.
    """
    lines = [f"scale {case.scale}" + (f", cut before tokens {list(case.cuts)}" if case.cuts else "")]
    if case.lengths:
        lines[0] += f", packed lengths {list(case.lengths)}"
    if case.state is not None:
        lines.append(f"initial state {_sparse(case.state[0, 0] if op.heads else case.state[0])}")
    T = op.length(case.inputs)
    for t in range(min(T, _LINES)):
        parts = list[str]()
        for name, x in op.cut(case.inputs, t, t + 1).items():
            if name not in op.static:
                entry = x[0, :, 0] if op.heads else x[0]
                parts.append(f"{name} {_sparse(entry[0] if entry.shape[0] == 1 else entry)}")
        lines.append(f"token {t}: " + ", ".join(parts))
    return [*lines, *([f"and {T - _LINES} more tokens"] if T > _LINES else [])]


def _sparse(x: Tensor) -> str:
    if not x.dim():
        return f"{float(x):g}"
    places = x.nonzero().tolist()
    text = " ".join(f"[{','.join(map(str, at))}]={float(x[tuple(at)]):g}" for at in places[:4])
    return (text or "0") + (f" and {len(places) - 4} more" if len(places) > 4 else "")
