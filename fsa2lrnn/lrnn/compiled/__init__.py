"""Utilities of compiled kernels on the CPU: vector instructions, torch's threads, and memory for results."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

DTYPES = (torch.float32, torch.float64)  # which kernels compute in without conversion


LARGE = 1 << 17  # bytes; below, the allocator keeps the pages itself
KEPT = 1 << 28  # bytes of all blocks together
MOST = 32  # blocks
_ALIGNMENT = 64


class _Block:
    def __init__(self, size: int) -> None:
        block = np.empty(size + _ALIGNMENT, np.uint8)
        start = -block.ctypes.data % _ALIGNMENT
        self.data, self.size, self.held = block[start : start + size], size, weakref.ref(block)

    def lend(self, size: int) -> np.ndarray:
        """Return the first `size` bytes, which stay reserved while a tensor uses them."""
        part = self.data[:size]
        self.held = weakref.ref(part)
        return part


_blocks: list[_Block] = []
_lock = Lock()


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return a contiguous uninitialised tensor on the CPU, aligned to 64 bytes; large ones reuse memory.

    glibc returns an allocation above 32 MiB to the system as soon as it is freed, and the first access to each new
    page is expensive: forward and backward of the block scan on 8 words of 4,096 letters would take three times as
    long. A weak reference shows when no tensor uses a block; the size of all blocks is bounded.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < LARGE:
        return torch.empty(shape, dtype=dtype)
    with _lock:
        for block in _blocks:
            if size <= block.size <= 2 * size and block.held() is None:
                return torch.from_numpy(block.lend(size)).view(dtype).reshape(shape)
        block = _Block(size)
        if size <= KEPT:
            _blocks.append(block)
        total = sum(each.size for each in _blocks)
        while len(_blocks) > MOST or total > KEPT:
            total -= _blocks.pop(0).size
        return torch.from_numpy(block.lend(size)).view(dtype).reshape(shape)


WORTH_A_THREAD = 1 << 17  # multiplications; a tenth of a millisecond or less

Kernel = Callable[..., None]
Part = tuple[int, ...]
Job = Callable[[], None]


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


def share(kernel: Kernel, arguments: Sequence[Any], parts: Sequence[Part]) -> None:
    """Run kernel(*arguments, part) for each part, in up to `torch.get_num_threads()` threads at once.

    Contiguous tensors are passed as flat NumPy arrays.
    """
    at_once([job(kernel, arguments, part) for part in parts], min(len(parts), torch.get_num_threads()))


def job(kernel: Kernel, arguments: Sequence[Any], part: Part) -> Job:
    """Return a function without parameters that calls kernel(*arguments, part), with tensors as flat NumPy arrays."""
    return partial(kernel, *(_numbers(each) if isinstance(each, Tensor) else each for each in arguments), part)


def _numbers(tensor: Tensor) -> np.ndarray:
    array = (tensor.detach() if tensor.requires_grad else tensor).numpy()
    return array if array.ndim == 1 else array.reshape(-1)


def at_once(jobs: Sequence[Job], n_threads: int) -> None:
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


Backward = Callable[..., tuple[Tensor | None, ...]]


def typed_once_differentiable(backward: Backward) -> Backward:
    """Return torch's `once_differentiable` of a `Function`'s backward, with its type kept for type checkers."""
    return once_differentiable(backward)
