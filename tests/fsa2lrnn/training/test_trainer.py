"""The trainer: initial weights, seeds and chance levels."""

import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fsa2lrnn import LRNN, MooreMachine, compile_machine, load
from fsa2lrnn.errors import CheckpointError, NotExpressible, UnsupportedFormat
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.training import chance, run_folder, seeds
from fsa2lrnn.training.data import make_sampler, words
from fsa2lrnn.training.drift import DriftPenalty
from fsa2lrnn.training.evaluate import count
from fsa2lrnn.training.initial import compiled_start
from fsa2lrnn.training.seeds import FinalAccuracy, RunPlan, SeedFailed, run_seed, run_seeds
from fsa2lrnn.training.settings import Settings, preset
from fsa2lrnn.training.train import Progress, TrainingRun, train
from fsa2lrnn.training.trainer import Trainer

from .runs import equal, weights


def trainer():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    model.bias.requires_grad_(False)
    return Trainer(model, torch.optim.Adam([model.weight], fused=True))


def step(trainer, words):
    trainer.backward(trainer.model(torch.randn(4, 3, generator=words)).square().sum())
    trainer.update([0.1])


def test_a_restored_trainer_continues_to_the_same_bits():
    one, words = trainer(), torch.Generator().manual_seed(1)
    shapes = one.shapes(words=words)
    step(one, words)
    saved = {name: tensor.clone() for name, tensor in one.tensors(words=words).items()}
    assert {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in saved.items()} == shapes
    step(one, words)
    other, again = trainer(), torch.Generator()
    other.restore(saved, words=again)
    step(other, again)
    assert torch.equal(other.model.weight, one.model.weight)
    assert torch.equal(words.get_state(), again.get_state())


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


def start(task, noise=0.0, **changes):
    settings = Settings(task, **{"normalisation": "clip", **changes})
    machine = settings.machine()
    drawn = words(machine, make_sampler(settings.sampler, machine, settings.task))
    return settings, drawn, compiled_start(settings, drawn, noise)


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("task:sum_mod(5)", {}),
        ("task:sum_mod(5)", {"normalisation": "none", "layer_norm": False}),
        ("task:sum_mod(3)", {"layers": 3}),
        ("task:tomita(4)", {"layers": 2, "connection": "concat", "token_shift": True}),
        ("task:group(S3)", {"dtype": "float64"}),
        ("task:flip_flop", {"block": 3, "heads": 1, "embedding_dim": 5}),
        ("task:mod_arith(5, completion=register)", {"block": 25, "heads": 2}),
    ],
)
def test_without_noise_it_is_right_on_long_words(task, changes):
    settings, drawn, model = start(task, **changes)
    assert model.config == settings.network(drawn.alphabet, drawn.outputs)
    length = drawn.fit(2_000)
    found = count(model, drawn, length, 20, drawn.generator(0))
    assert found.whole == found.words == 20


