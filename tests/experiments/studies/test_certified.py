"""Certified models and block sizes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from experiments import results_io
from experiments.studies import block_sizes
from experiments.studies.keep_models import keep
from fsa2lrnn import LRNN, load, zoo
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.nn.switched import as_tables, switched
from fsa2lrnn.training.seeds import RunPlan, run_seed
from fsa2lrnn.training.settings import Settings

RESULTS = results_io.read("block_sizes")["results"]
ROWS = {row["machine"]: row for row in RESULTS["machines"]}
SMALL = [source for source, row in ROWS.items() if row["states"] <= 12]


def but_seconds(row):
    return {key: value for key, value in row.items() if key != "seconds"}


@pytest.mark.parametrize("source", SMALL[::4])
def test_a_row_is_regenerated_as_it_stands(source):
    assert but_seconds(block_sizes.row(source)) == but_seconds(ROWS[source])


@pytest.mark.slow
@pytest.mark.parametrize("source", ROWS)
def test_every_row_is_regenerated_as_it_stands(source):
    assert but_seconds(block_sizes.row(source)) == but_seconds(ROWS[source])


def test_chains_end_the_example_prints_and_states_are_named(capsys):
    for source in block_sizes.DRAWN_CHAINS:
        found = block_sizes.levels(source)
        assert found == RESULTS["chains"][source]
        sizes = [max(level["classes"]) + 1 for level in found["levels"]]
        assert sizes == sorted(sizes)
        assert sizes[-1] == len(found["states"]) > sizes[-2]
    page = (Path(block_sizes.__file__).parents[2] / "docs" / "block-sizes.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    exec(compile(code, "docs/block-sizes.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        line.split("# ")[1] for line in code.splitlines() if "print" in line
    ]
    machine = zoo.sum_mod(3)
    assert [block_sizes.name(machine, q) for q in range(3)] == ["ε", "1", "2"]


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


@pytest.mark.long
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
