"""Text options that stand for more than one value."""

import pytest

from fsa2lrnn.cli.given import assignments, named_assignments, whole_numbers
from fsa2lrnn.errors import UnsupportedFormat


@pytest.mark.parametrize("text", ["", "1,", "one", "0;1"])
def test_seeds_that_are_no_numbers(text):
    with pytest.raises(UnsupportedFormat, match=r"--seeds .*: give whole numbers separated by commas"):
        whole_numbers(text, "--seeds")


@pytest.mark.parametrize("text", ["layers", "=3", ""])
def test_settings_that_are_no_assignments(text):
    with pytest.raises(UnsupportedFormat, match="write NAME=VALUE, layers=3"):
        assignments([text])


@pytest.mark.parametrize("text", ["fast", "fast:", "fast:layers", "fast:=3", ":layers=3", "fast:layers=3,", "fast: =1"])
def test_named_settings_that_are_no_assignments(text):
    with pytest.raises(UnsupportedFormat, match=r"write NAME:KEY=VALUE, fast:learning_rate=0\.001,layers=2"):
        named_assignments([text])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("None", None), ("null", None), (" None ", None), ("True", True), ("true", True), ("False", False),
        ("1e-3", 1e-3), ("none", "none"), ("nothing", "nothing"), ("[" * 100_000, "[" * 100_000), ("", ""),
    ],
)  # fmt: skip
def test_values_as_json_and_as_python_writes_them(text, value):
    assert assignments([f"x={text}"]) == {"x": value}
    if "," not in text:
        assert named_assignments([f"a:x={text}"]) == {"a": {"x": value}}
