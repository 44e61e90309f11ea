"""The penalty on the drift: what it measures, and what training does with it."""

from dataclasses import replace

import pytest
import torch

from fsa2lrnn import MooreMachine, compile_machine
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn import LRNN
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.training.drift import DriftPenalty
from fsa2lrnn.training.settings import Settings, preset
from fsa2lrnn.training.train import TrainingRun, train

from .runs import equal, weights

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


def test_expanding_blocks_are_penalised():
    tables = switched(compile_machine(SUM))
    assert penalty_of(LRNN.from_affine(replace(tables, A=2 * tables.A))) > 0.9


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


def test_settings_without_the_penalty_have_the_text_of_before():
    assert "drift_penalty" not in SETTINGS.to_json()
    assert Settings.from_json(replace(SETTINGS, drift_penalty=2.0).to_json()).drift_penalty == 2.0
