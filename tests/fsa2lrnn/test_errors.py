"""One base for everything that input can cause, and the built-in kinds that callers may already catch."""

import inspect

import pytest

from fsa2lrnn import errors


@pytest.mark.parametrize("kind", [k for _, k in inspect.getmembers(errors, inspect.isclass)])
def test_every_kind_has_the_base_and_says_what_it_is(kind):
    assert issubclass(kind, errors.Fsa2LrnnError)
    assert kind.__doc__


def test_bad_values_are_value_errors():
    for kind in (errors.InvalidMachine, errors.InvalidWord, errors.UnsupportedFormat, errors.CheckpointError):
        assert issubclass(kind, ValueError)


def test_one_is_no_plural():
    counts = [errors.counted(n, "joint state") for n in (0, 1, 1_000)]
    assert counts == ["0 joint states", "1 joint state", "1,000 joint states"]


def test_long_texts_keep_both_ends():
    assert errors.shortened("short") == "short"
    text = "a" * 100_000 + "b"
    short = errors.shortened(text)
    assert len(short) < 250
    assert short.endswith("…(99,801 characters)…" + "a" * 99 + "b")
