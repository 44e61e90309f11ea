import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fsa2lrnn import MooreMachine, Proved, learn, load, prove_equivalent
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.files import alone
from fsa2lrnn.learning import saving
from fsa2lrnn.learning.examples import FreshWords
from fsa2lrnn.learning.judging import LearningTarget
from fsa2lrnn.learning.learning_run import LearningRun
from fsa2lrnn.learning.recipe import Recipe
from fsa2lrnn.learning.saving import (
    CHECKPOINT,
    FORM,
    NETWORK,
    RESULT,
    RESULTS,
    RunFolder,
    RunRequest,
    write_learned,
)
from fsa2lrnn.nn.checkpoint import open_tensors, write_tensors


def run_of(recipe):
    examples = FreshWords(MooreMachine.from_source("task:sum_mod(7)"), source="task:sum_mod(7)")
    return LearningRun(recipe, examples, LearningTarget(examples.machine, examples.sampler, examples.outputs), 7)


def asked(source="task:sum_mod(7)", **changes):
    return RunRequest(source, "0", "train", "task", 0.1, Recipe(**changes))


@pytest.mark.long
def test_resumed_between_two_steps_is_the_same_to_the_last_bit(tmp_path):
    whole = run_of(Recipe(steps=45))
    whole.go()
    folder = RunFolder(tmp_path, asked(), resume=True)
    cut = run_of(Recipe(steps=45))
    cut.go(after_step=lambda run: folder.save(run) if run.steps == 25 else None)
    again = run_of(Recipe(steps=45))
    folder.restore(again)
    assert again.steps == 25
    again.go()
    assert again.trail == whole.trail
    pairs = zip(whole.attempt.model.parameters(), again.attempt.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_the_folder_holds_what_was_learned(tmp_path):
    found = learn("task:parity", folder=tmp_path / "run", steps=500)
    machine = MooreMachine.from_source("task:parity")
    assert isinstance(prove_equivalent(load(tmp_path / "run" / "model.safetensors"), machine), Proved)
    assert MooreMachine.from_source(str(tmp_path / "run" / "machine.json")) == machine.minimise()
    learned = json.loads((tmp_path / "run" / "learned.json").read_text())
    assert learned["verdict"]["verdict"] == "proved"
    assert learned["steps"] == found.steps
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == list(found.trail)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name in RESULTS}


def test_results_stand_until_the_new_ones_are_whole(tmp_path, monkeypatch):
    """Called again, it lost them before it had others."""
    learn("task:parity", folder=tmp_path, steps=500)
    before = contents(tmp_path)
    assert len(before) == 6
    with monkeypatch.context() as patch:
        patch.setattr(LearningRun, "go", full)
        with pytest.raises(OSError, match="full"):
            learn("task:parity", folder=tmp_path, steps=500)
    assert contents(tmp_path) == before
    with monkeypatch.context() as patch:
        patch.setattr(saving, "summary", full)
        with pytest.raises(OSError, match="full"):
            learn("task:parity", folder=tmp_path, steps=600)
    assert contents(tmp_path) == before
    again = learn("task:parity", folder=tmp_path, steps=600)
    assert again.is_proved
    assert {name: text for name, text in contents(tmp_path).items() if name != RESULT} == {
        name: text for name, text in before.items() if name != RESULT
    }
    RunFolder(tmp_path, asked(), resume=False)
    assert (contents(tmp_path), {path.name for path in tmp_path.iterdir()}) == ({}, {"learn.json", ".lock"})


def full(*_):
    raise OSError("the disk is full")


def test_the_evidence_of_one_model_never_stands_beside_another(tmp_path, monkeypatch):
    found = learn("task:parity", folder=tmp_path, steps=500)
    (tmp_path / ".results").mkdir()
    (tmp_path / ".results" / NETWORK).write_text("of a call that was killed")
    write_learned(tmp_path, replace(found, network=None))
    assert not (tmp_path / NETWORK).exists()
    replace_file = Path.replace
    monkeypatch.setattr(Path, "replace", lambda a, b: full() if b == tmp_path / "log.jsonl" else replace_file(a, b))
    with pytest.raises(OSError, match="full"):
        write_learned(tmp_path, found)
    assert not (tmp_path / RESULT).exists()
    assert {path.name for path in tmp_path.iterdir()} & {RESULT, ".results"} == set()


