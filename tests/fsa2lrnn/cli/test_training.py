"""Training as it is shown: what is printed, written and answered."""

import json
import warnings

import pytest

from fsa2lrnn.cli.training import _warn_of_constant_answers, main, share
from fsa2lrnn.training.seeds import RunPlan
from fsa2lrnn.training.settings import preset

TINY = {
    "embedding_dim": 4, "block": 2, "heads": 2, "batch": 4, "length": 6, "test_length": 9, "test_words": 5, "steps": 4,
    "evaluate_every": 2, "stop_at": None,
}  # fmt: skip
PLAN = RunPlan(lengths=(3, 5), n_words=20)


def test_a_run_in_json(tmp_path, capsys):
    assert main("task:sum_mod(2)", "quick", tmp_path, [2], TINY, PLAN, True) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document == json.loads((tmp_path / "result.json").read_text())
    assert document["settings"]["learning_rate"] == 1e-3
    (result,) = document["seeds"]
    assert (result["seed"], result["end"], result["step"]) == (2, "steps", 4)
    assert document["paper_protocol_mean"] == result["paper_protocol"]["accuracy"]
    lines = captured.err.splitlines()
    assert lines[0].startswith("seed 2: step 2 of 4, ")
    assert "steps/s, loss 0." in lines[0]
    assert "at length 9, at most" in lines[0]
    assert len(lines) == 4
    assert lines[-1].startswith("seed 2: length 5: ")


def test_a_constant_answer_that_scores_is_warned_of():
    with pytest.warns(UserWarning, match=r"'reject' alone is right on 100 % of the words of 40 .* --sampler balanced"):
        _warn_of_constant_answers(preset("quick", "regex:(ab)*"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _warn_of_constant_answers(preset("quick", "regex:(ab)*", sampler="balanced"))


def test_a_run_for_people(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main("task:sum_mod(2)", "quick", tmp_path, [0], TINY, PLAN, False) == 0
    out = capsys.readouterr().out
    for piece in ("task:sum_mod(2)", "steps at 4", "at step", "mean over 1: ", "last output right", "models, metrics"):
        assert piece in out
    assert [line.split()[:3] for line in out.splitlines() if "[" in line] == [["0", "3", "20"], ["0", "5", "20"]]


def test_divergence_is_a_no(tmp_path, capsys):
    assert main("task:sum_mod(2)", "quick", tmp_path, [0], {**TINY, "learning_rate": 1e30}, PLAN, False) == 1
    assert "training diverged at step 2" in " ".join(capsys.readouterr().out.split())
    assert json.loads((tmp_path / "result.json").read_text())["paper_protocol_mean"] is None


def test_shares():
    assert share({"accuracy": 0.5, "interval": [0.25, 0.75]}) == "0.5000 [0.2500, 0.7500]"
