"""`train`: options become settings; what a run prints is in test_training."""

import json
from pathlib import Path

import pytest

FEW = ("--set", "embedding_dim=4", "--set", "block=2", "--set", "heads=2", "--set", "batch=4", "--set", "length=6")
FEW += ("--set", "test_length=9", "--set", "test_words=5", "--set", "evaluate_every=2", "--steps", "4")
JUDGED = ("--lengths", "3", "--words", "20")


def test_settings_by_name_none_among_them(call, tmp_path):
    out = ("--output", "runs", "--preset", "quick", "--json")
    code, text, _ = call("train", "task:sum_mod(2)", *out, *FEW, "--set", "stop_at=None", *JUDGED)
    document = json.loads(text)
    assert code == 0
    assert (document["settings"]["stop_at"], document["settings"]["steps"]) == (None, 4)
    assert (tmp_path / "runs" / "seed-0" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output", "runs", "--set", "stop_at"), "--set 'stop_at': write NAME=VALUE, layers=3"),
        (("--output", "runs", "--set", "stop_at=nothing"), "stop_at = 'nothing' must be an accuracy above 0, or None"),
        (("--output", "runs", "--seeds", "a"), "--seeds 'a': give whole numbers separated by commas"),
        (("--output", "file"), "this is a file, give a folder: 'file'"),
        (("--output", "file/below"), "this is a file, give a folder: '/"),
        (("--output", "runs", "--layer", "spiral"), "layer 'spiral' is not known: one of block, householder"),
        (("--output", "runs", "--layer", "nowhere:Layer"), "nowhere"),
        ((), "Missing option '--output' / '-o'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(call, tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    code, out, err = call("train", "task:sum_mod(2)", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


LAYERS = {"s4": "d_state=4", "liquid_s4": "kernel=polyb", "s5": "ssm_size=4", "rwkv4": "seed=1"}


@pytest.mark.extra("baselines", "report")
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_of_others_go_through_every_verb(call, layer):
    options = ("--set", "connection=full-residual", "--set", f"layer={layer}", "--set", LAYERS[layer], "--steps", "2")
    task = "task:sum_mod(2)"
    code, _, err = call(
        "train", task, "--output", "r", "--preset", "quick", *FEW, *options, "--lengths", "6", "--words", "9"
    )
    assert code == 0, err
    (model,) = Path("r").glob("**/model.safetensors")
    code, out, _ = call("compare", str(model), task, "--lengths", "6", "--words", "9", "--max-seconds", "1")
    assert code == 0
    assert ("none looked for: layers.0 is of kind liquid_s4 and not causal" in out) == (layer == "liquid_s4")
    code, _, err = call("falsify", str(model), task, "--max-seconds", "1")
    assert code == 2 if layer == "liquid_s4" else code in (0, 1)
    for verb in (["extract"], ["certify"], ["verify"]):
        code, _, err = call(*verb, str(model), *([] if verb == ["extract"] else [task]))
        assert code == 2
        assert f"layers.0 is of kind {layer}" in err.replace("\n", " ")


HARD = ("--set", "normalisation=onehot", "--preset", "quick")


@pytest.mark.extra("learning")
def test_then_prove_reads_the_automaton_out(call, tmp_path):
    code, out, _ = call("train", "task:parity", "--output", "runs", "--json", *FEW, *HARD, *JUDGED, "--then-prove")
    (result,) = json.loads(out)["seeds"]
    verdict = result["learned"]["verdict"]["verdict"]
    assert code == (verdict != "proved")
    assert (tmp_path / "runs" / "seed-0" / "proved" / "machine.dot").exists()


@pytest.mark.extra("learning")
def test_then_prove_refuses_what_is_no_automaton_before_the_work(call, tmp_path):
    code, _, err = call("train", "task:parity", "--output", "runs", "--then-prove")
    assert code == 2
    assert "--then-prove with layer = 'block', normalisation = 'released': only layers that are automata" in err
    assert not (tmp_path / "runs").exists()