def test_another_run_and_two_at_once_are_refused(tmp_path):
    RunFolder(tmp_path, asked(), resume=True)
    with pytest.raises(UnsupportedFormat, match=r"holds another run \(heads = 4 there and 3 here\)"):
        RunFolder(tmp_path, asked(heads=3), resume=True)
    with pytest.raises(UnsupportedFormat, match=r"source = 'task:sum_mod\(7\)' there and 'b' here"):
        RunFolder(tmp_path, asked("b"), resume=True)
    RunFolder(tmp_path, asked(steps=5), resume=True)
    RunFolder(tmp_path, asked(heads=3), resume=False)
    with alone(tmp_path, "run"), pytest.raises(UnsupportedFormat, match="another run is at work"):
        learn("task:parity", folder=tmp_path)


@pytest.mark.parametrize(("change", "message"), [
    ({"heads": 5}, "heads = 5: no run of this recipe stands there"),
    ({"number": 10**9}, "steps = 2: no run"),
    ({"failures": [[7]]}, "failures: no run"),
    ({"steps": "3"}, "standing.steps = '3' must be a whole number"),
    ({"depth": 1}, "standing.depth is not known"),
])  # fmt: skip
def test_a_standing_that_no_run_has_is_refused(tmp_path, change, message):
    folder, run = RunFolder(tmp_path, asked(), resume=True), run_of(Recipe(steps=3))
    run.go(after_step=folder.save)
    with open_tensors(tmp_path / CHECKPOINT, FORM) as file:
        tensors, standing = file.tensors(), json.loads(file.metadata["standing"])
    write_tensors(tmp_path / CHECKPOINT, FORM, tensors, {"standing": json.dumps(standing)})
    folder.restore(run_of(Recipe(steps=3)))
    write_tensors(tmp_path / CHECKPOINT, FORM, tensors, {"standing": json.dumps(standing | change)})
    with pytest.raises(CheckpointError, match=message):
        folder.restore(run_of(Recipe(steps=3)))


KILLED = """
import sys
from pathlib import Path
from fsa2lrnn.learning import learn, saving
saving._SAVE_SECONDS = 0.0
learn(sys.argv[2], folder=sys.argv[1], steps=100_000, seed=3, suffixes=int(sys.argv[3]))
"""


def standing(folder):
    """What the checkpoint of a run says, if there is one yet."""
    if not (folder / CHECKPOINT).exists():
        return {"steps": 0, "heads": 0}
    with open_tensors(folder / CHECKPOINT, FORM) as file:
        return json.loads(file.metadata["standing"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "suffixes", "heads"),
    [
        ("task:sum_mod(11)", 0, 4),
        ("task:sum_mod(11)", 0, 1),
        ("task:random_dfa(48, 2, seed=0, minimal=true)", 48, 1),
    ],
    ids=["on the way", "after patching", "refined labels"],
)
def test_killed_and_called_again_it_ends_as_if_it_never_was(tmp_path, source, suffixes, heads):
    whole = learn(source, steps=400, seed=3, suffixes=suffixes)
    folder = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(folder), source, str(suffixes)]) as process:
        while standing(folder)["heads"] != heads and process.poll() is None:
            time.sleep(0.02)
        process.kill()
    assert 0 < standing(folder)["steps"] < whole.steps
    assert standing(folder)["heads"] == heads
    again = learn(source, folder=folder, steps=400, seed=3, suffixes=suffixes)
    assert again.trail == whole.trail
    assert again.machine == whole.machine
    for name, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, again.network.state_dict()[name])
