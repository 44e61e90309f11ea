"""`run`: words as they are typed, piped and traced."""

import json
import subprocess
import sys

import pytest
import torch

from fsa2lrnn import MooreMachine, compile_machine, save, zoo


def test_the_last_output_and_traces(call):
    assert call("run", "regex:(ab)*", "abab")[1].startswith("accept  (4 letters, float32)")
    assert call("run", "task:sum_mod(3)", "")[1].startswith("0  (the empty word")
    code, out, _ = call("run", "task:sum_mod(3)", "-", "--trace", stdin=b"1 2 2\n1\n")
    rows = [line.split("\t") for line in out.splitlines()]
    assert (code, rows[0]) == (0, ["after", "letter", "state", "output"])
    assert [(row[0], row[1], row[3]) for row in rows[1:]] == [
        ("1", "1", "1"), ("2", "2", "0"), ("3", "2", "2"), ("4", "1", "0"),
    ]  # fmt: skip
    assert len({row[2] for row in rows[1:]}) == 3
    assert rows[2][2] == rows[4][2]


def test_a_trace_as_json_has_lists_of_equal_length(call, tmp_path):
    result = json.loads(call("run", "task:mod_arith(5)", "1+2-3*4", "--json", "--trace")[1])
    assert (result["output"], result["trace"]) == (1, [1, None, 3, None, 0, None, 1])
    assert result["letters"] == [*"1+2-3*4"]
    assert len(result["states"]) == 7
    save(compile_machine(zoo.parity()), tmp_path / "m.safetensors")
    result = json.loads(call("run", "m.safetensors", "110", "--json", "--trace")[1])
    assert result["trace"] == [True, False, False]
    assert "states" not in result
    assert json.loads(call("run", "m.safetensors", "", "--json", "--trace")[1])["letters"] == []


def test_long_letters_and_dashes(call, tmp_path):
    (tmp_path / "lift.json").write_text(
        MooreMachine([[1, 1], [0, 0]], [False, True], alphabet=["up", "down"]).to_json()
    )
    assert call("run", "lift.json", "up down up")[1].startswith("accept  (3 letters")
    assert call("run", "task:mod_arith(5)", "--", "-1")[1].startswith("error  (2 letters")
    code, _, err = call("run", "task:mod_arith(5)", "-1")
    assert code == 2
    assert "No such option: -1 (write -- before a word that begins with -; `fsa2lrnn run --help` tells" in err
    assert call("run", "task:mod_arith(5)", "-", stdin=b"-")[1].startswith("error  (1 letter,")


def test_pipes_and_models_that_are_damaged(call, tmp_path):
    code, _, err = call("run", "task:parity", "-", stdin=b"0110\xff")
    assert code == 2
    assert "standard input is not UTF-8 (byte 0xff at offset 4): give it in that encoding" in err
    (tmp_path / "m.safetensors").write_bytes(b"not a model")
    code, _, err = call("run", "m.safetensors", "a")
    assert code == 2
    assert "is damaged or no safetensors file" in err


def test_a_line_is_answered_when_it_arrives_and_goes_on_where_the_last_one_ended(call):
    code, out, _ = call("run", "task:sum_mod(5)", "-", stdin=b"1 2\n\n4\r\n3")
    assert (code, [line.split("  (")[0] for line in out.splitlines()]) == (0, ["3", "3", "2", "0"])
    code, out, _ = call("run", "task:sum_mod(5)", "-", "--json", stdin=b"12\n4\n")
    assert [(row["length"], row["output"]) for row in map(json.loads, out.splitlines())] == [(2, 3), (3, 2)]
    assert call("run", "task:sum_mod(5)", "-")[1].startswith("0  (the empty word")
    code, out, _ = call("run", "regex:(a\\n)*", "-", stdin=b"a\na\n")  # a line end that is a letter
    assert (code, out) == (0, "accept  (4 letters, float32)\n")


@pytest.mark.long
def test_a_pipe_that_stays_open_is_answered_line_by_line():
    command = [sys.executable, "-m", "fsa2lrnn", "run", "task:parity", "-", "--trace"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"1\n")
        assert process.stdout.readline().startswith(b"after")
        assert process.stdout.readline().split() == [b"1", b"1", b"True", b"accept"]
        process.stdin.write(b"0 1\n")
        assert [process.stdout.readline().split()[-1] for _ in range(2)] == [b"accept", b"reject"]
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.long
def test_a_long_pipe_through_the_installed_command():
    word = "1+2-3*4+" * 10_000 + "1"
    command = [sys.executable, "-m", "fsa2lrnn", "run", "task:mod_arith(5)", "-", "--json"]
    answer = json.loads(subprocess.run(command, input=word, capture_output=True, text=True, check=True).stdout)
    assert answer["length"] == 80_001
    assert answer["output"] == (10_000 * (1 + 2 - 12) + 1) % 5
    assert zoo.mod_arith(5).transduce(word)[-1] == answer["output"]


def numbers(x):
    return (torch.view_as_real(x) if x.is_complex() else x).flatten()


def state_size(model):
    return len(numbers(model.initial_state()[0].x))
