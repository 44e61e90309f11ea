"""Memory for large results that is used again once no tensor lies in it.

glibc returns arrays of more than 32 MiB to the system as soon as they are freed, and the first touch of a fresh page
costs more than the scan of what fits in it: without this module, forward and backward of the block scan on 8 words of
4,096 letters take three times as long. A block is free as soon as no tensor lies in it, which a weak reference tells;
the size of all blocks is bounded. numpy allocates them, since for large ones it asks for huge pages.
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


class _Block:
    def __init__(self, size: int) -> None:
        block = np.empty(size + _ALIGNMENT, np.uint8)
        start = -block.ctypes.data % _ALIGNMENT
        self.data, self.size, self.held = block[start : start + size], size, weakref.ref(block)

    def lend(self, size: int) -> np.ndarray:
        """Return the first `size` bytes, to be held by a tensor."""
        part = self.data[:size]
        self.held = weakref.ref(part)
        return part


_blocks: list[_Block] = []
_lock = Lock()


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return a contiguous uninitialised tensor on the CPU, aligned to 64 bytes."""
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
