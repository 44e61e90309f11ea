"""The study of the paper's Table 2."""

import json
from dataclasses import replace

import numpy as np
import pytest

from experiments import results_io
from experiments.studies.table2 import __main__ as script
from experiments.studies.table2 import cells, chance, columns
from experiments.studies.table2.columns import COLUMNS, TASKS, rates_of, sweep
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.nn import LRNN
from fsa2lrnn.training.data import make_sampler, words
from fsa2lrnn.training.grid import Sweep
from fsa2lrnn.training.seeds import RunPlan
from fsa2lrnn.training.train import prepare_words


@pytest.mark.long_cases("liquid_exact", "ours")
@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_is_a_network_of_the_right_depth_and_protocol(name):
    for task, layers in zip(TASKS, (1, 1, 3), strict=True):
        trials = sweep(task, name, rates_of(name), (0, 1)).trials
        assert len(trials) == 2 * len(rates_of(name))
        settings = trials[0].settings
        assert (settings.steps, settings.batch, settings.evaluate_every, settings.test_words) == (
            40_000, 128, 1_000, 128,
        )  # fmt: skip
        assert (settings.length, settings.test_length, settings.stop_at) == (40, 500, 1.0)
        words = prepare_words(settings)
        model = LRNN(settings.network(words.alphabet, words.outputs))
        assert len(model.layers) == layers
        batch = words.batch(2, words.fit(12), words.generator(0))
        assert model(batch.tokens).shape == (*batch.tokens.shape, len(words.outputs))


TASK_OF_MAIN = columns.TASKS[0]
TINY = {"block": 2, "heads": 2, "embedding_dim": 4, "batch": 4, "steps": 4, "evaluate_every": 2, "test_words": 4}


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    def sweep(task, name, rates, seeds, _device):
        changes = {"own": {"learning_rate": 1e-3}, "paper": {}}
        network = {**columns.COLUMNS[name].network, **TINY, "length": 6, "test_length": 9}
        settings = {rate: changes[rate] for rate in rates}
        return Sweep((task,), {name: network}, settings, seeds, "paper", RunPlan(lengths=(5, 9), n_words=8))

    monkeypatch.setattr(columns, "sweep", sweep)
    monkeypatch.setattr(cells, "LENGTHS", (5, 9))
    monkeypatch.setattr(results_io, "RESULTS", tmp_path / "results")
    results_io.write("training", [], "")
    small = {name: replace(column, seeds=2) for name, column in columns.COLUMNS.items()}
    for module in (columns, cells):
        monkeypatch.setattr(module, "COLUMNS", small)
    return tmp_path


def call(folder, **options):
    script.main(folder, ["s4d"], [TASK_OF_MAIN], engine="serial", **{"collect": False, **options})


@pytest.mark.long
def test_cells_are_run_once_and_collected_and_others_go_on(tiny, capsys):
    call(tiny / "runs")
    written = json.loads((tiny / "results" / "table2.json").read_text())["results"]
    cell = next(c for c in written["cells"] if (c["task"], c["column"]) == (TASK_OF_MAIN, "s4d"))
    assert cell["is_finished"]
    assert set(cell["at_40_by_rate"]) == {"own", "paper"}
    assert (tiny / "results" / "table2.svg").exists()
    assert "2 of 2" in capsys.readouterr().out
    before = (tiny / "runs" / "results.jsonl").read_bytes()
    call(tiny / "runs")
    call(tiny / "runs", collect=True)
    assert (tiny / "runs" / "results.jsonl").read_bytes() == before
    call(tiny / "runs")
    kept = (tiny / "results" / "table2_runs.jsonl").read_bytes()
    assert kept == (tiny / "runs" / "results.jsonl").read_bytes()
    document = (tiny / "results" / "table2.json").read_bytes()
    call(tiny / "others")  # runs nothing: no run has a folder there
    assert [path.name for path in (tiny / "others").iterdir() if path.is_dir()] == []
    assert (tiny / "others" / "results.jsonl").read_bytes() == kept
    assert (tiny / "results" / "table2_runs.jsonl").read_bytes() == kept
    assert (tiny / "results" / "table2.json").read_bytes() == document
    with pytest.raises(ValueError, match="column 's6' is none of ours, s4, s4d"):
        script.main(tiny, ["s6"], None)
    with pytest.raises(ValueError, match="task 'task:parity' is none of task:sum_mod"):
        script.main(tiny, None, ["task:parity"])
    with pytest.raises(ValueError, match="rate 'other' is none of own, paper"):
        script.main(tiny, None, None, ["other"])


def test_chance_agrees_with_words_and_simulation():
    assert chance.level("task:sum_mod(5)", 500).best_of_looks == pytest.approx(0.279, abs=5e-4)
    even = chance.level("task:even_pair(5)", 500)
    assert even.best_of_looks == pytest.approx(0.873, abs=5e-4)
    assert (even.answer, even.share) == (0, pytest.approx(0.8))
    assert chance.level("task:mod_arith(5)", 500).share == pytest.approx(0.2, abs=2e-3)
    assert (chance.best_of_looks(1.0)[-1], chance.best_of_looks(0.0)[0]) == (1, 1)
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
