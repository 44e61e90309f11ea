"""The study of random languages."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.studies.random_languages import cells
from experiments.studies.random_languages.arms import ARMS, settings
from experiments.studies.random_languages.cells import run_cell
from experiments.studies.random_languages.machines import KINDS, _memories, _order_keeping, drawn
from fsa2lrnn import zoo
from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.monoid.classification import classify


@pytest.mark.parametrize("arm", [arm for arm in ARMS if ARMS[arm].changes is not None])
def test_every_arm_is_settings_that_fit(arm):
    found = settings(arm, "task:parity", 3)
    assert (found.seed, found.steps, found.test_length, found.stop_at) == (3, 1_000, 40, None)
    assert found.network((0, 1), (0, 1)).layers


@pytest.mark.parametrize(
    ("arm", "machine", "answer"),
    [
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
    ],
)
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


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_machine_is_minimal_of_its_class_and_the_same_every_time(number):
    found = drawn(number)
    assert found.kind == classify(found.machine).kind == KINDS[number % 3]
    assert minimise(found.machine).n_states == found.machine.n_states
    assert drawn(number).machine == found.machine


@pytest.mark.parametrize("table", [_order_keeping, _memories])
def test_both_ways_to_draw_aperiodic_machines_draw_no_other(table):
    generator = np.random.default_rng(0)
    tables = [delta for _ in range(20) if (delta := table(6, 2, generator)) is not None]
    assert tables
    for delta in tables:
        everywhere = MooreMachine(delta, range(delta.shape[1]))
        assert classify(everywhere).aperiodic.value
