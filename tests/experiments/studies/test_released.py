"""Studies of released models, sweeps and families."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from experiments import results_io, script
from experiments.studies import families as families_table
from experiments.studies import released, sooner
from experiments.studies import sweeps as sweep_table
from experiments.studies import training as training_table
from experiments.studies.sooner import row
from fsa2lrnn.automata import minimise, zoo
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.distributed.grid import Sweep, read
from fsa2lrnn.extra.distributed.sweep import SUMMARY
from fsa2lrnn.extra.huggingface import LAYERS
from fsa2lrnn.extra.huggingface.refuse import answer
from fsa2lrnn.families import represent
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.optional import is_installed

NEEDED = {"rwkv-7": ("rwkv",), "pd-ssm": ("pdssm", "einops"), "slstm": ("xlstm",)}
ROWS = {row["machine"]: row for row in results_io.read("released_table")["results"]}


def test_answers_are_known_for_every_machine():
    assert list(ROWS) == list(dict.fromkeys(released.MACHINES))
    answers = [said["answer"] for row in ROWS.values() for said in row["layers"].values()]
    assert answers.count("unknown") < len(answers) / 10


@pytest.mark.parametrize("source", [source for source, row in ROWS.items() if row["states"] <= 12])
def test_answers_are_as_they_stand(source):
    machine = zoo.from_task(source)
    assert {layer: answer(machine, layer).kind for layer in LAYERS} == {
        layer: said["answer"] for layer, said in ROWS[source]["layers"].items()
    }


@pytest.mark.parametrize("source", ["flip_flop", "ab_star", "parity"])
def test_a_row_is_regenerated_as_it_stands(source):
    pytest.importorskip("transformers")
    machine = zoo.from_task(source).minimise()
    there = [layer for layer in LAYERS if all(map(is_installed, NEEDED.get(layer, ())))]
    assert {"olmo-hybrid", "qwen3-next", "mamba-2", "mamba", "kimi-linear"} <= set(there)
    for layer in there:
        assert released.cell(machine, layer) == ROWS[source]["layers"][layer]


SPREADS = {name: {"mean": 0.5, "min": 0, "max": 1} for name in ("last_position", "whole_word")}
LINE = {"length": 9, "words": 20, **SPREADS}
SWEPT_CELL = {"task": "task:parity", "network": "block-2", "setting": "as-preset", "seeds": 2, "ends": {"steps": 2}}
SWEPT_CELL |= {"paper_protocol": {"mean": 1, "min": 1, "max": 1}, "lengths": [LINE]}


@pytest.fixture
def gather(tmp_path, monkeypatch):
    """Gather these cells for a sweep of parity in block-2: the document."""
    monkeypatch.setattr(sweep_table, "SWEEPS", tmp_path)
    monkeypatch.setattr(results_io, "RESULTS", tmp_path / "results")
    (tmp_path / "mine.toml").write_text('tasks = ["task:parity"]\nnetworks = ["block-2"]\n')

    def run(cells):
        (tmp_path / SUMMARY).write_text(json.dumps(cells))
        sweep_table.main("mine", tmp_path)
        return results_io.read("sweep_mine")

    return run


def test_cells_and_sweep_are_written_side_by_side(gather):
    document = gather([SWEPT_CELL])
    assert document["results"] == {
        "sweep": {"tasks": ["task:parity"], "networks": ["block-2"]},
        "cells": [SWEPT_CELL],
    }
    assert document["command"] == "python -m experiments.studies.sweeps mine FOLDER"


@pytest.mark.parametrize("cells", [[], [{**SWEPT_CELL, "network": "block-4"}], [SWEPT_CELL, SWEPT_CELL]])
def test_cells_of_another_sweep_are_refused(gather, cells):
    with pytest.raises(UnsupportedFormat, match=r"other cells than mine\.toml asks for: run that sweep there first"):
        gather(cells)


def test_sweeps_and_folders_are_asked_for():
    asked = CliRunner().invoke(script.app(sweep_table.main), ["families"])
    assert asked.exit_code == 2
    assert "Missing argument 'FOLDER'" in asked.output
    found = training_table.gathered(document([0, 3]))
    options = "--preset quick --seeds 0,3 --max-tokens 10000 --output FOLDER"
    assert found["command"] == f'fsa2lrnn train "task:parity" {options}'
    assert [list(seed) for seed in found["seeds"]] == [["seed", "step", "last_checkpoint"]] * 2
    asked = CliRunner().invoke(script.app(training_table.main), [])
    assert asked.exit_code == 2
    assert "Missing argument 'FOLDER…'" in asked.output
    tasks = results_io.read("training")["results"]
    found = {task["task"]: len(task["seeds"]) for task in tasks}
    assert found == {"task:sum_mod(5)": 5, "task:even_pair(5)": 5, "task:mod_arith(5)": 3}
    for task in tasks:
        accuracies = [seed["paper_protocol"]["accuracy"] for seed in task["seeds"]]
        assert task["paper_protocol_mean"] == pytest.approx(sum(accuracies) / len(accuracies))
    values = read(sweep_table.SWEEPS / "families.toml")
    swept = results_io.read("sweep_families")["results"]
    assert swept["sweep"] == values
    sweep = Sweep.from_dict(values)
    assert {(t.task, t.network) for t in sweep.trials} == {(c["task"], c["network"]) for c in swept["cells"]}
    assert all(sum(cell["ends"].values()) == len(sweep.seeds) for cell in swept["cells"])


def document(seeds):
    judged = [{"length": 40, "words": 100}, {"length": 500, "words": 20}]
    runs = [{"seed": seed, "folder": "/x", "model": "/x/m", "step": 10, "last_checkpoint": judged} for seed in seeds]
    return {"task": "task:parity", "preset": "quick", "settings": {}, "seeds": runs, "paper_protocol_mean": 1.0}


def kept(accuracy):
    return {"seed": 1, "paper_protocol": {"accuracy": accuracy, "step": 4_000}}


def test_the_paper_rules_time_is_its_steps_times_that_of_a_step(monkeypatch):
    monkeypatch.setattr(sooner, "STEPS", {1: 2})
    found = row("task:parity", "quick", kept(1.0))
    assert found["released_seconds"] == pytest.approx(4 * found["milliseconds_a_step"])
    assert found["ratio"] == pytest.approx(found["released_seconds"] / found["proved_seconds"])
    assert 0 < found["proved_seconds"] < 20


def test_every_seed_that_was_kept_is_a_row(monkeypatch, tmp_path):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    tasks = [{"task": "task:parity", "preset": "quick", "seeds": [kept(1.0), kept(0.5)]}]
    results_io.write("training", tasks, "")
    monkeypatch.setattr(sooner, "seconds_a_step", lambda *_: 0.01)
    sooner.main()
    found = results_io.read("sooner")["results"]
    assert (len(found["rows"]), found["tasks"][0]["both"]) == (2, 1)


RESULTS = results_io.read("families_table")["results"]
ROWS_OF_FAMILIES = {row["machine"]: row for row in RESULTS["machines"]}
SMALL = [source for source, row in ROWS_OF_FAMILIES.items() if row["states"] <= 6]


def test_every_network_and_machine_is_counted():
    assert list(ROWS_OF_FAMILIES) == [*families_table.TRIED, *families_table.SERIES]
    assert len(RESULTS["machines"]) == len(ROWS_OF_FAMILIES)
    sample = families_table.RANDOM[::9]
    for family, counts in families_table.summary(sample).items():
        assert counts["yes"] == [source for source in RESULTS["random"][family]["yes"] if source in sample]
        assert len(counts["yes"]) + counts["no"] == len(sample)
    for counts in RESULTS["random"].values():
        assert len(counts["yes"]) + counts["no"] == len(families_table.RANDOM) == 100
        assert counts["four_words"] <= counts["no"]
    networks = [
        found["network"]
        for row in ROWS_OF_FAMILIES.values()
        for found in row["families"].values()
        if "network" in found
    ]
    assert set(networks) == {
        "equal on all words (float64)",
        "equal on 50 random words of at most 500 letters (float64)",
    }
    found = ROWS_OF_FAMILIES["subtraction(5)"]["families"]["diagonal-complex"]
    assert found["four_words"] == '"-0" and "0-", at first and after "-"'
    assert ROWS_OF_FAMILIES["group(S3)"]["families"]["lti"]["four_words"] is None
    assert ROWS_OF_FAMILIES["parity"]["families"]["diagonal[-1,1]"]["dimension"] == 1
    assert families_table.text("0-1") == "0-1"
    assert families_table.text(["(1,2)", "(1,2,3)"]) == "(1,2) (1,2,3)"
    assert families_table.text([]) == ""
    assert set(RESULTS["random"]) == set(FORCED)


@pytest.mark.parametrize("source", [*SMALL, "mod_arith(5)", "subtraction(5)", "shift_register(3)"])
def test_a_row_is_regenerated_as_it_stands_of_families(source):
    assert families_table.row(source) == ROWS_OF_FAMILIES[source]


@pytest.mark.slow
def test_the_whole_table_is_regenerated_as_it_stands():
    assert [families_table.row(source) for source in ROWS_OF_FAMILIES] == RESULTS["machines"]
    assert families_table.summary(families_table.RANDOM) == RESULTS["random"]


def test_a_network_that_is_wrong_stops_the_table():
    for source, family in [("parity", "diagonal[-1,1]"), ("sum_mod(3)", "diagonal-complex")]:
        witness = represent(zoo.from_task(source), family)
        machine = minimise(zoo.from_task(source))
        flipped = replace(
            witness, form=tuple(replace(channel, shifts=channel.shifts[::-1]) for channel in witness.form)
        )
        assert families_table.running(witness).startswith("equal on")
        assert machine == witness.machine
        with pytest.raises(SystemExit, match="is wrong"):
            families_table.running(flipped)
