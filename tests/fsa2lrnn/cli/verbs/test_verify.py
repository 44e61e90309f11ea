"""`verify`: proofs, shortest words, and alphabets that differ."""

import json

import pytest

from fsa2lrnn import MooreMachine, compile_machine, save
from fsa2lrnn.checker import program as checker_program
from fsa2lrnn.lrnn.scans import METHODS


def test_a_proof(call):
    assert call("compile", "regex:(ab)*", "-o", "ab.safetensors")[0] == 0
    code, out, _ = call("verify", "ab.safetensors", "regex:(ab)*")
    assert code == 0
    assert "proved: equal on every word of every length\n" in out
    verdict = json.loads(call("verify", "task:parity", "task:parity", "--json")[1])
    assert verdict["verdict"] == "proved"
    assert verdict["scans"] == list(METHODS)


def test_a_proof_is_written_for_the_checker(call):
    assert call("compile", "task:parity", "-o", "m.safetensors")[0] == 0
    assert call("convert", "task:parity", "-o", "m.json")[0] == 0
    assert call("verify", "m.safetensors", "task:parity", "--certificate", "c.safetensors")[0] == 0
    assert checker_program.main(["c.safetensors", "m.safetensors", "m.json"]) == 0
    code, _, err = call("verify", "m.safetensors", "task:parity", "--certificate", "c.json")
    assert (code, "a proof is written to a file ending in .safetensors" in err) == (2, True)


def test_a_refutation_shows_a_shortest_word_and_exits_with_one(call):
    code, out, _ = call("verify", "regex:(ab)*", "regex:(ab)*a|b*&a*", "--json")
    assert code == 1
    verdict = json.loads(out)
    assert (verdict["verdict"], verdict["failure"]["word"]) == ("refuted", ["a"])
    code, out, _ = call("verify", "task:sum_mod(3)", "task:sum_mod(3)", "--max-states", "1")
    assert code == 1
    assert "undecided" in out


def test_the_word_can_be_typed_again(call, tmp_path):
    letters = ["go up", "[go", "1"]
    for name, outputs in (("a", [False, True]), ("b", [False, False])):
        (tmp_path / f"{name}.json").write_text(MooreMachine([[0, 0], [1, 1], [0, 1]], outputs, 0, letters).to_json())
    code, out, _ = call("verify", "a.json", "b.json")
    assert code == 1
    word = out.split("differ on ")[1].split(" (")[0]
    assert word == '["[go"]'
    assert call("run", "a.json", word)[1].startswith("accept  (1 letter")


def test_alphabets_that_differ_say_how_to_complete(call):
    assert call("compile", "regex:(ab)*", "-o", "ab.safetensors")[0] == 0
    code, out, err = call("verify", "ab.safetensors", "regex:()|a*&()")
    assert (code, out) == (2, "")
    assert "the alphabets differ (only the first has ['b'], only the second []): " in err
    assert err.strip().endswith("; --alphabet 'ab' reads regex:()|a*&() over the letters of both")
    code, out, _ = call("verify", "ab.safetensors", "regex:()|a*&()", "--alphabet", "ab")
    assert code == 1
    assert "they differ on ab (2 letters)" in out


def test_a_model_that_lacks_letters_is_compiled_with_them(call, tmp_path):
    save(compile_machine(MooreMachine.from_source("task:sum_mod(2)")), tmp_path / "two.safetensors")
    code, _, err = call("verify", "two.safetensors", "task:sum_mod(3)")
    assert code == 2
    assert "have the same; a model knows more letters where it is compiled with --alphabet '012'\n" in err
    code, _, err = call("verify", "task:sum_mod(3)", "task:sum_mod(2)")
    assert code == 2
    assert "--alphabet '012' reads task:sum_mod(2) over the letters of both, where --completion sink or ignore" in err
    more = ("--alphabet", "012", "--completion", "ignore")
    assert call("compile", "task:sum_mod(2)", *more, "-o", "three.safetensors")[0] == 0
    assert call("verify", "three.safetensors", "task:sum_mod(2)", *more)[0] == 0
    code, out, _ = call("verify", "task:sum_mod(2)", "task:sum_mod(3)", *more)
    assert code == 1
    assert "they differ on 2 (1 letter)" in out


def test_letters_that_are_only_written_alike(call, tmp_path):
    numbers = MooreMachine([[0, 1], [1, 0]], [0, 1])
    save(compile_machine(numbers), tmp_path / "numbers.safetensors")
    code, _, err = call("verify", "numbers.safetensors", "task:sum_mod(2)")
    assert code == 2
    assert "the alphabets differ in kind: the first has 0 (int), the second '0' (str): make both with the same" in err
    assert "LRNN.from_released(weights, alphabet=machine.alphabet" in err
    assert "--alphabet" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("task:parity",), "Missing argument 'SOURCE'"),
        (("task:parity", "m.safetensors"), "m.safetensors is a model, where"),
    ],
)
def test_verify_asks_for_both(call, arguments, message):
    code, _, err = call("verify", *arguments)
    assert code == 2
    assert message in err


@pytest.mark.usefixtures("out_of_time")
def test_a_time_limit_that_has_passed_is_said(call):
    code, out, _ = call("verify", "task:sum_mod(3)", "task:sum_mod(3)", "--max-seconds", "3")
    assert code == 1
    assert out.startswith("undecided: the time limit of 3 s has passed; equal on every word of at most 0 letters")
