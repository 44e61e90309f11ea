"""What people and programs read: nothing that a terminal obeys, nothing without end."""

import io
import json
import math
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.cli import console


@given(st.text())
def test_only_what_prints_is_left(text):
    plain = console.plain(text)
    assert all(c.isprintable() or c == "\n" for c in plain)
    assert console.plain(plain) == plain
    if text.isprintable():
        assert plain == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\u202eevil", r"\u202eevil"),
        ("\udcff", r"\udcff"),
        ("a\tb\r", r"a\tb\r"),
        ("é×", "é×"),
    ],
)
def test_control_characters_are_escaped(text, shown):
    assert console.plain(text) == shown


def test_errors_keep_both_ends_and_are_not_long(capsys):
    console.error("error", "x" * 100_000 + ": mend it [bold]")
    err = capsys.readouterr().err
    assert err.startswith("error: xxx")
    assert err.endswith("x: mend it [bold]\n")
    left_out = int(re.search(r"…\(([\d,]+) characters\)…", err)[1].replace(",", ""))
    assert left_out == 100_000 - err.count("x")


@given(st.text(), st.integers(1, 3_000))
def test_no_error_is_longer_than_2000_characters(text, times):
    """A message of 60 lines was up to 36,000, one whose echo is escaped longer."""
    with console.err.capture() as captured:
        console.error("error", text * times)
    shown = captured.get().removesuffix("\n")
    assert len(shown) <= 2_000
    if len(console.plain(text)) * times <= 1_990:
        assert shown == f"error: {console.plain(text) * times}"


@given(st.recursive(st.text() | st.floats() | st.integers() | st.none() | st.booleans(), st.lists))
def test_json_is_json_whatever_is_in_it(value):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        console.emit_json({"value": value})
    stream.flush()
    text = stream.buffer.getvalue().decode()
    assert all(c.isprintable() or c == "\n" for c in text)

    def no_constant(name):
        raise AssertionError(name)

    def finite(x):
        if isinstance(x, list):
            return [finite(y) for y in x]
        return str(x) if isinstance(x, float) and not math.isfinite(x) else x

    assert json.loads(text, parse_constant=no_constant)["value"] == finite(value)


def test_json_for_a_stream_that_is_no_utf8(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    console.emit_json({"value": "×"})
    stream.flush()
    assert json.loads(stream.buffer.getvalue()) == {"value": "×"}


def test_streams_escape_what_they_can_not_write(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    console.tolerate_any_text()
    print("×")
    stream.flush()
    assert stream.buffer.getvalue() == b"\\xd7\n"


def test_facts_show_brackets_and_controls_as_they_are(capsys):
    console.facts("title\x07", [("name", "[bold]\x1b[0m")])
    out = capsys.readouterr().out
    assert r"title\x07" in out
    assert r"[bold]\x1b[0m" in out


def test_colons_are_no_pictures(capsys):
    console.error("error", "regex:a, regex:b: two")
    assert capsys.readouterr().err == "error: regex:a, regex:b: two\n"
