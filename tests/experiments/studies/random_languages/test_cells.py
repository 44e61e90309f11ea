from dataclasses import replace

import pytest

from experiments.studies.random_languages import cells
from experiments.studies.random_languages.arms import ARMS
from experiments.studies.random_languages.cells import run_cell, theory
from experiments.studies.random_languages.machines import drawn
from fsa2lrnn.training.train import TrainingOutcome


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
    monkeypatch.setattr(cells, "settings", lambda arm, source, seed: replace(settings(arm, source, seed), steps=2))
    cell = run_cell(drawn(2), "diagonal", 0)
    assert (cell["end"], cell["steps"], cell["proved"]) == ("steps", 2, False)
    assert cell["fails_at"] is not None
    assert cell["whole_500"] <= cell["last_500"] < 1_000


settings = cells.settings


@pytest.mark.slow
def test_steps_are_those_to_the_first_look_without_an_error(monkeypatch):
    def short(arm, source, seed):
        return replace(settings(arm, source, seed), steps=150, evaluate_every=25)

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
