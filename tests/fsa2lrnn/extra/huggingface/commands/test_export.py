"""`export`: what is refused before anything is written. What it writes: tests/fsa2lrnn/cli/test_exported.py."""

import json
from pathlib import Path

import pytest

from fsa2lrnn.extra.huggingface.recheck import recheck


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("task:parity", "--layer", "gpt"), 2, "'gpt' is not "),
        (("task:parity",), 2, "error: Missing option '--layer'"),
        (("task:parity", "--layer", "olmo-hybrid", "--dtype", "float16"), 2, "dtype float16: weights are written for"),
        (("task:length_mod(29)", "--layer", "olmo-hybrid"), 1, "no: "),
    ],
)
def test_refused(call, arguments, code, message):
    found, out, err = call("export", *arguments, "-o", "out")
    assert (found, out) == (code, "")
    assert message in err
    assert not Path("out").exists()


def test_a_no_in_json_has_its_certificate_where_it_is_proved(call):
    """It printed nothing."""
    code, out, err = call("export", "task:parity", "--layer", "qwen3-next", "-o", "out", "--json")
    found = json.loads(out)
    assert (code, found["answer"], found["model"]) == (1, "no", {"layer": "qwen3-next", "saved": None})
    assert found["evidence"].startswith("no stack of qwen3-next layers without attention can hold this machine: After")
    assert recheck(found["certificate"]).startswith("impossible")
    assert err.startswith("no: no stack of qwen3-next layers without attention can hold")
    code, out, err = call("export", "task:length_mod(29)", "--layer", "olmo-hybrid", "-o", "out", "--json")
    found = json.loads(out)
    assert (code, found["answer"]) == (1, "unknown")  # it was "no", of one layer alone
    assert recheck(found["certificate"]).startswith("impossible: one layer of olmo-hybrid")
    assert err.startswith("no: no stack of the known constructions was found")
    assert not Path("out").exists()