def test_initial_weights_have_heads_by_factor_and_noise_by_size():
    _, drawn, model = start("task:group(Z5xZ3)")
    assert count(model, drawn, 300, 20, drawn.generator(1)).whole == 20
    assert (model.layers[0].x0.detach().sum(1) == torch.tensor([1.0, 1, 0, 0, 0, 0, 0, 0])).all()
    exact, noisy = start("task:sum_mod(5)")[2], start("task:sum_mod(5)", noise=0.1)[2]
    moved = torch.cat([(a - b).flatten() for a, b in zip(noisy.parameters(), exact.parameters(), strict=True)])
    assert abs(moved.std() - 0.1) < 0.001
    again, other = start("task:sum_mod(5)", noise=0.1)[2], start("task:sum_mod(5)", noise=0.1, seed=1)[2]
    assert all(torch.equal(a, b) for a, b in zip(noisy.parameters(), again.parameters(), strict=True))
    assert not torch.equal(noisy.readout[0].weight, other.readout[0].weight)
    assert isinstance(noisy, LRNN)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"normalisation": "paper"}, 'the rule "paper"'),
        ({"layers": 2, "connection": "chain"}, "the last sees no letters"),
        ({"embedding_dim": 4}, "embedding_dim: 4, 5 needed"),
        ({"block": 4}, "more than max_block"),
        (
            {"layer": "householder", "normalisation": "none"},
            "layer = 'householder': one-hot maps are written into blocks",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(changes, message):
    with pytest.raises(NotExpressible, match=message):
        start("task:sum_mod(5)", **changes)


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
    assert died == "its process died and left no result: call again"
    assert {event.seed for event in events} == {2}
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


def test_chance_agrees_with_words_and_simulation():
    assert chance.level("task:sum_mod(5)", 500).best_of_looks == pytest.approx(0.279, abs=5e-4)
    even = chance.level("task:even_pair(5)", 500)
    assert even.best_of_looks == pytest.approx(0.873, abs=5e-4)
    assert (even.answer, even.share) == (0, pytest.approx(0.8))
    assert chance.level("task:mod_arith(5)", 500).share == pytest.approx(0.2, abs=2e-3)
    assert chance.best_of_looks(1.0)[-1] == 1
    assert chance.best_of_looks(0.0)[0] == 1
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.training.data import make_sampler, words

    task = "task:mod_arith(5)"
    shares = chance.output_shares(task, 10)
    assert sum(shares.values()) == pytest.approx(1)
    machine = MooreMachine.from_source(task)
    drawn = words(machine, make_sampler("task", machine, task))
    labels = drawn.batch(20_000, drawn.fit(10), drawn.generator(0)).labels[:, -1].numpy()
    found = np.bincount(labels, minlength=len(drawn.outputs)) / len(labels)
    assert found == pytest.approx([shares[output] for output in drawn.outputs], abs=0.015)
    best = chance.best_of_looks(0.2)
    draws = np.random.default_rng(0).binomial(chance.WORDS, 0.2, (4_000, chance.TRIALS, chance.LOOKS)).max(2)
    scores = np.arange(chance.WORDS + 1)
    assert best.sum() == pytest.approx(1)
    assert float(best @ scores) == pytest.approx(draws.mean(), abs=0.1)
    low, high = chance.mean_interval(best)
    means = draws.mean(1) / chance.WORDS
    assert np.mean((low <= means) & (means <= high)) == pytest.approx(0.95, abs=0.02)


SUM = MooreMachine.from_source("task:sum_mod(3)")
SETTINGS = preset(
    "quick", "task:sum_mod(3)", embedding_dim=16, block=4, heads=4, batch=16, length=12, steps=150, test_length=12,
    test_words=8, evaluate_every=20, stop_at=None, learning_rate=5e-3,
)  # fmt: skip


def drawn_words(words=256, length=12):
    return torch.randint(len(SUM.alphabet), (words, length), generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def penalty_of(model):
    return DriftPenalty(model, SUM)(drawn_words()).item()


def test_exact_models_have_no_drift_and_changed_ones_have_some():
    model = compile_machine(SUM)
    assert penalty_of(model) < 1e-12
    with torch.no_grad():
        model.recurrences[0].value[-1].bias.add_(0.1)
    assert penalty_of(model) > 1e-4
    tables = switched(compile_machine(SUM))
    assert penalty_of(LRNN.from_affine(replace(tables, A=2 * tables.A))) > 0.9  # blocks expand


def test_training_lowers_the_drift(tmp_path):
    plain, penalised = (
        train(replace(SETTINGS, drift_penalty=weight), tmp_path / str(weight)).model for weight in (0.0, 10.0)
    )
    assert penalty_of(penalised) < 0.5 * penalty_of(plain)


def test_a_run_with_the_penalty_continues_to_the_last_bit(tmp_path):
    settings = replace(SETTINGS, drift_penalty=3.0)
    train(settings, tmp_path / "straight")
    resumed = tmp_path / "resumed"
    run = TrainingRun(settings, resumed, resume=False)
    for _ in range(100):  # 25 of them with the penalty
        run.update()
        if run.is_test_due:
            run.test_and_save()
    run.finish()
    train(settings, resumed)
    assert equal(weights(resumed), weights(tmp_path / "straight"))


def test_what_the_penalty_is_not_for(tmp_path):
    with pytest.raises(UnsupportedFormat, match="drift_penalty is for one layer over letters"):
        train(replace(SETTINGS, layers=2, drift_penalty=1.0), tmp_path)
    with pytest.raises(UnsupportedFormat, match="which a graph cannot record"):
        replace(SETTINGS, device="cuda", cuda_graph=True, drift_penalty=1.0)
    with pytest.raises(UnsupportedFormat, match="drift_penalty"):
        replace(SETTINGS, drift_penalty=-1.0)
    assert "drift_penalty" not in SETTINGS.to_json()  # as files of before
