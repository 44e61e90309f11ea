"""Scans: x_k = A_k x_{k-1} + v_k for k = 1 … T, behind one signature, and with A and v from a table behind another.

`sequential` is the reference of each; every other method is tested against it, forward and backward.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.lrnn.scans.chunked import chunked
from fsa2lrnn.lrnn.scans.fused import DTYPES, fused, fused_tokens
from fsa2lrnn.lrnn.scans.pscan import pscan
from fsa2lrnn.lrnn.scans.reference import sequential
from fsa2lrnn.lrnn.scans.tokens import letters, sequential_tokens

METHODS = {"sequential": sequential, "pscan": pscan, "chunked": chunked, "fused": fused}
TOKEN_METHODS = {"sequential": sequential_tokens, "letters": letters, "fused": fused_tokens}

_WORTH_COMPILING = 1 << 13  # multiplications; below, no number of calls makes up for a second of compilation
_LONG = 64  # letters from which 3√T steps are fewer launches than T, by far
_FEW_LETTERS = 32


def scan(A: Tensor, v: Tensor, x0: Tensor, method: str = "auto") -> Tensor:
    """All states of a linear recurrence (the paper's Eq. 1), differentiable in every argument.

    Args:
        A: transitions, shape (B, T, H, b, b).
        v: inputs, shape (B, T, H, b).
        x0: initial state, shape (B, H, b) or (H, b).
        method: "sequential" (T steps), "pscan" (⌈log₂(T+1)⌉ steps, b times the work and more), "chunked" (about 3√T
            steps, b times the work), "fused" (compiled, on the CPU; differentiable once) or "auto" (`choose_method`).

    Returns:
        x_1 … x_T, shape (B, T, H, b).

    Raises:
        ValueError: if the shapes do not fit.
        UnsupportedFormat: for an unknown method, or inputs that the method does not take.

    >>> import torch
    >>> A, v = torch.full((1, 3, 1, 1, 1), 2.0), torch.ones(1, 3, 1, 1)
    >>> scan(A, v, torch.zeros(1, 1)).flatten().tolist()
    [1.0, 3.0, 7.0]
    """
    check_method(method, METHODS)
    _check_shapes(A, v, x0)
    if method == "auto":
        method = choose_method(v)
    return METHODS[method](A, v, x0.expand(v.shape[0], *v.shape[2:]))


def scan_tokens(tokens: Tensor, A_table: Tensor, v_table: Tensor, x0: Tensor, method: str = "auto") -> Tensor:
    """`scan(A_table[tokens], v_table[tokens], x0)` without writing A_table[tokens] out, nor its gradient.

    Args:
        tokens: rows of the tables, int64, shape (B, T).
        A_table: transitions, shape (N, H, b, b).
        v_table: inputs, shape (N, H, b).
        x0: initial state, shape (B, H, b) or (H, b).
        method: "sequential" (a look-up a step), "letters" (all N products a step, for few letters), "fused" (compiled,
            on the CPU; differentiable once) or "auto" (`choose_token_method`).

    Returns:
        x_1 … x_T, shape (B, T, H, b).

    Raises:
        ValueError: if the shapes do not fit.
        InvalidWord: for a token that is no row of the tables.
        UnsupportedFormat: for an unknown method, or inputs that the method does not take.

    >>> import torch
    >>> A_table, v_table = torch.tensor([2.0, 0.0]).reshape(2, 1, 1, 1), torch.tensor([0.0, 5.0]).reshape(2, 1, 1)
    >>> scan_tokens(torch.tensor([[0, 0, 1]]), A_table, v_table, torch.ones(1, 1)).flatten().tolist()
    [2.0, 4.0, 5.0]
    """
    check_method(method, TOKEN_METHODS)
    _check_table_shapes(tokens, A_table, v_table, x0)
    _check_tokens(tokens, len(v_table))
    if method == "auto":
        method = choose_token_method(tokens, v_table)
    return TOKEN_METHODS[method](tokens, A_table, v_table, x0.expand(len(tokens), *v_table.shape[1:]))


def choose_method(v: Tensor) -> str:
    """The method that "auto" stands for: by the device, dtype and shape (B, T, H, b) of v.

    "fused" where its kernels compute in the dtype as it is and the work is worth compiling them; "chunked" for long
    words away from the CPU, where the number of launches counts; else "sequential".

    >>> choose_method(torch.empty(128, 40, 8, 8)), choose_method(torch.empty(1, 40, 1, 5))
    ('fused', 'sequential')
    """
    if v.device.type == "cpu":
        return "fused" if v.dtype in DTYPES and v.numel() * v.shape[-1] >= _WORTH_COMPILING else "sequential"
    return "chunked" if v.shape[1] >= _LONG else "sequential"


def choose_token_method(tokens: Tensor, v_table: Tensor) -> str:
    """The method that "auto" stands for where A and v come from tables: tokens (B, T), v (N, H, b).

    >>> choose_token_method(torch.empty(128, 40), torch.empty(5, 8, 8))
    'fused'
    """
    n_rows, heads, b = v_table.shape
    multiplications = tokens.numel() * heads * b * b
    if v_table.device.type == "cpu" and v_table.dtype in DTYPES and multiplications >= _WORTH_COMPILING:
        return "fused"
    return "letters" if n_rows <= _FEW_LETTERS else "sequential"


def check_method(method: str, known: Mapping[str, Any]) -> None:
    """Raises `UnsupportedFormat` unless `method` is "auto" or a key of `known`."""
    if method != "auto" and method not in known:
        raise UnsupportedFormat(f"scan method {method!r} is not known: choose one of auto, {', '.join(known)}")


def _check_shapes(A: Tensor, v: Tensor, x0: Tensor) -> None:
    fits = v.ndim == 4 and A.shape == (*v.shape, v.shape[-1]) and x0.shape in (v.shape[2:], (v.shape[0], *v.shape[2:]))
    if not fits:
        raise ValueError(
            f"shapes do not fit: A {tuple(A.shape)}, v {tuple(v.shape)}, x0 {tuple(x0.shape)} should be "
            "(B, T, H, b, b), (B, T, H, b) and (B, H, b) or (H, b)"
        )


def _check_table_shapes(tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> None:
    fits = tokens.ndim == 2 and v.ndim == 3 and A.shape == (*v.shape, v.shape[-1])
    if not fits or x0.shape not in (v.shape[1:], (len(tokens), *v.shape[1:])):
        raise ValueError(
            f"shapes do not fit: tokens {tuple(tokens.shape)}, A_table {tuple(A.shape)}, v_table {tuple(v.shape)}, x0 "
            f"{tuple(x0.shape)} should be (B, T), (N, H, b, b), (N, H, b) and (B, H, b) or (H, b)"
        )


def _check_tokens(tokens: Tensor, n_rows: int) -> None:
    if tokens.dtype != torch.int64:
        raise InvalidWord(f"tokens of type {tokens.dtype}: give int64")
    # On a GPU this look at the data would stall the queue; the look-up itself objects there.
    if tokens.device.type == "cpu" and tokens.numel():
        low, high = (int(end) for end in tokens.aminmax())
        if low < 0 or high >= n_rows:
            raise InvalidWord(f"token {low if low < 0 else high} is no row of the tables: they run 0..{n_rows - 1}")


__all__ = [
    "METHODS",
    "TOKEN_METHODS",
    "check_method",
    "choose_method",
    "choose_token_method",
    "chunked",
    "fused",
    "pscan",
    "scan",
    "scan_tokens",
    "sequential",
]
