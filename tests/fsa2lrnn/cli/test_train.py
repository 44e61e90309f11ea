"""`train` and `sweep`: what does not fit is said before anything runs."""

import json
from pathlib import Path

import pytest

from fsa2lrnn.training import sweep
from fsa2lrnn.training.sweep import SUMMARY, SweepOutcome

PARITY = "".join(json.dumps([format(i, "b"), bool(i.bit_count() % 2)]) + "\n" for i in range(1, 64))


@pytest.mark.long
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
    "--set", "embedding_dim=4", "--set", "block=2", "--set", "heads=2", "--set", "batch=4", "--set", "length=6",
)  # fmt: skip
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
    assert "chance level, the best constant answer: 0.500 at length 6" in err
    assert ("cannot represent the machine" in err) == (layer != "liquid_s4")
    assert ("or not: it is not decided" in err) == (layer == "liquid_s4")
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


FEW = {"steps": 4, "batch": 4, "length": 6, "test_length": 9, "test_words": 5, "evaluate_every": 2}
FEW |= {"embedding_dim": 4, "stop_at": None}
TINY = {"tiny": {"block": 2, "heads": 2}}
UNLEARNABLE = "regex:(a|b)*"  # has one output, which training finds out


@pytest.fixture
def seen(monkeypatch):
    """The sweeps that would be run, and how."""
    calls = []

    def swept(folder, asked, *how, report, **more):
        assert callable(report)
        calls.append((asked, str(folder), (*how, more)))
        return SweepOutcome([], False, False)

    monkeypatch.setattr(sweep, "sweep_in", swept)
    return calls


def written(tmp_path, **entries):
    given = {"preset": "quick", "networks": TINY, "settings": {"few": FEW}, "lengths": [4], "words": 20, **entries}
    (tmp_path / "s.json").write_text(json.dumps(given))


def test_runs_and_what_they_came_to(call, tmp_path):
    written(tmp_path, tasks=["task:parity"])
    code, out, err = call("sweep", "s.json", "--engine", "serial", "-o", "out", "--json")
    facts = json.loads(out)
    assert (code, facts["folder"]) == (0, "out")
    assert facts["cells"] == json.loads((tmp_path / "out" / SUMMARY).read_text())
    assert [cell["ends"] for cell in facts["cells"]] == [{"steps": 1}]
    assert "[1/1, " in err
    assert "task:parity, tiny, few, seed 0: steps at step 4" in err
    code, out, err = call("sweep", "s.json", "--engine", "serial", "-o", "out")
    assert code == 0
    assert "1 run, 1 of them finished before" in err
    assert "results and summary: out" in out
    written(tmp_path, tasks=[UNLEARNABLE])
    assert call("sweep", "s.json", "--engine", "serial", "--retries", "0", "-o", "bad")[0] == 1


def test_seeds_take_the_place_of_those_of_the_file(call, tmp_path, seen):
    (tmp_path / "s.toml").write_text('tasks = ["task:parity"]\nseeds = [0, 1]\n[settings.slow]\nlearning_rate = 1e-5\n')
    assert call("sweep", "s.toml", "--seeds", "7", "--retries", "3", "-o", "out")[0] == 0
    ((trials, folder, how),) = seen
    assert (folder, how) == ("out", ("ray", None, {"retries": 3}))
    assert [(trial.setting, trial.settings.seed) for trial in trials] == [("slow", 7)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nothing.json"], "task 'task:nothing': task 'nothing' is not known"),
        (["empty.json"], "the sweep.tasks is missing"),
        (["nowhere.json"], "No such file or directory: 'nowhere.json'"),
        (["latin.toml"], "latin.toml is not UTF-8 (byte 0xe9 at offset 11, in line 1): save it in that encoding"),
        (["empty.json", "--retries", "-1"], "Invalid value for '--retries'"),
        (["empty.json", "--import", "nowhere:Layer"], "nowhere"),
        (["empty.json", "--seeds", "a"], "--seeds 'a': give whole numbers separated by commas"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_runs(call, tmp_path, options, message):
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "nothing.json").write_text('{"tasks": ["task:nothing"]}')
    (tmp_path / "latin.toml").write_bytes(b'tasks = ["a\xe9"]')
    code, out, err = call("sweep", *options, "--engine", "serial", "-o", "out")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert not (tmp_path / "out").exists()
