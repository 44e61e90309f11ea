"""`gates`: what is refused before anything is read. What it says: tests/fsa2lrnn/cli/test_exported.py."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "no such folder: nowhere"),
        ((".",), "holds no model of olmo-hybrid, qwen3-next, mamba-2"),
        ((".", "-o", "a.png"), "the picture is written to a file ending in .svg"),
        ((".", "--tokens", "1,a"), "--tokens '1,a': give whole numbers"),
        ((".", "--tokens", "1", "--text", "a.txt"), "--text and --tokens: give one of them"),
        ((".", "--window", "0"), "Invalid value for '--window'"),
    ],
)
def test_refused(call, arguments, message):
    code, out, err = call("gates", *arguments)
    assert (code, out) == (2, "")
    assert message in err
