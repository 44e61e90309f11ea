"""Kernels shared out among torch's threads (`torch.set_num_threads`).

They let go of Python's lock, so plain threads do, which sleep while there is nothing to do and mind neither a fork nor
another busy process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

WORTH_A_THREAD = 1 << 17  # multiplications; a tenth of a millisecond or less

Kernel = Callable[..., None]
Part = tuple[int, ...]
Job = Callable[[], None]


def thread_count(multiplications: int) -> int:
    """How many of torch's threads so much work is worth: 1 or more."""
    return max(1, min(torch.get_num_threads(), multiplications // WORTH_A_THREAD))


def cuts(total: int, n_parts: int) -> list[tuple[int, int]]:
    """0 … total − 1 in at most n_parts stretches of nearly the same length.

    >>> cuts(10, 3), cuts(1, 2), cuts(0, 2)
    ([(0, 3), (3, 6), (6, 10)], [(0, 1)], [(0, 0)])
    """
    n_parts = max(1, min(n_parts, total))
    ends = [total * i // n_parts for i in range(n_parts + 1)]
    return list(pairwise(ends))


def share(kernel: Kernel, arguments: Sequence[Any], parts: Sequence[Part]) -> None:
    """Runs kernel(*arguments, part) for each part, as many at once as torch has threads; tensors, contiguous ones, go
    in as flat arrays."""
    given = flat(arguments)
    at_once([partial(kernel, *given, part) for part in parts], min(len(parts), torch.get_num_threads()))


def job(kernel: Kernel, arguments: Sequence[Any], part: Part) -> Job:
    """What `share` runs for one part."""
    return partial(kernel, *flat(arguments), part)


def flat(arguments: Sequence[Any]) -> list[Any]:
    """The arguments, with flat arrays for tensors."""
    return [_numbers(each) if isinstance(each, Tensor) else each for each in arguments]


def _numbers(tensor: Tensor) -> np.ndarray:
    array = (tensor.detach() if tensor.requires_grad else tensor).numpy()
    return array if array.ndim == 1 else array.reshape(-1)


def at_once(jobs: Sequence[Job], n_threads: int) -> None:
    """Runs all jobs, on so many threads. Raises what the first that fails raises."""
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
