"""`learn` and `repair`."""

import json
from pathlib import Path

import pytest

from fsa2lrnn import MooreMachine, Proved, load, prove_equivalent, zoo
from fsa2lrnn.checker import program as checker_program
from fsa2lrnn.cli import console
from fsa2lrnn.cli.learn import learn_in


@pytest.mark.long
def test_networks_get_their_evidence_and_progress_is_shown(tmp_path, capsys):
    assert not learn_in(tmp_path, "task:sum_mod(11)", as_json=False, steps=50, look=1, suffixes=0)
    captured = capsys.readouterr()
    assert "words of 5 letters, error" in captured.err
    assert captured.out.startswith("refuted: they differ on")


PARITY = "".join(json.dumps([format(i, "b"), bool(i.bit_count() % 2)]) + "\n" for i in range(1, 64))


def test_a_machine_is_learned_and_proved(call, tmp_path):
    code, out, err = call("learn", "task:parity", "-o", "run")
    assert (code, err) == (0, "")
    assert out.startswith("proved: equal on every word of every length")
    assert "for every word" in out
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names >= {"model.safetensors", "network.safetensors", "machine.dot", "machine.json", "learned.json"}
    machine = MooreMachine.from_source("task:parity")
    assert isinstance(prove_equivalent(load(tmp_path / "run" / "model.safetensors"), machine), Proved)
    assert MooreMachine.from_source(tmp_path / "run" / "machine.dot").n_states == 2


@pytest.mark.usefixtures("out_of_time")
def test_a_time_limit_ends_the_choice_without_a_machine(call, tmp_path):
    (tmp_path / "words.jsonl").write_text(PARITY)
    code, out, err = call("learn", "words.jsonl", "-o", "run", "--max-seconds", "5")
    assert (code, out) == (2, "")
    assert "no machine was found within 5 s of processor time: give more seconds or more words" in err
    assert not (tmp_path / "run" / "learned.json").exists()


def test_what_is_seen_of_words_is_said_once(tmp_path, capsys, monkeypatch):
    (tmp_path / "words.jsonl").write_text(PARITY)
    monkeypatch.setattr(console, "_IN_LOG", (0.01, 0.01))
    with console.displayed("learn", quiet=False, progress=False):
        learn_in(tmp_path / "run", str(tmp_path / "words.jsonl"), as_json=False)
        console.threading.Event().wait(0.1)
    err = capsys.readouterr().err
    assert "learn: 0 s" in err
    assert err.count("letters, 2 outputs, at the ends") == 1


@pytest.mark.parametrize("method", [("--method", "train", "--set", "length=6"), ()])
def test_words_give_evidence_and_no_proof(call, tmp_path, method):
    (tmp_path / "words.jsonl").write_text(PARITY)
    code, out, _ = call("learn", "words.jsonl", "-o", "run", *method)
    assert code == 0
    assert "proved" not in out
    assert "right on 6 of 6 held-out words" in out
    assert MooreMachine.from_source(tmp_path / "run" / "machine.json").n_states == 2


@pytest.mark.long
def test_few_words_and_unexplained_errors_are_warned_of(call, tmp_path):
    (tmp_path / "few.csv").write_text("word,output\nab,true\naab,false\nba,True\nb,FALSE\naaba,false\n")
    code, _, err = call("learn", "few.csv", "-o", "few", "--held-out", "0", "-q")
    assert (code, err.count("\n")) == (0, 1)
    assert "warning: 5 outputs do not determine a machine of 2 states, which takes 6 bits: other machines fit" in err
    assert set(MooreMachine.from_source(tmp_path / "few" / "machine.json").outputs) == {True, False}
    code, out, err = call("verify", "few/model.safetensors", "regex:b*ab*")  # labels are booleans, as of acceptors
    assert (code, "they differ on" in out, err) == (1, True, "")
    (tmp_path / "words.jsonl").write_text(PARITY)
    assert call("learn", "words.jsonl", "-o", "right", "-q")[2] == ""
    wrong = [f'["{i:b}", {"false" if i % 3 else "true"}]\n' for i in range(1, 64)]
    (tmp_path / "wrong.jsonl").write_text(PARITY + "".join(wrong[::2]))
    _, _, err = call("learn", "wrong.jsonl", "-o", "wrong", "--label-noise", "0.01", "--max-seconds", "1")
    assert "outputs are not the machine's, and label noise 0.01 explains 1: give more time, or the noise" in err


@pytest.mark.parametrize(("content", "arguments", "message"), [
    ("", (), "words.jsonl has no words: add lines, each with a word of one or more letters"),
    ('["a", 1]\n["b", 1]\n', (), "words.jsonl holds the output 1 and no other"),
    ('["a", 1]\n["b", 0]\n', ("--label-noise", "some"), "--label-noise 'some': give a share as 0.1, or unknown"),
    ('["a", 1]\n["b", 0]\n', ("--label-noise", "1.5"), "noise = 1.5 must be a share from 0 to below 1"),
    ('["a", 1]\n["b", 0]\n', ("--set", "depth=3"), "depth: no such setting of a recipe"),
    ('["a", 1]\n["b", 0]\n', ("--steps", "3"), "steps: settings of training, for data with --method train"),
])  # fmt: skip
def test_bad_data_is_one_line(call, tmp_path, content, arguments, message):
    (tmp_path / "words.jsonl").write_text(content)
    code, out, err = call("learn", "words.jsonl", "-o", "run", *arguments)
    assert (code, out) == (2, "")
    assert message in err.replace("\n", " ")
    assert not (tmp_path / "run").exists()


SUM2 = str(Path(__file__).parents[3] / "experiments" / "models" / "sum2" / "seed-0.safetensors")


@pytest.mark.long
def test_repairs_are_proved(call, tmp_path):
    code, out, _ = call("repair", SUM2, "task:sum_mod(2)", "--mode", "dyadic", "-o", "r.safetensors", "--json")
    facts = json.loads(out)
    assert (code, facts["accuracy"]) == (0, 1.0)
    assert facts["change"]["A"] < 1
    assert isinstance(prove_equivalent(load(tmp_path / "r.safetensors"), zoo.sum_mod(2), empty_word=False), Proved)
    # The checker, without torch, validates the proof of the repaired model.
    assert call("convert", "task:sum_mod(2)", "-o", "m.json")[0] == 0
    more = ("--no-empty-word", "--certificate", "c.safetensors")
    assert call("verify", "r.safetensors", "task:sum_mod(2)", *more)[0] == 0
    assert checker_program.main(["c.safetensors", "r.safetensors", "m.json"]) == 0


@pytest.mark.parametrize(("arguments", "message"), [
    (("-o", "x.pt"), "a model is written to a file ending in"),
    (("-o", "no/x.safetensors"), "no such folder, make it first: 'no'"),
])  # fmt: skip
def test_bad_input_is_one_line(call, arguments, message):
    code, out, err = call("repair", SUM2, "task:sum_mod(2)", *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.usefixtures("out_of_time")
@pytest.mark.parametrize("more", [(), ("--mode", "dyadic")])
def test_a_time_limit_ends_a_repair_and_is_no_answer(call, more):
    code, out, err = call("repair", SUM2, "task:sum_mod(2)", *more, "--max-seconds", "3", "-o", "r.safetensors")
    assert (code, out) == (2, "")
    assert "error: repair: looking for an affine image of the machine: a share of 0 s of the limit of 3 s" in err
    assert not Path("r.safetensors").exists()
