"""`train`."""

import json
from pathlib import Path

import pytest

PARITY = "".join(json.dumps([format(i, "b"), bool(i.bit_count() % 2)]) + "\n" for i in range(1, 64))


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
