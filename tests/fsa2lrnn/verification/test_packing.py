"""Arrays in JSON come back, and a few bytes never become many."""

import base64
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from fsa2lrnn.checker.errors import UnsupportedInput
from fsa2lrnn.checker.files import SPARE, Unpacking
from fsa2lrnn.verification.packing import pack


def packed(entries, shape, dtype="float64"):
    return {"dtype": dtype, "shape": shape, "data": base64.b64encode(zlib.compress(entries, 9)).decode()}


def refused(value, reason):
    with pytest.raises(UnsupportedInput, match=reason):
        Unpacking().unpack(value, "tube.basis")


@given(st.sampled_from([np.bool_, np.int64, np.float64]).flatmap(lambda kind: arrays(kind, array_shapes(min_side=0))))
def test_what_is_packed_comes_back(x):
    back = Unpacking().unpack(pack(x), "x")
    assert back.dtype == x.dtype
    assert np.array_equal(back, x, equal_nan=x.dtype == np.float64)


def test_halves_take_half_and_zeros_do_not_shrink_without_end():
    x = np.random.default_rng(0).random(10_000)
    assert len(pack(np.float64(np.float32(x)))["data"]) < 0.6 * len(pack(x)["data"])
    zeros = np.zeros(3_000_000)
    value = pack(zeros)
    assert len(value["data"]) > zeros.nbytes / 16
    assert np.array_equal(Unpacking().unpack(value, "x"), zeros)


def test_a_bomb_is_refused_before_it_is_unpacked():
    bomb = zlib.compress(bytes(200 << 20), 9)  # 200 KB
    data = base64.b64encode(bomb).decode()
    tracemalloc.start()
    try:
        for shape in ([3], [25 << 20], [1 << 60], [0], [5, 5]):
            refused(
                {"dtype": "float64", "shape": shape, "data": data}, "tube.basis.* (unpack to|no shape|its data are)"
            )
        assert tracemalloc.get_traced_memory()[1] < 16 * len(data) + SPARE
    finally:
        tracemalloc.stop()


def test_many_small_bombs_are_one():
    small = packed(bytes(1 << 20), [1 << 20], "bool")
    unpacking = Unpacking()
    for _ in range(16):
        unpacking.unpack(small, "x")
    with pytest.raises(UnsupportedInput, match="x: 1,388 characters are to unpack to 1,048,576 bytes"):
        unpacking.unpack(small, "x")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (packed(bytes(16), [2], "object"), "tube.basis: an array of 'object': bool, int64, float32, float64 are read"),
        (packed(bytes(16), [3]), "its data are not the 24 bytes of its shape"),
        (packed(bytes(16), [1]), "its data are not the 8 bytes of its shape"),
        (packed(bytes(16), [2.0]), r"\[2.0\] is not a valid shape"),
        (packed(bytes(16), [True, 2]), r"\[True, 2\] is not a valid shape"),
        (packed(bytes(16), [-1, -2]), r"\[-1, -2\] is not a valid shape"),
        (packed(bytes(0), [0, 1 << 62]), "is not a valid shape"),
        (packed(bytes(16), [1] * 9 + [2]), "is not a valid shape"),
        ({**packed(bytes(16), [2]), "data": "é"}, "is damaged"),
        ({**packed(bytes(16), [2]), "data": "AAAA"}, "is damaged"),
        ({**packed(bytes(16), [2]), "data": packed(bytes(16), [2])["data"][:-4]}, "is damaged"),
        ({"dtype": "bool", "shape": [1]}, "is not an array: expected are dtype, shape and data"),
        ([], r"'\[\]' is not an array"),
    ],
)
def test_what_is_no_array_is_refused(value, reason):
    refused(value, reason)


def test_what_follows_the_entries_is_refused():
    value = packed(bytes(16), [2])
    more = base64.b64encode(base64.b64decode(value["data"]) + b"more").decode()
    refused({**value, "data": more}, "is damaged: its data are not the 16 bytes")
