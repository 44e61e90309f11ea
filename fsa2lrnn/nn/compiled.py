"""Compile loops for the CPU with numba, and run them in torch's threads.

LLVM vectorises the innermost loop. So a kernel for blocks of size b is compiled for each b: sums over a block's side
are unrolled, and the innermost loop runs over the other side, whose length LLVM must not know, since it would unroll
that loop too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Protocol

import torch
from numba import njit
from numba.core.compiler import Compiler
from torch import Tensor
from torch.autograd.function import once_differentiable

DTYPES = (torch.float32, torch.float64)  # which kernels compute in without conversion
WORTH_A_THREAD = 1 << 17  # multiplications; a tenth of a millisecond or less

# Whether `torch.export` traces a call (torch 2.7): then nothing may look at values or run compiled loops.
is_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", lambda: False)

Kernel = Callable[..., None]
Part = tuple[int, ...]
Backward = Callable[..., tuple[Tensor | None, ...]]


class _NoOverlap(Compiler):
    """Compile functions whose array arguments do not overlap.

    A run-time test of overlaps costs more than it saves in loops over the 8 numbers of a row, so that LLVM would not
    vectorise them.
    """

    def define_pipelines(self) -> Any:
        self.state.flags.noalias = True
        return super().define_pipelines()


def kernel(*fastmath: str) -> Callable[[Kernel], Kernel]:
    """Return a decorator that compiles a kernel whose arrays do not overlap, with LLVM's fast-math flags.

    numba stores the machine code on disk next to the kernel's file.
    """
    options = {"cache": True, "nogil": True, "error_model": "numpy", "pipeline_class": _NoOverlap}
    return njit(fastmath=set(fastmath), **options)


def thread_count(multiplications: int) -> int:
    """Return how many of torch's threads, at least 1, have enough work with this many multiplications."""
    return max(1, min(torch.get_num_threads(), multiplications // WORTH_A_THREAD))


def cuts(total: int, n_parts: int) -> list[tuple[int, int]]:
    """Return at most n_parts ranges of nearly equal length that partition 0 … total − 1.

    >>> cuts(10, 3), cuts(1, 2), cuts(0, 2)
    ([(0, 3), (3, 6), (6, 10)], [(0, 1)], [(0, 0)])
    """
    n_parts = max(1, min(n_parts, total))
    ends = [total * i // n_parts for i in range(n_parts + 1)]
    return list(pairwise(ends))


def share(kernel: Kernel, tensors: Sequence[Tensor], parts: Sequence[Part], *numbers: float) -> None:
    """Run kernel(*arrays, *numbers, *part) for each part, in up to `torch.get_num_threads()` threads at once."""
    arrays = [tensor.detach().numpy() for tensor in tensors]
    at_once([partial(kernel, *arrays, *numbers, *part) for part in parts], min(len(parts), torch.get_num_threads()))


def at_once(jobs: Sequence[Callable[[], None]], n_threads: int) -> None:
    """Run all jobs in `n_threads` threads and raise the first exception; kernels release Python's global lock."""
    if n_threads == 1 or len(jobs) == 1:
        for each in jobs:
            each()
        return
    for _ in _pool(n_threads).map(lambda each: each(), jobs):
        pass


@lru_cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="kernel")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads


class Context(Protocol):
    """The context of a `Function`: tensors saved for the backward pass, and other values as attributes."""

    saved_tensors: tuple[Tensor, ...]

    def save_for_backward(self, *tensors: Tensor | None) -> None: ...
    def __setattr__(self, name: str, value: object) -> None: ...
    def __getattr__(self, name: str) -> Any: ...


def typed_once_differentiable(backward: Backward) -> Backward:
    """Return torch's `once_differentiable` of a `Function`'s backward, with its type kept for type checkers."""
    return once_differentiable(backward)
