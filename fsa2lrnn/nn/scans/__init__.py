"""Scans x_k = A_k x_{k-1} + v_k for k = 1 … T: `scan` for given A and v, `scan_tokens` for tables by token.

`sequential` is the reference of both; every other method is tested against it, forward and backward.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce

import torch
from torch import Tensor
from torch.func import debug_unwrap

from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.nn.compiled import DTYPES, is_exporting
from fsa2lrnn.nn.scans.cpu import chunked, fused, fused_tokens, letters, pscan, sequential, sequential_tokens
from fsa2lrnn.optional import is_installed


def _triton(A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    from fsa2lrnn.nn.scans.gpu import dense

    return dense(A, v, x0)


def _triton_tokens(tokens: Tensor, A: Tensor, v: Tensor, x0: Tensor) -> Tensor:
    from fsa2lrnn.nn.scans.gpu import by_tokens

    return by_tokens(tokens, A, v, x0)


METHODS = {"sequential": sequential, "pscan": pscan, "chunked": chunked, "fused": fused}
"""The methods of `scan` that every machine runs, by name."""
TOKEN_METHODS = {"sequential": sequential_tokens, "letters": letters, "fused": fused_tokens}
"""The methods of `scan_tokens` that every machine runs, by name."""
GPU_METHODS = {"triton": _triton}
"""The methods of `scan` that need a GPU."""
GPU_TOKEN_METHODS = {"triton": _triton_tokens}
"""The methods of `scan_tokens` that need a GPU."""

_WORTH_COMPILING = 1 << 13  # multiplications; below, no number of calls makes up for a second of compilation
_LONG = 64  # letters from which 3√T steps are far fewer kernel launches than T
_FEW_LETTERS = 32


def scan(A: Tensor, v: Tensor, x0: Tensor, method: str = "auto") -> Tensor:
    """Return all states of a linear recurrence (the paper's Eq. 1), differentiable with respect to every argument.

    Args:
        A: transitions, shape (B, T, H, b, b).
        v: inputs, shape (B, T, H, b).
        x0: initial state, shape (B, H, b) or (H, b).
        method: "sequential" (T steps), "pscan" (⌈log₂(T+1)⌉ steps, b times the work and more), "chunked" (about 3√T
            steps, b times the work), "fused" (compiled, on the CPU; differentiable once), "triton" (compiled, on a GPU;
            differentiable once) or "auto" (`choose_method`).

    Returns:
        x_1 … x_T, shape (B, T, H, b). Under autocast the scan runs in the widest of the three dtypes: a rounded state
        is what the next step starts from.

    Raises:
        ValueError: if the shapes do not fit.
        UnsupportedFormat: for an unknown method, or inputs that the method does not take.

    >>> import torch
    >>> A, v = torch.full((1, 3, 1, 1, 1), 2.0), torch.ones(1, 3, 1, 1)
    >>> scan(A, v, torch.zeros(1, 1)).flatten().tolist()
    [1.0, 3.0, 7.0]
    """
    methods = {**METHODS, **GPU_METHODS}
    check_method(method, methods)
    _check_shapes(A, v, x0)
    if _under_autocast(v):
        with torch.autocast(v.device.type, enabled=False):
            return scan(*_widened(A, v, x0), method=method)
    if method == "auto":
        method = choose_method(v)
    return methods[method](A, v, x0.expand(v.shape[0], *v.shape[2:]))


def scan_tokens(tokens: Tensor, A_table: Tensor, v_table: Tensor, x0: Tensor, method: str = "auto") -> Tensor:
    """Return `scan(A_table[tokens], v_table[tokens], x0)` without storing A_table[tokens] or its gradient.

    Args:
        tokens: rows of the tables, int64, shape (B, T); A_table (N, H, b, b), v_table (N, H, b), x0 as for `scan`.
        method: "sequential" (a look-up per step), "letters" (all N products per step, for few letters), "fused",
            "triton" or "auto" (`choose_token_method`).

    Raises:
        ValueError, UnsupportedFormat: as `scan`.
        InvalidWord: for tokens of another dtype and, on the CPU, for a token that is not a row of the tables.

    >>> import torch
    >>> A_table, v_table = torch.tensor([2.0, 0.0]).reshape(2, 1, 1, 1), torch.tensor([0.0, 5.0]).reshape(2, 1, 1)
    >>> scan_tokens(torch.tensor([[0, 0, 1]]), A_table, v_table, torch.ones(1, 1)).flatten().tolist()
    [2.0, 4.0, 5.0]
    """
    methods = {**TOKEN_METHODS, **GPU_TOKEN_METHODS}
    check_method(method, methods)
    _check_table_shapes(tokens, A_table, v_table, x0)
    _check_tokens(tokens, len(v_table))
    if _under_autocast(v_table):
        with torch.autocast(v_table.device.type, enabled=False):
            return scan_tokens(tokens, *_widened(A_table, v_table, x0), method=method)
    if method == "auto":
        method = choose_token_method(tokens, v_table)
    return methods[method](tokens, A_table, v_table, x0.expand(len(tokens), *v_table.shape[1:]))


def _widened(*tensors: Tensor) -> list[Tensor]:
    dtype = reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
    return [tensor.to(dtype) for tensor in tensors]


def choose_method(v: Tensor) -> str:
    """Return the method that "auto" denotes for the device, dtype and shape (B, T, H, b) of v.

    It is "fused" on the CPU if its kernels support the dtype without conversion and the work is worth compiling them;
    "triton" on a GPU if Triton is installed and the blocks are not too wide (`nn.scans.gpu`); "chunked" for other long
    words on devices other than the CPU, where the number of kernel launches dominates; else "sequential".

    >>> choose_method(torch.empty(128, 40, 8, 8)), choose_method(torch.empty(1, 40, 1, 5))
    ('fused', 'sequential')
    """
    return method_on(v.device.type, v.dtype, tuple(v.shape), _has_triton(v))


def method_on(device: str, dtype: torch.dtype, shape: tuple[int, ...], has_triton: bool) -> str:
    """Return the method that `choose_method` chooses for a v of shape (B, T, H, b) on a device of this type.

    >>> method_on("cuda", torch.float32, (128, 40, 8, 8), True), method_on("cuda", torch.float32, (8, 99, 8, 8), False)
    ('triton', 'chunked')
    """
    if (compiled := _compiled_on(device, dtype, shape, has_triton)) is not None:
        return compiled
    return "chunked" if shape[1] >= _LONG and device != "cpu" else "sequential"


def choose_token_method(tokens: Tensor, v_table: Tensor) -> str:
    """Return the method that "auto" denotes for A and v from tables: tokens (B, T), v (N, H, b).

    >>> choose_token_method(torch.empty(128, 40), torch.empty(5, 8, 8))
    'fused'
    """
    shape = (*tokens.shape, *v_table.shape[1:])
    return token_method_on(v_table.device.type, v_table.dtype, shape, len(v_table), _has_triton(v_table))


def token_method_on(device: str, dtype: torch.dtype, shape: tuple[int, ...], n_rows: int, has_triton: bool) -> str:
    """Return the method that `choose_token_method` chooses for `n_rows` rows and states of shape (B, T, H, b).

    >>> token_method_on("cuda", torch.bfloat16, (128, 40, 8, 8), 5, True)
    'triton'
    """
    few = "letters" if n_rows <= _FEW_LETTERS else "sequential"
    return _compiled_on(device, dtype, shape, has_triton) or few


def _compiled_on(device: str, dtype: torch.dtype, shape: tuple[int, ...], has_triton: bool) -> str | None:
    if device == "cpu" and dtype in DTYPES and math.prod(shape) * shape[-1] >= _WORTH_COMPILING:
        return "fused"
    if device != "cuda" or not has_triton:
        return None
    from fsa2lrnn.nn.scans.gpu import takes

    return "triton" if takes(dtype, *shape) else None


def _has_triton(v: Tensor) -> bool:
    return v.device.type == "cuda" and is_installed("triton")  # looking for a package takes longer than a short scan


def _under_autocast(tensor: Tensor) -> bool:
    device = tensor.device.type
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def check_method(method: str, methods: Mapping[str, object]) -> None:
    """Raise `UnsupportedFormat` unless `method` is "auto" or a key of `methods`."""
    if method != "auto" and method not in methods:
        raise UnsupportedFormat(f"scan method {method!r} is not known: choose one of auto, {', '.join(methods)}")


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
    # On a GPU, reading the data would stall the queue; there the table lookup raises the error.
    if tokens.device.type == "cpu" and tokens.numel() and not is_exporting():
        # Under vmap, this checks all words of all models.
        low, high = (int(end) for end in debug_unwrap(tokens).aminmax())
        if low < 0 or high >= n_rows:
            raise InvalidWord(f"token {low if low < 0 else high} is not a row of the tables: they run 0..{n_rows - 1}")
