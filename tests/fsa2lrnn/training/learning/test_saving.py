import json

import pytest
import torch

from fsa2lrnn import MooreMachine, learn, load
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.judge import Proved, prove_equivalent
from fsa2lrnn.training.learning.examples import FreshWords
from fsa2lrnn.training.learning.judging import Target
from fsa2lrnn.training.learning.recipe import Recipe
from fsa2lrnn.training.learning.run import Run
from fsa2lrnn.training.learning.saving import RunFolder


def run_of(recipe):
    examples = FreshWords(MooreMachine.from_source("task:sum_mod(7)"), source="task:sum_mod(7)")
    return Run(recipe, examples, Target(examples.machine, examples.sampler, examples.outputs), 7)


def test_resumed_between_two_steps_is_the_same_to_the_last_bit(tmp_path):
    whole = run_of(Recipe(steps=45))
    whole.go()
    folder = RunFolder(tmp_path, Recipe(), "task", resume=True)
    cut = run_of(Recipe(steps=45))
    cut.go(after_step=lambda run: folder.save(run) if run.steps == 25 else None)
    again = run_of(Recipe(steps=45))
    again.restore(folder.state())
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
    assert learned["verdict"]["kind"] == "proved"
    assert learned["steps"] == found.steps
    lines = (tmp_path / "run" / "trail.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == list(found.trail)


def test_another_run_is_not_mixed_in(tmp_path):
    RunFolder(tmp_path, Recipe(), "task:parity", resume=True)
    with pytest.raises(UnsupportedFormat, match=r"holds another run \(heads = 4 there and 3 here\)"):
        RunFolder(tmp_path, Recipe(heads=3), "task:parity", resume=True)
    RunFolder(tmp_path, Recipe(steps=5), "task:parity", resume=True)
    RunFolder(tmp_path, Recipe(heads=3), "task:parity", resume=False)
