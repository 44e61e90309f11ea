"""`certify`: a certificate is written, checked and refused."""

import json
from pathlib import Path

import pytest

from fsa2lrnn import MooreMachine, compile_machine, save, zoo

KEPT = Path(__file__).parents[4] / "experiments" / "models"
EVEN5 = str(KEPT / "even5" / "seed-4.safetensors")
SUM2, OTHER = (str(KEPT / "sum2" / f"seed-{i}.safetensors") for i in (0, 1))


def test_a_certificate_is_written_checked_and_refused(call, tmp_path):
    code, out, _ = call("certify", SUM2, "task:sum_mod(2)", "--memory", "1", "-o", "c.json", "--json")
    horizon = json.loads(out)["horizon"]
    assert (code, horizon >= 20) == (0, True)
    code, out, _ = call("certify", SUM2, "task:sum_mod(2)", "--check", "c.json")
    assert code == 0
    assert "accepted" in out
    assert "next:" not in out
    assert f"at most {horizon:,} letters" in out
    code, out, _ = call("certify", OTHER, "task:sum_mod(2)", "--check", "c.json", "--json")
    facts = json.loads(out)
    assert (code, facts["accepted"]) == (1, False)
    assert facts["why_not"]
    machine = zoo.sum_mod(2)
    swapped = MooreMachine(machine.delta[::-1], machine.outputs, 0, machine.alphabet)
    (tmp_path / "swapped.json").write_text(swapped.to_json())
    code, out, _ = call("certify", SUM2, "swapped.json", "--check", "c.json")
    assert code == 1
    assert "refused: it is of another machine: they differ after " in out


def test_where_all_lengths_may_be_proved_that_is_said(call, tmp_path):
    save(compile_machine(zoo.parity(), normalisation="onehot"), tmp_path / "m.safetensors")
    _, out, _ = call("certify", "m.safetensors", "task:parity", "--memory", "1")
    assert "next: fsa2lrnn verify m.safetensors task:parity, which may prove all lengths" in out


def test_what_is_certified_where_it_counts_is_refuted_where_all_counts_and_both_say_so(call, tmp_path):
    """The model lacks an output of the machine: of `certify`, `--check`, `repair` and `verify` each names it."""
    machine, pair = zoo.sum_mod(3), ("m.safetensors", "m.json")
    save(compile_machine(machine), tmp_path / pair[0])
    (tmp_path / pair[1]).write_text(MooreMachine(machine.delta, [0, 1, "?"], 0, machine.alphabet).to_json())
    said = "outputs of 1 of 3 states do not count: ?; nor does that of the empty word"
    for arguments, also in ((("--memory", "1", "-o", "c.json"), "saved"), (("--check", "c.json"), "accepted")):
        code, out, _ = call("certify", *pair, *arguments)
        shown = " ".join(out.split())
        assert (code, "proved right on every word" in shown, said in shown, also in shown) == (0, True, True, True)
    code, out, _ = call("certify", *pair, "--check", "c.json", "--json")
    scope = {"states": 3, "ignored_states": 1, "ignored": ["?"], "empty_word": False}
    assert (code, json.loads(out)["scope"]) == (0, scope)
    code, out, _ = call("repair", *pair)
    assert (code, said in " ".join(out.split())) == (0, True)
    code, out, _ = call("verify", *pair)
    assert (code, "refuted" in out, "every output counts" in out) == (1, True, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((EVEN5, "task:even_pair(5)", "--check", "c.json", "--memory", "2"), "goes without --memory, --max-seconds"),
        ((EVEN5, "task:even_pair(5)", "--check", "c.json"), "No such file or directory: 'c.json'"),
        ((EVEN5, "task:even_pair(5)", "-o", "c.txt"), "a certificate is written to a file ending in .json"),
        ((EVEN5, "task:even_pair(5)", "-o", "no/c.json"), "no such folder, make it first: 'no'"),
        ((EVEN5, "task:even_pair(3)"), "--alphabet '01234' reads task:even_pair(3) over the letters of both"),
        (
            ("task:even_pair(5)", "task:even_pair(5)"),
            "task:even_pair(5) is not a model: give a file ending in .safetensors",
        ),
    ],
)
def test_bad_input_is_one_line(call, arguments, message):
    code, out, err = call("certify", *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


@pytest.mark.usefixtures("out_of_time")
def test_a_time_limit_gives_the_length_certified_by_then(call):
    code, out, _ = call("certify", SUM2, "task:sum_mod(2)", "--max-seconds", "3", "-o", "c.json")
    assert code == 0
    assert "time limit the search was cut short after 3 s, with N = 1: without a time limit" in " ".join(out.split())
    assert call("certify", SUM2, "task:sum_mod(2)", "--check", "c.json")[0] == 0


def test_an_exported_folder_is_sent_to_verify(call, tmp_path):
    folder = tmp_path / "exported"
    folder.mkdir()
    (folder / "fsa2lrnn.json").write_text("{}", encoding="utf-8")
    code, _, err = call("certify", str(folder), "regex:(ab)*")
    assert code == 2
    assert "fsa2lrnn verify" in err
