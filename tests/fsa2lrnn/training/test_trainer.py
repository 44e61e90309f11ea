"""The trainer and runs of several seeds."""

import json
import os
import signal
from dataclasses import replace

import pytest
import torch
from torch import nn

from fsa2lrnn import load
from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.training import run_folder, seeds
from fsa2lrnn.training.seeds import FinalAccuracy, RunPlan, SeedFailed, run_seed, run_seeds
from fsa2lrnn.training.settings import Settings
from fsa2lrnn.training.train import Progress
from fsa2lrnn.training.trainer import Trainer


def trainer():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    model.bias.requires_grad_(False)
    return Trainer(model, torch.optim.Adam([model.weight], fused=True))


def test_plans_of_other_names_are_refused_and_gradients_are_clipped():
    saved = trainer().tensors(words=torch.Generator())
    saved["words"] = torch.zeros(3, dtype=torch.uint8)
    with pytest.raises(CheckpointError, match=r"its random numbers cannot be resumed .*: start afresh"):
        trainer().restore(saved, words=torch.Generator())
    one = trainer()
    one.backward(100 * one.model(torch.ones(1, 3)).square().sum())
    before = one.model.weight.grad.norm()
    assert torch.equal(one.clip(None), before)
    assert torch.equal(one.clip(0.5), before)
    assert one.model.weight.grad.norm() <= 0.5


TINY = Settings(
    "task:sum_mod(2)", embedding_dim=4, block=2, heads=2, batch=4, length=6, test_length=9, test_words=5, steps=4,
    evaluate_every=2, stop_at=None,
)  # fmt: skip
PLAN = RunPlan(lengths=(3, 5), n_words=20)


@pytest.mark.slow
def test_seeds_side_by_side(tmp_path):
    events = []
    results = run_seeds(TINY, (0, 3), tmp_path / "both", PLAN, events.append)
    assert [(result["seed"], result["end"], result["step"]) for result in results] == [(0, "steps", 4), (3, "steps", 4)]
    for result in results:
        assert [found["length"] for found in result["last_checkpoint"]] == [3, 5]
        assert result["paper_protocol"]["looks"] == 2
        seed = result["seed"]
        alone = run_seed(replace(TINY, seed=seed), tmp_path / f"alone-{seed}", PLAN, lambda _: None)
        assert alone["last_checkpoint"] == result["last_checkpoint"]
        a, b = (load(run["model"]).state_dict() for run in (alone, result))
        assert all(torch.equal(a[name], b[name]) for name in a)
        assert json.loads((tmp_path / "both" / f"seed-{seed}" / "result.json").read_text())["seed"] == seed
    assert {event.seed for event in events} == {0, 3}
    assert sum(isinstance(event, FinalAccuracy) for event in events) == 4
    assert all(event.record for event in events if isinstance(event, Progress) and event.step in (2, 4))


def test_a_stacked_seed_that_diverges_has_an_error_in_its_result(tmp_path):
    settings = replace(TINY, learning_rate=1e30)
    results = seeds.run_stacked([(settings.with_seed(i), tmp_path / str(i)) for i in (0, 1)], PLAN, lambda _: None)
    assert [result["end"] for result in results] == ["diverged"] * 2
    assert json.loads((tmp_path / "1" / "result.json").read_text()) == results[1]


@pytest.mark.parametrize(
    ("device", "numbers", "way"),
    [("cuda", (0, 1), "run_stacked"), ("cuda:1", (2, 3, 2), "run_stacked"), ("cpu", (0, 1), "_in_processes")],
)
def test_several_seeds_are_stacked_on_a_gpu_and_processes_on_a_cpu(tmp_path, monkeypatch, device, numbers, way):
    called = {}
    for name in ("run_stacked", "_in_processes"):
        monkeypatch.setattr(seeds, name, lambda jobs, _plan, _report, name=name: called.setdefault(name, jobs))
    run_seeds(replace(TINY, device=device), numbers, tmp_path, PLAN)
    assert list(called) == [way]
    assert [settings.seed for settings, _ in called[way]] == list(dict.fromkeys(numbers))


class Deadly:
    """A folder that ends the process which it is handed to."""

    def __reduce__(self):
        return os._exit, (3,)

    def __str__(self):
        return "deadly"


@pytest.mark.slow  # three processes
def test_seeds_that_end_without_a_result_are_named_when_the_others_have_ended(tmp_path):
    run_folder.prepare(tmp_path / "0", replace(TINY, batch=7), resume=True, expected={})
    jobs = [(TINY.with_seed(0), tmp_path / "0"), (TINY.with_seed(1), Deadly()), (TINY.with_seed(2), tmp_path / "2")]
    events = []
    with pytest.raises(SeedFailed) as caught:
        seeds._in_processes(jobs, PLAN, events.append)
    why, died = str(caught.value).split("; seed 1: ")
    assert why.startswith("seed 0: ")
    assert "batch = 7 there and 4 here" in why
    assert (died, {event.seed for event in events}) == ("its process died and left no result: call again", {2})
    assert json.loads((tmp_path / "2" / "result.json").read_text())["end"] == "steps"


@pytest.mark.slow  # test_ctrl_c_ends_seeds_that_run_in_turn is quick
def test_ctrl_c_reaches_every_seed(tmp_path):
    settings = replace(TINY, steps=1_000_000, evaluate_every=100)
    seen = set()

    def report(event):
        if not seen and isinstance(event, Progress):
            os.kill(os.getpid(), signal.SIGINT)
        seen.add(event.seed)

    results = run_seeds(settings, (0, 1), tmp_path, PLAN, report)
    assert [result["end"] for result in results] == ["interrupted"] * 2
    assert all("last_checkpoint" not in result for result in results)


def test_words_that_are_too_long_and_divergence_are_results(tmp_path):
    with pytest.raises(UnsupportedFormat, match="length 10,000,000,000: one such word is longer than the 20,000,000"):
        RunPlan(lengths=(40, 10**10))
    (result,) = run_seeds(replace(TINY, learning_rate=1e30), (0,), tmp_path, PLAN)
    assert result["end"] == "diverged"
    assert "training diverged at step" in result["error"]
    assert json.loads((tmp_path / "seed-0" / "result.json").read_text()) == result
