"""`train` and `repair`."""

import json
from pathlib import Path

import pytest

from fsa2lrnn import load, prove_equivalent, zoo
from fsa2lrnn.verdicts import Proved

PARITY = "".join(json.dumps([format(i, "b"), bool(i.bit_count() % 2)]) + "\n" for i in range(1, 64))


@pytest.mark.extra("learning")
def test_wrong_labels_and_settings_by_name(call, tmp_path):
    (tmp_path / "words.jsonl").write_text(PARITY + '["1", false]\n')
    code, out, _ = call(
        "learn", "words.jsonl", "-o", "run", "--label-noise", "0.05", "--held-out", "0", "--set", "settle=30", "--set",
        "length=6", "--steps", "700",
    )  # fmt: skip
    assert code == 0
    assert "no words were held out" in out
    out = ("--output", "runs", "--preset", "quick", "--json")
    code, text, _ = call("train", "task:sum_mod(2)", *out, *FEW_STEPS, "--set", "stop_at=None", *JUDGED)
    document = json.loads(text)
    assert code == 0
    assert (document["settings"]["stop_at"], document["settings"]["steps"]) == (None, 4)
    assert (tmp_path / "runs" / "seed-0" / "model.safetensors").exists()


FEW_STEPS = (
    "--set",
    "embedding_dim=4",
    "--set",
    "block=2",
    "--set",
    "heads=2",
    "--set",
    "batch=4",
    "--set",
    "length=6",
)
FEW_STEPS += ("--set", "test_length=9", "--set", "test_words=5", "--set", "evaluate_every=2", "--steps", "4")
JUDGED = ("--lengths", "3", "--words", "20")


LAYERS = {"s4": "d_state=4", "liquid_s4": "kernel=polyb", "s5": "ssm_size=4", "rwkv4": "seed=1"}


@pytest.mark.extra("baselines", "report")
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_of_others_go_through_every_verb(call, layer):
    options = ("--set", "connection=full-residual", "--set", f"layer={layer}", "--set", LAYERS[layer], "--steps", "2")
    task = "task:sum_mod(2)"
    code, _, err = call(
        "train", task, "--output", "r", "--preset", "quick", *FEW_STEPS, *options, "--lengths", "6", "--words", "9"
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
    code, out, _ = call(
        "train", "task:parity", "--output", "runs", "--json", *FEW_STEPS, *HARD, *JUDGED, "--then-prove"
    )
    (result,) = json.loads(out)["seeds"]
    verdict = result["learned"]["verdict"]["verdict"]
    assert code == (verdict != "proved")
    assert (tmp_path / "runs" / "seed-0" / "proved" / "machine.dot").exists()


@pytest.mark.extra("learning")
def test_then_prove_refuses_what_is_no_automaton_before_the_work(call, tmp_path):
    code, _, err = call("train", "task:parity", "--output", "runs", "--then-prove")
    assert code == 2
    assert "--then-prove with layer = 'block', normalisation = 'paper': only layers that are automata" in err
    assert not (tmp_path / "runs").exists()


SUM2 = str(Path(__file__).parents[4] / "experiments" / "models" / "sum2" / "seed-0.safetensors")


@pytest.mark.extra("learning")
def test_repairs_and_distilled_layers_are_proved(call, tmp_path):
    code, out, _ = call("repair", SUM2, "task:sum_mod(2)", "--mode", "dyadic", "-o", "r.safetensors", "--json")
    facts = json.loads(out)
    assert (code, facts["accuracy"]) == (0, 1.0)
    assert facts["change"]["A"] < 1
    assert isinstance(prove_equivalent(load(tmp_path / "r.safetensors"), zoo.sum_mod(2), empty_word=False), Proved)
    code, out, _ = call("repair", SUM2, "task:sum_mod(2)", "--snap")
    assert code == 0
    assert "1.000000 along 500,000" in out
    code, out, _ = call("repair", SUM2, "task:sum_mod(2)", "--mode", "distil", "-o", "new.safetensors")
    assert code == 0
    assert out.startswith("proved: equal on every word of every length")
    assert load(tmp_path / "new.safetensors").config.normalisation == "onehot"
    code, _, err = call("repair", SUM2, "task:sum_mod(2)", "--mode", "distil", "--columns", "p<=1")
    assert code == 2
    assert "--mode distil makes a layer of one-hot columns: it goes without --columns" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--snap", "--mode", "dyadic"), "--snap replaces the model"),
        (("-o", "x.pt"), "a model is written to a file ending in"),
        (("-o", "no/x.safetensors"), "no such folder, make it first: 'no'"),
    ],
)
def test_bad_input_is_one_line(call, arguments, message):
    code, out, err = call("repair", SUM2, "task:sum_mod(2)", *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.usefixtures("out_of_time")
@pytest.mark.parametrize("more", [(), ("--columns", "p<=1"), ("--mode", "dyadic")])
def test_a_time_limit_ends_a_repair_and_is_no_answer(call, more):
    code, out, err = call("repair", SUM2, "task:sum_mod(2)", *more, "--max-seconds", "3", "-o", "r.safetensors")
    assert (code, out) == (2, "")
    assert "error: repair: looking for an affine image of the machine: a share of 0 s of the limit of 3 s" in err
    assert not Path("r.safetensors").exists()
