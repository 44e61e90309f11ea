"""One reader for all files: what it gives is of the type asked for, and whatever it is given, it says what is wrong."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.reading import MAX_DEPTH, MAX_WHOLE, check_fields, parse_json, read, shown

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@dataclass(frozen=True)
class Part:
    weight: float


@dataclass(frozen=True)
class Whole:
    size: int
    flag: bool
    name: str
    mode: Literal["fast", "slow"]
    limit: float | None
    sizes: tuple[int, ...]
    pair: tuple[str, int]
    parts: tuple[Part, ...]
    by_name: Mapping[str, float]
    norm: bool | str = False


GOOD = {
    "size": 3, "flag": True, "name": "ü", "mode": "fast", "limit": None, "sizes": [1, 2], "pair": ["a", 1],
    "parts": [{"weight": 2}], "by_name": {"x": 0.5},
}  # fmt: skip


@given(json_values)
def test_json_is_read_as_it_is(value):
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)
        try:
            text.encode()
        except UnicodeEncodeError:
            continue
        assert parse_json(text, "x") == parse_json(text.encode(), "x") == value


@given(st.text() | st.binary() | st.tuples(json_values.map(json.dumps), st.integers(0, 99)).map(lambda x: x[0][: x[1]]))
def test_other_text_is_refused_by_name(text):
    try:
        parse_json(text, "some file")
    except UnsupportedFormat as found:
        error = str(found)
    else:
        return
    assert error.startswith("some file")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "f: nested deeper than 100, and no file of ours is"),
        ("[" * 101 + "]" * 101, "nested deeper than 100"),
        ('{"a": ' * 101 + "1" + "}" * 101, "nested deeper than 100"),
        ('{"a": 1, "b": {"c": 2, "c": 2}}', "f: the field 'c' stands twice in one object"),
        ("[NaN]", "f: it holds NaN, which is no number"),
        ("9" * 5_000, "f: it holds a number of more than 4,300 digits"),
        (r'["\ud800"]', "f holds half a character"),
        (b'["\xed\xa0\x80"]', "f is not UTF-8 .byte 0xed at offset 2, in line 1"),
        (b"\xff\xfe", "f is not UTF-8 .byte 0xff at offset 0, in line 1"),
        ('{"a": 1,', "f: line 1, column 9: Expecting property name .*: the file is truncated or not JSON"),
        ("", "f: line 1, column 1: Expecting value"),
    ],
)
def test_what_no_writer_of_ours_writes_is_refused(text, reason):
    with pytest.raises(UnsupportedFormat, match=reason):
        parse_json(text, "f")


def test_types_are_what_is_declared():
    found = read(Whole, GOOD, "whole")
    wanted = Whole(3, True, "ü", "fast", None, (1, 2), ("a", 1), (Part(2.0),), {"x": 0.5})
    assert found == wanted
    assert type(found.parts[0].weight) is float
    check_fields(found)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"size": 2.0}, "whole.size = 2.0 must be a whole number"),
        ({"size": True}, "whole.size = True must be a whole number"),
        ({"size": 2 * MAX_WHOLE}, "whole.size = 36893488147419103232 must be a whole number"),
        ({"flag": 1}, "whole.flag = 1 must be true or false"),
        ({"name": None}, "whole.name = None must be text"),
        ({"mode": "quick"}, "whole.mode = 'quick' must be 'fast' or 'slow'"),
        ({"limit": float("inf")}, "whole.limit = inf must be a finite number or null"),
        ({"limit": False}, "whole.limit = False"),
        ({"limit": 10**400}, "whole.limit = 1000.* must be a finite number or null"),
        ({"sizes": {"0": 1}}, "whole.sizes = .* must be a list"),
        ({"sizes": [1, 2.5, "3"]}, r"whole.sizes\[1\] = 2.5 .*; whole.sizes\[2\] = '3' must be a whole"),
        ({"pair": ["a"]}, "whole.pair has 1 entries, expected are 2"),
        ({"parts": [{}]}, r"whole.parts\[0\].weight is missing"),
        ({"parts": [3]}, r"whole.parts\[0\] = 3 must be an object"),
        ({"parts": [{"weight": 1, "heavy": 2}]}, r"whole.parts\[0\].heavy is not known: remove it"),
        ({"by_name": {"x": "y"}}, "whole.by_name.x = 'y' must be a finite number"),
        ({"by_name": []}, r"whole.by_name = \[\] must be an object"),
        ({"norm": 1}, "whole.norm = 1 must be true or false or text"),
    ],
)
def test_what_is_of_another_type_is_named(changes, reason):
    with pytest.raises(UnsupportedFormat, match=reason):
        read(Whole, GOOD | changes, "whole")


def test_faults_are_named_together_and_counted_beyond_ten():
    with pytest.raises(UnsupportedFormat) as caught:
        read(Whole, GOOD | {"sizes": ["x"] * 1_000}, "whole")
    assert str(caught.value).count("must be") == 10
    assert str(caught.value).endswith("; and 990 more")


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), json_values))
def test_whatever_is_in_a_field_it_is_read_or_named(changes):
    try:
        check_fields(read(Whole, GOOD | changes, "whole"))
    except UnsupportedFormat as found:
        error = str(found)
    else:
        return
    assert any(f"whole.{name}" in error for name in changes)


def test_other_types_by_decoders():
    def doubled(value, where):
        if value == "no":
            raise UnsupportedFormat(f"{where}: no")
        return complex(value)

    assert read(tuple[complex, ...], ["1", "2"], "x", {complex: doubled}) == (1, 2)
    with pytest.raises(UnsupportedFormat, match=r"x\[1\]: no"):
        read(tuple[complex, ...], ["1", "no"], "x", {complex: doubled})


def test_long_values_are_cut_short():
    assert len(shown("x" * 10**6)) < 100
    assert len(shown([[["x"] * 1_000] * 1_000] * 1_000)) < 1_000
    assert len(shown(10**2_000)) < 100
    assert shown({"heads": -1 << 20_000}) == "{'heads': a whole number of 20,001 bits}"


def test_data_in_memory_are_checked_alike():
    for weight in (True, "1", float("nan")):
        with pytest.raises(UnsupportedFormat, match=f"weight = {weight!r} must be a finite number"):
            check_fields(Part(weight))
    whole = read(Whole, GOOD, "whole")
    object.__setattr__(whole, "sizes", [1, 2])
    with pytest.raises(UnsupportedFormat, match=r"sizes = \[1, 2\] must be a list"):
        check_fields(whole)
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH, "f") is not None
    assert parse_json(r'"\ud83d\ude00"', "f") == "😀"
