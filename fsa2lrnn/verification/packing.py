"""Arrays written to JSON, as the checker reads them (`checker.files`)."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from fsa2lrnn.checker.files import RATIO
from fsa2lrnn.checker.files import Unpacking as Unpacking

_SMALL = 1 << 16  # bytes: such an array is compressed as well as it can be


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
