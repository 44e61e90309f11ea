"""Only the cells that a sweep asks for become its results."""

import json

import pytest
from typer.testing import CliRunner

from experiments import results_io, script
from experiments.studies import sweeps as sweep_table
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.distributed.grid import Sweep, read
from fsa2lrnn.extra.distributed.sweep import SUMMARY

SPREADS = {name: {"mean": 0.5, "min": 0, "max": 1} for name in ("last_position", "whole_word")}
LINE = {"length": 9, "words": 20, **SPREADS}
CELL = {"task": "task:parity", "network": "block-2", "setting": "as-preset", "seeds": 2, "ends": {"steps": 2}}
CELL |= {"paper_protocol": {"mean": 1, "min": 1, "max": 1}, "lengths": [LINE]}


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
    document = gather([CELL])
    assert document["results"] == {
        "sweep": {"tasks": ["task:parity"], "networks": ["block-2"]},
        "cells": [CELL],
    }
    assert document["command"] == "python -m experiments.studies.sweeps mine FOLDER"


@pytest.mark.parametrize("cells", [[], [{**CELL, "network": "block-4"}], [CELL, CELL]])
def test_cells_of_another_sweep_are_refused(gather, cells):
    with pytest.raises(UnsupportedFormat, match=r"other cells than mine\.toml asks for: run that sweep there first"):
        gather(cells)


def test_a_sweep_and_a_folder_are_asked_for():
    asked = CliRunner().invoke(script.app(sweep_table.main), ["families"])
    assert asked.exit_code == 2
    assert "Missing argument 'FOLDER'" in asked.output


def test_the_committed_results_are_those_of_the_committed_sweep():
    values = read(sweep_table.SWEEPS / "families.toml")
    document = results_io.read("sweep_families")["results"]
    assert document["sweep"] == values
    sweep = Sweep.from_dict(values)
    assert {(t.task, t.network) for t in sweep.trials} == {(c["task"], c["network"]) for c in document["cells"]}
    assert all(sum(cell["ends"].values()) == len(sweep.seeds) for cell in document["cells"])
