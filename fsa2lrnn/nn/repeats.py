"""Numbering of repeated rows, so that functions of a row are computed once per distinct row, not once per step.

The stream of a compiled model takes finitely many values, since its layers' states do and its letters are finite in
number; so do the gates' inputs. A trained model's stream does not repeat, and that shows after few rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from fsa2lrnn.nn.compiled import is_exporting

_WORTH = 1 << 12  # rows from which numbering them pays
_REPEATS = 8  # least average number of occurrences per row
_CODES = 1 << 22  # largest number of pairs of rows that are counted
_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
# Random odd factors of the hash, so that regular rows do not collide.
_FACTORS = np.random.default_rng(0).integers(2**62, size=1 << 8, dtype=np.int64).astype(np.uint64) * 2 + 1


class NumberedRows(NamedTuple):
    """The distinct rows (N, d) of a stream, and the index of the row at each position, int64 (B, T)."""

    rows: Tensor
    index: Tensor  # pyright: ignore[reportIncompatibleMethodOverride] - nobody searches in it


def number(stream: Tensor) -> NumberedRows | None:
    """Return the distinct rows of a stream (B, T, d) and their indices; None if they are too many to save time.

    No gradient passes through it: the result is None for a stream that requires one, and on other devices than the CPU.

    >>> numbered = number(torch.eye(2).repeat(1, 2048, 1))
    >>> numbered.rows.tolist(), numbered.index[0, :5].tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [0, 1, 0, 1, 0])
    """
    batch, length, width = stream.shape
    if batch * length < _WORTH or stream.requires_grad or stream.device.type != "cpu" or is_exporting():
        return None
    flat = stream.reshape(-1, width).contiguous()
    # Rows are compared by their bits: a NaN equals itself, and −0 differs from 0.
    bits = flat.view(_INTEGERS[stream.element_size()]).numpy()
    first, index = _number(bits, _FACTORS, batch * length // _REPEATS)
    # `_number` returns an index cut short if it met too many distinct rows.
    if len(index) < len(flat):
        return None
    return NumberedRows(flat[torch.from_numpy(first)], torch.from_numpy(index).view(batch, length))


def shifted(numbered: NumberedRows, before: Tensor) -> NumberedRows | None:
    """Return the distinct pairs (N', 2d) of a row and the row before it, at first `before` (B, d); None if too many."""
    (rows, index), batch = numbered, len(before)
    # Numbers from len(rows) on stand for the rows `before` the words, one per word.
    n = len(rows) + batch
    if n * n > _CODES:
        return None
    earlier = torch.cat([len(rows) + torch.arange(batch)[:, None], index[:, :-1]], dim=1)
    # A pair (now, before) is one number, so that counting needs no sorting.
    codes = (n * index + earlier).flatten()
    used = torch.bincount(codes, minlength=n * n).nonzero()[:, 0]
    if len(used) * _REPEATS > index.numel():
        return None
    pairs = torch.cat([rows[used // n], torch.cat([rows, before])[used % n]], dim=1)
    number_of = torch.empty(n * n, dtype=torch.int64)
    number_of[used] = torch.arange(len(used))
    return NumberedRows(pairs, number_of[codes].view_as(index))


@njit(cache=True, nogil=True)
def _number(rows, factors, most):  # type: ignore[no-untyped-def]
    """Return the first position of each distinct row (N,) and the index of each row (M,), cut off if N exceeds `most`.

    Open addressing: the high bits of the sum of words times odd factors are well distributed.
    """
    M, width = rows.shape
    bits = 4
    # The table is at most half full, so that every probe ends at a free slot.
    while 1 << bits < 2 * (most + 1):
        bits += 1
    slots, mask = np.full(1 << bits, -1), (1 << bits) - 1
    first, index = np.empty(most, np.int64), np.empty(M, np.int64)
    n = 0
    for k in range(M):
        total = np.uint64(0)
        for j in range(width):
            total += np.uint64(rows[k, j]) * factors[j & 255]
        # Probe from the slot of the hash to a free slot, a new row, or to one with the same row.
        slot = np.int64(total >> np.uint64(64 - bits))
        while True:
            i = slots[slot]
            if i < 0:
                if n == most:
                    return first[:n], index[:k]
                slots[slot], first[n], index[k] = n, k, n
                n += 1
                break
            # Equal hashes do not prove equal rows, so all words are compared.
            same = True
            for j in range(width):
                same &= rows[k, j] == rows[first[i], j]
            if same:
                index[k] = i
                break
            slot = (slot + 1) & mask
    return first[:n], index
