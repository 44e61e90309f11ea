"""Arrays in JSON: base64 of their compressed entries, little-endian, float32 where that loses nothing.

A few bytes can say that they unpack to gigabytes. So a reader allows an array sixteen times what is written of it, and
all arrays of a file `SPARE` bytes beyond that; and a writer that compresses better writes the entries as they are.
"""

import base64
import math
import zlib
from typing import Any

import numpy as np

from .errors import UnsupportedInput

RATIO = 16
SPARE = 16 << 20
_MOST_AXES = 8
_KINDS = {"bool": np.bool_, "int64": np.int64, "float32": np.float64, "float64": np.float64}  # as written, as read


class Unpacking:
    """Reads the arrays of one file, and adds up what they take."""

    def __init__(self) -> None:
        self._left = SPARE

    def unpack(self, value: Any, where: str) -> np.ndarray:
        """An array that `pack` wrote.

        Raises `UnsupportedInput` if it does not hold exactly the entries of its shape, or far more than its text can.
        """
        if type(value) is not dict or set(value) != {"dtype", "shape", "data"}:
            raise UnsupportedInput(f"{where}: {str(value)[:80]!r} is no array: expected are dtype, shape and data")
        kind, shape, data = value["dtype"], value["shape"], value["data"]
        if type(kind) is not str or kind not in _KINDS:
            raise UnsupportedInput(f"{where}: an array of {str(kind)[:80]!r}: {', '.join(_KINDS)} are read")
        is_shape = type(shape) is list and len(shape) <= _MOST_AXES and all(type(size) is int for size in shape)
        if not is_shape or not all(0 <= size <= SPARE for size in shape) or type(data) is not str:
            raise UnsupportedInput(f"{where}: {str(shape)[:80]} is no shape of an array of ours, or its data no text")
        written, kept = np.dtype(kind).newbyteorder("<"), np.dtype(_KINDS[kind])
        count = math.prod(shape)
        self._left += RATIO * len(data) - count * kept.itemsize
        if self._left < 0:
            raise UnsupportedInput(
                f"{where}: {len(data):,} characters are to unpack to {count * kept.itemsize:,} bytes, which no file of "
                "ours does: write it again"
            )
        entries = _inflated(data, count * written.itemsize, where)
        return np.frombuffer(entries, written).reshape(shape).astype(kept)


def _inflated(text: str, size: int, where: str) -> bytes:
    """The `size` bytes that a text unpacks to; no more than these are ever made."""
    unpacker = zlib.decompressobj()
    try:
        entries = unpacker.decompress(base64.b64decode(text, validate=True), size + 1)
    except (ValueError, zlib.error) as fault:
        raise UnsupportedInput(f"{where} is damaged ({fault})") from None
    if len(entries) != size or not unpacker.eof or unpacker.unused_data:
        raise UnsupportedInput(f"{where} is damaged: its data are not the {size:,} bytes of its shape")
    return entries
