"""Column normalisation of transition blocks: the paper's Eq. 6, and the different rule of the paper's code.

`reference` is the definition; `fused` is tested against it, forward and backward.
"""

from __future__ import annotations

import math

from torch import Tensor

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn.normalise.column_kernels import fused, takes
from fsa2lrnn.lrnn.normalise.reference import TEMPERATURE, one_hot_columns, reference
from fsa2lrnn.lrnn.normalise.reference import one_hot_rows as one_hot_rows

RULES = ("clip", "paper", "none", "onehot")
"""The column rules by name."""
METHODS = {"reference": reference, "fused": fused}
"""The implementations of "clip", "paper" and "none" by name: plain torch, and compiled kernels."""

_WORTH_COMPILING = 1 << 11  # entries; for fewer, no number of calls outweighs the time of compilation


def normalise(A: Tensor, rule: str, p: float, method: str = "auto", temperature: float = TEMPERATURE) -> Tensor:
    """Return blocks with bounded columns: (…, b, b) -> (…, b, b).

    - "clip": v ↦ v / max(1, ‖v‖_p) for each column v (Eq. 6). One-hot columns have norm 1 for every p: no change.
    - "paper": the rule of the paper's code: subtract each column's mean, then divide the block by its largest column
      p-norm. If all columns are constant, the result is 0/0 = NaN, as it is there.
    - "none": no change.
    - "onehot": each column becomes one-hot at its largest entry; the backward pass uses a softmax at `temperature`
      (`one_hot_columns`). It has a single implementation for all methods.

    Stability in general holds only for p = 1 (Eq. 7); see docs/theory.md §3.

    `method` is "reference" (torch), "fused" (compiled, on the CPU; differentiable once) or "auto" (`choose_method`).

    Raises:
        ValueError: for blocks that are not square.
        UnsupportedFormat: for an unknown rule or method, a p that is not finite or below 1, or blocks that the method
            does not support.

    >>> import torch
    >>> normalise(torch.tensor([[3.0, 0.5], [1.0, 0.0]]), "clip", 1).tolist()
    [[0.75, 0.5], [0.25, 0.0]]
    """
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"shape {tuple(A.shape)} does not fit: give blocks (…, b, b)")
    if rule not in RULES:
        raise UnsupportedFormat(f"column rule {rule!r} is not known: choose one of {', '.join(RULES)}")
    if not 1 <= p < math.inf:
        raise UnsupportedFormat(f"p = {p}: a column norm needs a finite p of at least 1")
    if method == "auto":
        method = choose_method(A)
    if method not in METHODS:
        raise UnsupportedFormat(f"method {method!r} is not known: choose one of auto, {', '.join(METHODS)}")
    return one_hot_columns(A, temperature) if rule == "onehot" else METHODS[method](A, rule, p)


def keeps(A: Tensor, rule: str) -> bool:
    """Return whether every method returns these blocks (…, b, b) unchanged, bit for bit, for every p.

    This holds for "none"; for "clip" if each column has at most one non-zero entry, which is 1 or −1 (T2 of
    docs/theory.md: such columns have norm 0 or 1 in exact arithmetic, for all methods and sizes); and for "onehot" if
    the columns are one-hot. No such argument is made for "paper".

    >>> import torch
    >>> keeps(torch.eye(3), "clip"), keeps(torch.eye(3) / 2, "clip"), keeps(torch.eye(3), "paper")
    (True, False, False)
    """
    if rule == "onehot":
        return bool(((A == 0) | (A == 1)).all() and ((A != 0).sum(-2) == 1).all())
    if rule != "clip":
        return rule == "none"
    sizes = A.abs()
    return bool(((sizes == 0) | (sizes == 1)).all() and ((sizes != 0).sum(-2) <= 1).all())


def choose_method(A: Tensor) -> str:
    """Return the method of "auto": "fused" if it supports A (…, b, b) and A is large enough to be worth compiling.

    >>> import torch
    >>> choose_method(torch.empty(128, 40, 8, 8, 8)), choose_method(torch.empty(5, 1, 8, 8))
    ('fused', 'reference')
    """
    return "fused" if takes(A) and A.numel() >= _WORTH_COMPILING else "reference"


def paper_rule_scale(b: int, p: float) -> float:
    """Return the factor by which a permutation of size b scales zero-sum vectors under the rule "paper"; NaN for b = 1.

    A centred one-hot column has one entry 1 − 1/b and b − 1 entries −1/b; the block is divided by its p-norm.

    >>> round(paper_rule_scale(8, 1.2), 2), round(paper_rule_scale(2, 1.2), 2)
    (0.74, 1.12)
    """
    if b == 1:
        return math.nan
    return 1 / ((1 - 1 / b) * (1 + (b - 1.0) ** (1 - p)) ** (1 / p))
