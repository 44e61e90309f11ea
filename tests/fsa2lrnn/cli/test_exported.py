"""`export` and `gates`, and `run` and `verify` of exported folders."""

import json
from pathlib import Path

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.export.recheck import recheck
from fsa2lrnn.export.whole_model import export

pytest.importorskip("transformers")


@pytest.fixture
def s3(call):
    """S3 in a folder of the call."""
    code, out, _ = call("export", "task:group(S3, transpositions)", "--layer", "olmo-hybrid", "-o", "s3")
    assert code == 0
    assert "proved: equal on every word of every length" in out
    return call


@pytest.mark.long
def test_run_and_verify(s3):
    assert s3("run", "s3", "(1,2) (2,3) (1,2)")[1].startswith("(1,3)  (3 letters, float32, olmo-hybrid)")
    rows = s3("run", "s3", "-", "--trace", stdin=b"(1,2) (2,3)\n")[1].splitlines()
    assert [row.split("\t")[-1] for row in rows] == ["output", "(1,2)", "(1,3,2)"]
    value = json.loads(s3("run", "s3", "(1,2)", "--json", "--trace")[1])
    states = value.pop("states")
    assert len(states) == 1
    assert value == {
        "length": 1, "output": "(1,2)", "dtype": "float32", "letters": ["(1,2)"],
        "trace": ["(1,2)"],
    }  # fmt: skip
    code, out, _ = s3("verify", "s3", "task:group(S3, transpositions)", "--json")
    assert (code, json.loads(out)["verdict"]) == (0, "proved")


@pytest.mark.long_cases("arguments0-puts out nothing before the first letter")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "s3", ""), "puts out nothing before the first letter"),
        (("run", "s3", "(1,4)"), "is not in the alphabet"),
        (("run", "s3", "(1,2)", "--alphabet", "ab"), "--alphabet: s3 runs on its own code"),
        (("verify", "s3", "task:parity"), "letter"),
    ],
)
def test_bad_input(s3, arguments, message):
    code, _, err = s3(*arguments)
    assert code == 2
    assert message in err


def test_json_of_an_export(call):
    code, out, _ = call("export", "task:parity", "--layer", "olmo-hybrid", "-o", "p", "--dtype", "bfloat16", "--json")
    assert code == 0
    value = json.loads(out)
    assert (value["proof"]["verdict"], value["proof"]["arithmetic"]) == ("proved", "bfloat16")
    assert value["model"]["layer"] == "olmo-hybrid"


def test_explain_says_which_layer_can(call, tmp_path):
    code, out, _ = call(
        "explain", "task:parity", "--layer", "olmo-hybrid", "--layer", "qwen3-next", "--certificates", "c"
    )
    assert code == 1
    assert "yes: one layer, one head: reflections" in out
    assert 'no: After "1" again and again' in out
    certificate = json.loads((tmp_path / "c" / "qwen3-next.json").read_text())
    assert recheck(certificate).startswith("impossible")
    value = json.loads(call("explain", "task:parity", "--layer", "qwen3-next", "--json")[1])
    assert value["layers"]["qwen3-next"]["certificate"] == certificate
    assert "layer 'gpt' is not known" in call("explain", "task:parity", "--layer", "gpt")[2]


def test_gates(s3, tmp_path):
    (tmp_path / "text").write_text("(1,2) (2,3) (1,2)\n")
    code, out, _ = s3("gates", "s3", "--text", "text")
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert rows[-2] == ["layer.head", "decay", "beta", "key", "eigenvalue", "norm"]
    assert rows[-1] == ["0.0", "1", "2", "1", "-1", "…", "1", "1"]
    assert "1 of 1 heads may have negative eigenvalues for some input; at these tokens 1 have" in " ".join(out.split())
    assert "over" in s3("gates", "s3")[1]
    value = json.loads(s3("gates", "s3", "--tokens", "0,1", "--json")[1])
    assert (value["n_tokens"], value["heads"][0]["observed"]["beta"]) == (2, [2, 2])


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (("task:parity", "--layer", "gpt"), 2, "'gpt' is not "),
    (("task:parity",), 2, "error: Missing option '--layer'"),
    (("task:parity", "--layer", "olmo-hybrid", "--dtype", "float16"), 2, "not one of 'float32', 'bfloat16'"),
])  # fmt: skip
def test_refused(call, arguments, code, message):
    found, out, err = call("export", *arguments, "-o", "out")
    assert (found, out) == (code, "")
    assert message in err
    assert not Path("out").exists()


def test_a_dtype_whose_range_is_too_small_is_refused(tmp_path):
    with pytest.raises(UnsupportedFormat, match="dtype float16: weights are written for float32 and bfloat16"):
        export(zoo.parity(), "olmo-hybrid", tmp_path / "out", "float16")


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


@pytest.mark.parametrize(("arguments", "message"), [
    (("nowhere",), "no such folder: nowhere"),
    ((".",), "holds no model of olmo-hybrid, qwen3-next, qwen3.5"),
    ((".", "--tokens", "1,a"), "--tokens '1,a': give whole numbers"),
    ((".", "--tokens", "1", "--text", "a.txt"), "--text and --tokens: give one of them"),
])  # fmt: skip
def test_gates_refused(call, arguments, message):
    code, out, err = call("gates", *arguments)
    assert (code, out) == (2, "")
    assert message in err
