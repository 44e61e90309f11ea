"""`explain`: the verb. What it tells is in test_explanation and test_cascades."""

import json
import xml.etree.ElementTree as ET

import pytest

from fsa2lrnn import MooreMachine


@pytest.mark.extra("report")
def test_one_family_and_a_drawing(call, tmp_path):
    code, out, _ = call("explain", "task:parity", "--family", "diagonal[-1,1]", "--draw", "parity.dot", "--json")
    assert code == 0
    assert json.loads(out)["families"]["diagonal[-1,1]"]["answer"] == "yes"
    assert "a signed lane" in (tmp_path / "parity.dot").read_text()
    code, out, _ = call(
        "explain", "task:parity", "--family", "lti", "--draw", "again.svg", "--certificates", "new/folder"
    )
    assert code == 0
    assert "cascade drawn in again.svg" in out
    assert ET.fromstring((tmp_path / "again.svg").read_text()).tag.endswith("svg")
    assert "signed lane" in (tmp_path / "again.svg").read_text()
    assert [file.name for file in (tmp_path / "new" / "folder").iterdir()] == ["lti.json"]


def test_letters_with_spaces_are_told_apart(call, tmp_path):
    """'go up down' was of one letter, of two or of three."""
    machine = MooreMachine([[1, 2, 2], [0, 0, 2]], [False, True, False], alphabet=("go up", "down"))
    (tmp_path / "lift.json").write_text(machine.to_json())
    code, out, _ = call("explain", "lift.json", "--family", "diagonal[0,1]", "--json")
    found = json.loads(out)
    assert code == 0
    says = [fact["witness"]["says"] for fact in found["monoid"]["facts"].values() if fact["witness"]]
    assert any('["go up", "down"]' in text for text in says)
    assert not any("go up down" in text or "'go up" in text for text in says)
    assert '["go up"' in found["families"]["diagonal[0,1]"]["evidence"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--family", "lstm"), "family 'lstm' is not known"),
        (("--draw", "parity.pdf"), "a drawing is written to a file ending in .svg or .dot or .gv"),
        (("--draw", "no/where.dot"), "no such folder, make it first: 'no'"),
        (("--certificates", "file"), "this is a file, give a folder: 'file'"),
    ],
)
def test_bad_input_is_one_line(call, tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    code, out, err = call("explain", "task:parity", *arguments)
    assert (code, out) == (2, "")
    assert message in err
