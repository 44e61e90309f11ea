"""Memory for large results, used again once nobody holds it.

The first touch of a fresh page costs more than the scan of what fits in it, and each step of a training run asks for as
many pages as the one before. So blocks are kept: one is free as soon as no tensor lies in it, which a weak reference
tells, and what is kept is limited. numpy makes the blocks, since for large ones it asks for huge pages.
"""

from __future__ import annotations

import math
import weakref
from threading import Lock

import numpy as np
import torch
from torch import Tensor

LARGE = 1 << 17  # bytes; below, the allocator keeps the pages itself
KEPT = 1 << 28  # bytes of all blocks together
MOST = 32  # blocks
_ALIGNMENT = 64

_blocks: list[tuple[np.ndarray, weakref.ref[np.ndarray]]] = []  # a block, and the part of it that a tensor holds
_lock = Lock()


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """A contiguous tensor on the CPU at a multiple of 64 bytes, its entries undefined."""
    size = math.prod(shape) * dtype.itemsize
    if size < LARGE:
        return torch.empty(shape, dtype=dtype)
    with _lock:
        block = _free(size)
        start = -block.ctypes.data % _ALIGNMENT
        part = block[start : start + size]
        if block.size <= KEPT:
            _blocks.append((block, weakref.ref(part)))
        while len(_blocks) > MOST or sum(each.size for each, _ in _blocks) > KEPT:
            _blocks.pop(0)
        return torch.from_numpy(part).view(dtype).reshape(shape)


def _free(size: int) -> np.ndarray:
    """A kept block, taken out of the list, that is free and at most twice as large as needed, or else a new one."""
    for i, (block, part) in enumerate(_blocks):
        if part() is None and size <= block.size - _ALIGNMENT <= 2 * size:
            return _blocks.pop(i)[0]
    return np.empty(size + _ALIGNMENT, np.uint8)
