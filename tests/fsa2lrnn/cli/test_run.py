"""`run`: words as they are typed, piped and traced."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, compile_machine, save, zoo
from fsa2lrnn.cli.run import with_vectors
from fsa2lrnn.nn import LRNN, LRNNConfig
from fsa2lrnn.nn.layers.diagonal import LRUConfig


@pytest.fixture
def lift(tmp_path):
    """A machine over letters with spaces, among them "-", in the folder of the call."""
    letters = ["one up", "-", "[down"]
    (tmp_path / "lift.json").write_text(MooreMachine([[1, 1], [0, 1], [0, 0]], [False, True], 0, letters).to_json())


def test_the_last_output_and_traces(call):
    assert call("run", "regex:(ab)*", "abab")[1].startswith("accept  (4 letters, float32)")
    assert call("run", "task:sum_mod(3)", "")[1].startswith("0  (the empty word")
    assert call("run", "task:mod_arith(5)", "1+2×3", "--scan", "pscan")[1].startswith("2  (5 letters, float32, pscan)")
    code, out, _ = call("run", "task:sum_mod(3)", "-", "--trace", stdin=b"1 2 2\n1\n")
    rows = [line.split("\t") for line in out.splitlines()]
    assert (code, rows[0]) == (0, ["after", "letter", "state", "output"])
    assert [(row[0], row[1], row[3]) for row in rows[1:]] == [
        ("1", "1", "1"), ("2", "2", "0"), ("3", "2", "2"), ("4", "1", "0"),
    ]  # fmt: skip
    assert len({row[2] for row in rows[1:]}) == 3
    assert rows[2][2] == rows[4][2]
    code, out, _ = call("run", "task:parity", "10", "--vectors")
    assert (code, [line.split("\t")[-1] for line in out.splitlines()[1:]]) == (0, ["accept", "0 1", "accept", "0 1"])


def test_a_trace_as_json_has_lists_of_equal_length(call, tmp_path):
    result = json.loads(call("run", "task:mod_arith(5)", "1+2-3*4", "--json", "--trace")[1])
    assert (result["output"], result["trace"]) == (1, [1, None, 3, None, 0, None, 1])
    assert result["letters"] == [*"1+2-3*4"]
    assert len(result["states"]) == 7
    assert "vectors" not in result
    save(compile_machine(zoo.parity()), tmp_path / "m.safetensors")
    result = json.loads(call("run", "m.safetensors", "110", "--json", "--vectors")[1])
    assert (result["trace"], result["vectors"]) == ([True, False, False], [[[0, 1]], [[1, 0]], [[1, 0]]])
    assert "states" not in result
    assert json.loads(call("run", "m.safetensors", "", "--json", "--vectors")[1])["letters"] == []


def test_long_letters_and_dashes(call, tmp_path):
    (tmp_path / "lift.json").write_text(
        MooreMachine([[1, 1], [0, 0]], [False, True], alphabet=["up", "down"]).to_json()
    )
    assert call("run", "lift.json", "up down up")[1].startswith("accept  (3 letters")
    assert call("run", "lift.json", '["up", "down"]')[1].startswith("reject  (2 letters")
    assert call("run", "task:mod_arith(5)", "--", "-1")[1].startswith("error  (2 letters")
    code, _, err = call("run", "task:mod_arith(5)", "-1")
    assert code == 2
    assert "No such option: -1 (write -- before a word that begins with -; `fsa2lrnn run --help` tells" in err
    assert call("run", "task:mod_arith(5)", '["-"]')[1].startswith("error  (1 letter,")


@pytest.mark.usefixtures("lift")
@pytest.mark.parametrize(
    ("word", "answer"), [('["one up", "-"]', "accept  (2"), ('["-"]', "reject  (1"), ("[]", "reject  (the empty")]
)
def test_letters_with_spaces_are_a_json_list(call, word, answer):
    assert call("run", "lift.json", word)[1].startswith(answer)
    assert call("run", "lift.json", "-", stdin=f"\n {word}\n".encode())[1].startswith(answer)


def test_pipes_and_models_that_are_damaged(call, tmp_path):
    code, _, err = call("run", "task:parity", "-", stdin=b"0110\xff")
    assert code == 2
    assert "standard input is not UTF-8 (byte 0xff at offset 4): give it in that encoding" in err
    (tmp_path / "m.safetensors").write_bytes(b"not a model")
    code, _, err = call("run", "m.safetensors", "a")
    assert code == 2
    assert "is damaged or no safetensors file" in err


@pytest.mark.long
def test_a_long_pipe_through_the_installed_command():
    word = "1+2-3*4+" * 10_000 + "1"
    command = [sys.executable, "-m", "fsa2lrnn", "run", "task:mod_arith(5)", "-", "--json"]
    answer = json.loads(subprocess.run(command, input=word, capture_output=True, text=True, check=True).stdout)
    assert answer["length"] == 80_001
    assert answer["output"] == (10_000 * (1 + 2 - 12) + 1) % 5
    assert answer["method"] == "auto"
    assert zoo.mod_arith(5).transduce(word)[-1] == answer["output"]


def numbers(x):
    return (torch.view_as_real(x) if x.is_complex() else x).flatten()


def state_size(model):
    return len(numbers(model.initial_state()[0].x))


def test_vectors_are_the_states_after_each_letter():
    torch.manual_seed(0)
    config = LRNNConfig(("a", "b"), (0, 1), (LRUConfig(4, 3),) * 2, embedding_dim=4, connection="full-residual")
    model = LRNN(config)
    tokens = np.array([0, 1, 1])
    steps = list(with_vectors(model, [tokens]))
    assert [[len(row) for row in step.vectors] for step in steps] == [[state_size(model)] * 2] * 3
    with torch.no_grad():
        _, state = model.advance(torch.from_numpy(tokens)[None], model.initial_state())
    assert torch.allclose(torch.tensor(steps[-1].vectors[1]), numbers(state[1].x), atol=1e-6)
    table = compile_machine(zoo.sum_mod(3), layout="index")
    assert [step.vectors for step in with_vectors(table, [np.array([1, 1])])] == [[[1]], [[2]]]
