"""Encoding of arrays in JSON, as the checker decodes them (`checker.files`)."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from fsa2lrnn.checker.files import RATIO
from fsa2lrnn.checker.files import Unpacking as Unpacking

_SMALL = 1 << 16  # bytes: smaller arrays are always compressed


def pack(x: np.ndarray) -> dict[str, Any]:
    """Return a JSON object that `Unpacking` decodes: bool, int64 or float64 arrays.

    >>> Unpacking().unpack(pack(np.array([0.5, 3])), "x")
    array([0.5, 3. ])
    """
    fits = x.dtype == np.float64 and bool((np.abs(x) <= np.finfo(np.float32).max).all())
    narrow = x.astype(np.float32) if fits else x
    stored = narrow if np.array_equal(narrow, x) else x
    entries = np.ascontiguousarray(stored.astype(stored.dtype.newbyteorder("<"))).tobytes()
    data = zlib.compress(entries, 9)
    if x.nbytes > max(_SMALL, RATIO * len(data)):
        data = zlib.compress(entries, 0)
    return {"dtype": stored.dtype.name, "shape": list(x.shape), "data": base64.b64encode(data).decode()}
