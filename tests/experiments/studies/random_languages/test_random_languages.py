"""The study of random languages."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from experiments import results_io
from experiments.studies.random_languages import __main__ as study
from experiments.studies.random_languages import cells, show
from experiments.studies.random_languages.arms import ARMS, settings
from experiments.studies.random_languages.cells import run_cell, theory
from experiments.studies.random_languages.machines import KINDS, _memories, _order_keeping, _translations, drawn
from fsa2lrnn import zoo
from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.monoid.classification import classify
from fsa2lrnn.training.train import TrainingOutcome


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
def test_theory_has_an_answer_for_each_arm():
    said = theory(drawn(2))
    assert set(said) == set(ARMS)
    assert said["onehot"]["answer"] == "yes"


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


@pytest.mark.slow
def test_steps_are_those_to_the_first_look_without_an_error(monkeypatch):
    def short(arm, source, seed):
        return replace(settings_of_cells(arm, source, seed), steps=150, evaluate_every=25)

    monkeypatch.setattr(cells, "settings", short)
    model, cell = cells._trained(drawn(1), "released", 0)
    assert cell["best_look"] == 1
    assert cell["steps"] in range(25, 150, 25)
    assert cells.judged(model, drawn(1))["whole_40"] > 900


def test_a_cell_that_was_asked_to_stop_has_not_been_run(monkeypatch):
    monkeypatch.setattr(cells, "train", lambda *_: TrainingOutcome("interrupted", 1, None, None, []))  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        run_cell(drawn(2), "none", 0)


@pytest.mark.parametrize(("answer", "budgets"), [("no", 2), ("yes", 1)])
def test_the_search_is_longer_where_theory_says_no(monkeypatch, answer, budgets):
    tried = []
    monkeypatch.setattr(cells, "_trained", lambda *_: (object(), {}))
    monkeypatch.setattr(cells, "falsify", lambda _model, _machine, budget: tried.append(budget))
    monkeypatch.setitem(cells.ARMS, "lru", ARMS["lru"]._replace(theory=lambda _: (answer, "")))
    monkeypatch.setattr(cells, "judged", lambda model, found: {"fails_at": cells.failing_length(model, found, None)})
    assert run_cell(drawn(2), "lru", 0)["fails_at"] is None
    assert tried == [None, cells.LONG_SEARCH][:budgets]


@pytest.mark.parametrize("number", [0, 1, 2, 9, 10])
def test_a_machine_is_minimal_of_its_class_and_the_same_every_time(number):
    found = drawn(number)
    assert found.kind == classify(found.machine).kind == KINDS[number % 3]
    assert minimise(found.machine).n_states == found.machine.n_states
    assert drawn(number).machine == found.machine


def test_classes_take_turns_and_translations_are_of_a_group():
    sizes = [(m.kind, m.machine.n_states) for m in map(drawn, range(12))]
    assert Counter(kind for kind, _ in sizes) == dict.fromkeys(KINDS, 4)
    assert [n for kind, n in sizes if kind == "mixed"] == [4, 9, 14, 6]
    delta = _translations(8, 3, np.random.default_rng(0))
    assert delta.shape == (3, 8)
    assert (np.sort(delta, 1) == np.arange(8)).all()
    assert zoo.group("Q8", generators="all").n_states == 8
    cells = [(found.number, arm, seed) for found, arm, seed in study.plan(2, 2)]
    assert len(cells) == len(set(cells)) == 4 * len(ARMS)
    assert [(number, seed) for number, arm, seed in cells if arm == "none"] == [(0, 0), (1, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize("table", [_order_keeping, _memories])
def test_both_ways_to_draw_aperiodic_machines_draw_no_other(table):
    generator = np.random.default_rng(0)
    tables = [delta for _ in range(20) if (delta := table(6, 2, generator)) is not None]
    assert tables
    for delta in tables:
        everywhere = MooreMachine(delta, range(delta.shape[1]))
        assert classify(everywhere).aperiodic.value


def test_figures_are_reproducible(tmp_path):
    document = results_io.read("random_languages")["results"]
    for name in ("one", "two"):
        show.figure(document, tmp_path / f"{name}.svg")
    one, two = ((tmp_path / f"{name}.svg").read_bytes() for name in ("one", "two"))
    assert one == two
    assert b"<svg" in one
