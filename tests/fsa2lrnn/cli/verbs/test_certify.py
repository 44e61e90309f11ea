"""`certify`: a certificate is written, checked and refused."""

import json
from pathlib import Path

import pytest

from fsa2lrnn import MooreMachine, compile_machine, save

KEPT = Path(__file__).parents[4] / "experiments" / "models"
EVEN5, OTHER = (str(KEPT / "even5" / f"seed-{i}.safetensors") for i in (4, 3))


def test_a_certificate_is_written_checked_and_refused(call):
    code, out, _ = call("certify", EVEN5, "task:even_pair(5)", "--memory", "2", "-o", "c.json", "--json")
    horizon = json.loads(out)["horizon"]
    assert (code, horizon >= 5) == (0, True)
    code, out, _ = call("certify", EVEN5, "task:even_pair(5)", "--check", "c.json")
    assert code == 0
    assert "accepted" in out
    assert f"at most {horizon:,} letters" in out
    code, out, _ = call("certify", OTHER, "task:even_pair(5)", "--check", "c.json", "--json")
    facts = json.loads(out)
    assert (code, facts["accepted"]) == (1, False)
    assert facts["why_not"]
    code, out, _ = call("certify", EVEN5, "task:sum_mod(5)", "--check", "c.json")
    assert code == 1
    assert "refused: it is of another machine: they differ after " in out


def test_which_outputs_count_is_said(call, tmp_path):
    """The model lacks an output of the machine: what is certified where it counts is refuted where all count."""
    machine = MooreMachine([[1, 0], [1, 0]], [0, 1], 0, "ab")
    save(compile_machine(machine), tmp_path / "m.safetensors")
    (tmp_path / "m.json").write_text(MooreMachine([[1, 0, 2], [2, 0, 2]], [0, 1, "?"], 0, "ab").to_json())
    said = "outputs of 1 of 3 states do not count: ?; nor does that of the empty word"
    for arguments, also in ((("--memory", "1", "-o", "c.json"), "saved"), (("--check", "c.json"), "accepted")):
        code, out, _ = call("certify", "m.safetensors", "m.json", *arguments)
        shown = " ".join(out.split())
        assert (code, "proved right on every word" in shown, said in shown, also in shown) == (0, True, True, True)
    scope = {"states": 3, "ignored_states": 1, "ignored": ["?"], "empty_word": False}
    code, out, _ = call("certify", "m.safetensors", "m.json", "--check", "c.json", "--json")
    assert (code, json.loads(out)["scope"]) == (0, scope)
    code, out, _ = call("verify", "m.safetensors", "m.json")
    assert (code, "refuted" in out, "every output counts" in out) == (1, True, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((EVEN5, "task:even_pair(5)", "--check", "c.json", "--memory", "2"), "goes with neither --memory nor"),
        ((EVEN5, "task:even_pair(5)", "--check", "c.json"), "No such file or directory: 'c.json'"),
        ((EVEN5, "task:even_pair(5)", "-o", "c.txt"), "a certificate is written to a file ending in .json"),
        ((EVEN5, "task:even_pair(5)", "-o", "no/c.json"), "no such folder, make it first: 'no'"),
        ((EVEN5, "task:even_pair(3)"), "--alphabet '01234' reads task:even_pair(3) over the letters of both"),
        (
            ("task:even_pair(5)", "task:even_pair(5)"),
            "task:even_pair(5) is no model: give a file ending in .safetensors",
        ),
    ],
)
def test_bad_input_is_one_line(call, arguments, message):
    code, out, err = call("certify", *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())
