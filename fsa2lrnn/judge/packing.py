"""Arrays in JSON: base64 of their compressed entries, little-endian, float32 where that loses nothing.

A few bytes can say that they unpack to gigabytes. So a reader allows an array sixteen times what is written of it, and
all arrays of a file `SPARE` bytes beyond that; and a writer that compresses better writes the entries as they are.
"""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.reading import read, shown

RATIO = 16
SPARE = 16 << 20
_SMALL = 1 << 16  # bytes: such an array is compressed as well as it can be
_MOST_AXES = 8
_KINDS = {"bool": np.bool_, "int64": np.int64, "float32": np.float64, "float64": np.float64}  # as written, as read


def pack(x: np.ndarray) -> dict[str, Any]:
    """A JSON object that `Unpacking` reads back: bool, int64 and float64.

    >>> Unpacking().unpack(pack(np.array([0.5, 3])), "x")
    array([0.5, 3. ])
    """
    fits = x.dtype == np.float64 and bool((np.abs(x) <= np.finfo(np.float32).max).all())
    narrow = x.astype(np.float32) if fits else x
    kept = narrow if np.array_equal(narrow, x) else x
    entries = np.ascontiguousarray(kept.astype(kept.dtype.newbyteorder("<"))).tobytes()
    data = zlib.compress(entries, 9)
    if x.nbytes > max(_SMALL, RATIO * len(data)):
        data = zlib.compress(entries, 0)
    return {"dtype": kept.dtype.name, "shape": list(x.shape), "data": base64.b64encode(data).decode()}


@dataclass(frozen=True)
class _Packed:
    dtype: str
    shape: tuple[int, ...]
    data: str


class Unpacking:
    """Reads the arrays of one file, and adds up what they take."""

    def __init__(self) -> None:
        self._left = SPARE

    def unpack(self, value: Any, where: str) -> np.ndarray:
        """An array that `pack` wrote.

        Raises `UnsupportedFormat` if it does not hold exactly the entries of its shape, or far more than its text can.
        """
        packed = read(_Packed, value, where)
        if packed.dtype not in _KINDS:
            raise UnsupportedFormat(f"{where}: an array of {packed.dtype!r}: {', '.join(_KINDS)} are read")
        if len(packed.shape) > _MOST_AXES or not all(0 <= size <= SPARE for size in packed.shape):
            raise UnsupportedFormat(f"{where}: {shown(packed.shape)} is no shape of an array of ours")
        written, kept = np.dtype(packed.dtype).newbyteorder("<"), np.dtype(_KINDS[packed.dtype])
        count = math.prod(packed.shape)
        self._left += RATIO * len(packed.data) - count * kept.itemsize
        if self._left < 0:
            raise UnsupportedFormat(
                f"{where}: {len(packed.data):,} characters are to unpack to {count * kept.itemsize:,} bytes, which no "
                "file of ours does: write it again"
            )
        entries = _inflated(packed.data, count * written.itemsize, where)
        return np.frombuffer(entries, written).reshape(packed.shape).astype(kept)


def _inflated(text: str, size: int, where: str) -> bytes:
    """The `size` bytes that a text unpacks to; no more than these are ever made."""
    unpacker = zlib.decompressobj()
    try:
        entries = unpacker.decompress(base64.b64decode(text, validate=True), size + 1)
    except (ValueError, zlib.error) as fault:
        raise UnsupportedFormat(f"{where} is damaged ({fault})") from None
    if len(entries) != size or not unpacker.eof or unpacker.unused_data:
        raise UnsupportedFormat(f"{where} is damaged: its data are not the {size:,} bytes of its shape")
    return entries
