"""`explain`: the verb. What it tells is in test_explanation and test_cascades."""

import json

import pytest


def test_one_family_and_a_drawing(call, tmp_path):
    code, out, _ = call("explain", "task:parity", "--family", "diagonal[-1,1]", "--dot", "parity.dot", "--json")
    assert code == 0
    assert json.loads(out)["families"]["diagonal[-1,1]"]["answer"] == "yes"
    assert "a signed lane" in (tmp_path / "parity.dot").read_text()
    code, out, _ = call(
        "explain", "task:parity", "--family", "lti", "--dot", "again.gv", "--certificates", "new/folder"
    )
    assert code == 0
    assert "drawn in again.gv" in out
    assert [file.name for file in (tmp_path / "new" / "folder").iterdir()] == ["lti.json"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--family", "mamba"), "family 'mamba' is not known"),
        (("--dot", "parity.svg"), "a drawing is written to a file ending in .dot or .gv"),
        (("--dot", "no/where.dot"), "no such folder, make it first: 'no'"),
        (("--certificates", "file"), "this is a file, give a folder: 'file'"),
    ],
)
def test_bad_input_is_one_line(call, tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    code, out, err = call("explain", "task:parity", *arguments)
    assert (code, out) == (2, "")
    assert message in err
