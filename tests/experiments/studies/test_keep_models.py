"""What is kept of a run computes what was trained, bit for bit, and says how it came about."""

import json
from dataclasses import replace

import pytest
import torch

from experiments.studies.keep_models import keep, main
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.lrnn import LRNN, load
from fsa2lrnn.lrnn.switched import as_tables, switched
from fsa2lrnn.training.seeds import RunPlan, run_seed
from fsa2lrnn.training.settings import Settings

TINY = Settings(
    "task:sum_mod(2)", embedding_dim=4, block=2, heads=2, batch=4, length=6, test_length=9, test_words=5, steps=2,
    evaluate_every=2, stop_at=None,
)  # fmt: skip
PLAN = RunPlan(lengths=(3, 5), n_words=20)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two ended runs of one layer, and one of two layers."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (2, 10):
        run_seed(replace(TINY, seed=seed), folder / "one" / f"seed-{seed}", PLAN, lambda _: None)
    run_seed(replace(TINY, layers=2), folder / "two" / "seed-0", PLAN, lambda _: None)
    return folder


def test_a_model_of_one_layer_is_kept_as_its_tables(runs, tmp_path):
    facts = keep(runs / "one" / "seed-2", tmp_path / "kept" / "seed-2")
    trained, kept = load(runs / "one" / "seed-2" / "model.safetensors"), load(tmp_path / "kept" / "seed-2.safetensors")
    tokens = torch.randint(2, (5, 70))
    with torch.no_grad():
        assert torch.equal(trained(tokens), kept(tokens))
    assert json.loads((tmp_path / "kept" / "seed-2.json").read_text()) == facts
    assert (facts["kept_as"], facts["task"], facts["seed"], facts["step"]) == ("tables", "task:sum_mod(2)", 2, 2)
    assert facts["sha256"] == switched(trained).sha256 == switched(kept).sha256
    assert facts["parameters_trained"] == sum(weight.numel() for weight in trained.parameters())
    assert [line["length"] for line in facts["last_checkpoint"]] == [3, 5]
    assert facts["versions"]["torch"] == torch.__version__
    assert facts["command"].startswith('fsa2lrnn train "task:sum_mod(2)" --output FOLDER --seeds 2 --steps 2 --set ')
    assert "--set stop_at=null" in facts["command"]


def test_the_command_of_released_settings_is_short(runs, tmp_path, monkeypatch):
    settings = Settings("task:sum_mod(2)", seed=2, steps=10_000)
    monkeypatch.setattr(Settings, "from_json", lambda _: settings)
    facts = keep(runs / "one" / "seed-2", tmp_path / "seed-2")
    assert facts["command"] == 'fsa2lrnn train "task:sum_mod(2)" --output FOLDER --seeds 2 --steps 10000'


def test_several_layers_are_kept_as_they_are(runs, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    main([runs / "two", runs / "one"], tmp_path)
    shown = capsys.readouterr().out
    assert [line.split()[1] for line in shown.splitlines() if "seed-" in line] == [
        "two/seed-0",
        "one/seed-2",
        "one/seed-10",
    ]
    trained, kept = (
        load(path) for path in (runs / "two/seed-0/model.safetensors", tmp_path / "two/seed-0.safetensors")
    )
    assert all(torch.equal(weight, kept.state_dict()[name]) for name, weight in trained.state_dict().items())
    facts = json.loads((tmp_path / "two" / "seed-0.json").read_text())
    assert (facts["kept_as"], facts["sha256"]) == ("weights", None)


def test_tables_that_compute_something_else_are_refused(runs, monkeypatch):
    trained = load(runs / "one" / "seed-2" / "model.safetensors")

    def off_by_a_bit(tables):
        model = from_affine(tables)
        with torch.no_grad():
            weight = model.layers[0].value[2].weight.view(-1)
            weight[0] = torch.nextafter(weight[0], weight[0] + 1)
        return model

    from_affine = LRNN.from_affine
    as_tables(trained)
    monkeypatch.setattr(LRNN, "from_affine", off_by_a_bit)
    with pytest.raises(CheckpointError, match="do not give the model's own logits, bit for bit, on "):
        as_tables(trained)


def test_runs_that_have_not_ended_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"seed-7 has no result\.json: only runs that have ended"):
        keep(tmp_path / "seed-7", tmp_path / "kept")
    (tmp_path / "seed-7").mkdir()
    (tmp_path / "seed-7" / "result.json").write_text('{"seed": 7, "end": "interrupted", "step": 3}')
    with pytest.raises(CheckpointError, match="the run was interrupted: only runs that have ended"):
        keep(tmp_path / "seed-7", tmp_path / "kept")
    assert not (tmp_path / "kept.json").exists()
