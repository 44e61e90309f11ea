"""`export`: what is refused before anything is written. What it writes: tests/fsa2lrnn/cli/test_exported.py."""

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("task:parity", "--to", "gpt"), 2, "'gpt' is not "),
        (("task:parity",), 2, "error: Missing option '--to'. Choose from: olmo-hybrid, qwen3-next, "),
        (("task:parity", "--to", "olmo-hybrid", "--dtype", "float16"), 2, "dtype float16: weights are written for"),
        (("task:sum_mod(5)", "--to", "olmo-hybrid"), 1, "no: "),
    ],
)
def test_refused(call, arguments, code, message):
    found, out, err = call("export", *arguments, "-o", "out")
    assert (found, out) == (code, "")
    assert message in err
    assert not Path("out").exists()
