"""What the verbs take: sources, sizes and options."""

import json
import subprocess
import sys
import warnings

import pytest
import torch

from fsa2lrnn import MooreMachine, compile_machine, save, zoo
from fsa2lrnn.cli import sources
from fsa2lrnn.cli.options import assignments
from fsa2lrnn.cli.train import _chance_level, share, train_seeds
from fsa2lrnn.errors import CheckpointError, InvalidMachine, UnsupportedFormat
from fsa2lrnn.training.seeds import RunPlan
from fsa2lrnn.training.settings import preset


@pytest.mark.parametrize(("text", "value"), [
    ("None", None), ("null", None), (" None ", None), ("True", True), ("true", True), ("False", False),
    ("1e-3", 1e-3), ("none", "none"), ("nothing", "nothing"), ("[" * 100_000, "[" * 100_000), ("", ""),
])  # fmt: skip
def test_values_as_json_and_as_python_writes_them(text, value):
    assert assignments([f"x={text}"]) == {"x": value}


def test_models_come_from_files_by_short_names_or_are_compiled(tmp_path):
    save(compile_machine(zoo.parity(), dtype=torch.float64), tmp_path / "m.safetensors")
    assert sources.model_of(str(tmp_path / "m.safetensors")).dtype == torch.float64
    assert sources.model_of("task:parity").dtype == torch.float32
    assert sources.model_of("task:parity", alphabet="012", completion="sink").alphabet == ("0", "1", "2")
    with pytest.raises(CheckpointError, match=r"task:parity is not a model: give a file ending in \.safetensors"):
        sources.learned_model("task:parity")
    with pytest.raises(UnsupportedFormat, match=r"m\.safetensors is a model, where an automaton is asked for"):
        sources.read_machine("m.safetensors")
    with pytest.raises(CheckpointError, match=r"is a folder that `fsa2lrnn export` did not write: give a model in it"):
        sources.model_of(str(tmp_path))
    assert sources.exported_folder(str(tmp_path)) is None


def test_machines_over_more_letters_and_completions():
    machine = sources.read_machine("regex:a*", alphabet="ab")
    assert machine.transduce("aab") == [True, True, False]
    assert sources.read_machine("regex:.*", alphabet="ab").accepts("ab")
    assert sources.read_machine("task:sum_mod(2)", "ignore", "012").transduce("121") == [1, 1, 0]
    with pytest.raises(InvalidMachine, match="no transition for state 0 on '2'"):
        sources.read_machine("task:sum_mod(2)", alphabet="012")
    model = compile_machine(zoo.sum_mod(3))
    with pytest.raises(InvalidMachine, match=r"both, where --completion sink or ignore says what new ones do$"):
        sources.check_letters(model, zoo.sum_mod(2), "S")
    texts = MooreMachine(zoo.sum_mod(3).delta, "012", 0, zoo.sum_mod(3).alphabet)
    with pytest.raises(InvalidMachine, match=r"no output of the model is one of S, .*: 0 is of type int, '0' of str"):
        sources.check_letters(model, texts, "S")


TINY = {
    "embedding_dim": 4, "block": 2, "heads": 2, "batch": 4, "length": 6, "test_length": 9, "test_words": 5, "steps": 4,
    "evaluate_every": 2, "stop_at": None,
}  # fmt: skip
PLAN = RunPlan(lengths=(3, 5), n_words=20)


@pytest.mark.long
def test_a_run_in_json(tmp_path, capsys):
    assert train_seeds("task:sum_mod(2)", "quick", tmp_path, [2], TINY, PLAN, True) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document == json.loads((tmp_path / "result.json").read_text())
    assert document["settings"]["learning_rate"] == 1e-3
    (result,) = document["seeds"]
    assert (result["seed"], result["end"], result["step"]) == (2, "steps", 4)
    assert document["paper_protocol_mean"] == result["paper_protocol"]["accuracy"]
    chance, theory, *lines = captured.err.splitlines()
    assert theory == "theory: one layer of block-diagonal can represent the machine, if it is large enough"
    assert chance.startswith("chance level, the best constant answer: 0.500")
    assert lines[0].startswith("seed 2: step 2 of 4, ")
    assert "steps/s, loss 0." in lines[0]
    assert "at length 9, at most" in lines[0]
    assert len(lines) == 4
    assert lines[-1].startswith("seed 2: length 5: ")


@pytest.mark.long
def test_constant_answers_and_divergence(tmp_path, capsys):
    with pytest.warns(
        UserWarning, match=r"'reject' alone is right on 100 % of the words of 40 .* --set sampler=balanced"
    ):
        _chance_level(preset("quick", "regex:(ab)*"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _chance_level(preset("quick", "regex:(ab)*", sampler="balanced"))
    assert train_seeds("task:sum_mod(2)", "quick", tmp_path, [0], {**TINY, "learning_rate": 1e30}, PLAN, False) == 1
    assert "training diverged at step 2" in " ".join(capsys.readouterr().out.split())
    assert json.loads((tmp_path / "result.json").read_text())["paper_protocol_mean"] is None


def test_options_load_nothing_heavy_and_shares():
    assert share({"accuracy": 0.5, "interval": [0.25, 0.75]}) == "0.5000 [0.2500, 0.7500]"
    code = "import sys, fsa2lrnn.cli.options\nassert not {'torch', 'numpy', 'fsa2lrnn.automata'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
