"""The study of random languages."""

from dataclasses import replace

import pytest

from experiments.studies.random_languages import cells
from experiments.studies.random_languages.arms import ARMS
from experiments.studies.random_languages.cells import run_cell
from experiments.studies.random_languages.machines import drawn
from fsa2lrnn import zoo


@pytest.mark.parametrize(("arm", "machine", "answer"), [
    ("onehot", zoo.group("S4"), "yes"),
    ("none", zoo.group("S4"), "yes"),
    ("none", zoo.random_dfa(16, 4, seed=0, minimal=True), "no"),
    ("released", zoo.random_dfa(16, 4, seed=0, minimal=True), "no"),
    ("released", zoo.parity(), "not excluded"),
    ("clip", zoo.group("S3"), "yes"),
    ("diagonal", zoo.parity(), "yes"),
    ("diagonal", zoo.group("S3"), "no"),
    ("lru", zoo.parity(), "no"),
    ("s4d", zoo.length_mod(3), "not excluded"),
    ("rwkv4", zoo.parity(), "no"),
    ("householder_1", zoo.sum_mod(3), "no"),
])  # fmt: skip
def test_what_theory_says(arm, machine, answer):
    assert ARMS[arm].theory(machine)[0] == answer


@pytest.mark.slow
def test_a_cell_of_automata_ends_in_a_proof():
    cell = run_cell(drawn(2), "onehot", 0)
    assert (cell["proved"], cell["fails_at"], cell["last_40"], cell["whole_500"]) == (True, None, 1_000, 1_000)


@pytest.mark.slow
def test_a_cell_of_a_trained_layer_is_judged(monkeypatch):
    monkeypatch.setattr(
        cells, "settings", lambda arm, source, seed: replace(settings_of_cells(arm, source, seed), steps=2)
    )
    cell = run_cell(drawn(2), "diagonal", 0)
    assert (cell["end"], cell["steps"], cell["proved"]) == ("steps", 2, False)
    assert cell["fails_at"] is not None
    assert cell["whole_500"] <= cell["last_500"] < 1_000


settings_of_cells = cells.settings
