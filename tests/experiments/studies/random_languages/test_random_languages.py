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


def test_a_call_goes_on_where_the_last_one_stopped(monkeypatch, tmp_path):
    ran = []

    def run(found, arm, seed):
        if len(ran) == 4:
            ran.append(None)
            raise KeyboardInterrupt
        ran.append((found.number, arm, seed))
        return {"machine": found.number, "arm": arm, "seed": seed}

    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    monkeypatch.setattr(study, "run_cell", run)
    monkeypatch.setattr(study, "theory", lambda _: {})
    monkeypatch.setattr(study.show, "figure", lambda _, path: path.write_text("drawn"))
    with pytest.raises(KeyboardInterrupt):
        study.main(1, 2)
    study.main(1, 2)
    assert len(ran) - 1 == len(set(ran) - {None}) == 2 * len(ARMS)
    assert (tmp_path / "random_languages.svg").read_text() == "drawn"
    found = results_io.read("random_languages")["results"]
    assert (len(found["runs"]), [row["number"] for row in found["machines"]]) == (2 * len(ARMS), [0])
    study.main(3, 1, hours=0)
    assert len(results_io.read("random_languages")["results"]["runs"]) == 2 * len(ARMS)


def run(machine, arm, whole_40, fails_at, whole_500=900):
    judged = {"last_40": 1_000, "whole_40": whole_40, "last_500": 1_000, "whole_500": whole_500, "fails_at": fails_at}
    return {
        "machine": machine,
        "arm": arm,
        "seed": 0,
        "end": "steps",
        "steps": 300,
        "proved": False,
        "seconds": 2.0,
    } | judged


@pytest.fixture
def document():
    theory = {arm: {"answer": answer, "why": ""} for arm, answer in (("a", "yes"), ("b", "no"))}
    kinds = ("group", "mixed")
    size = {"states": 5, "letters": 2, "definite_order": None, "constant_40": 0.5, "constant_500": 0.625}
    machines = [{"number": i, "kind": kinds[i], **size, "theory": theory} for i in range(2)]
    runs = [run(0, "a", 1_000, None, 1_000), run(1, "a", 999, 7), run(0, "b", 1_000, 31)]
    runs.append({"machine": 1, "arm": "b", "seed": 0, "end": "diverged", "proved": False, "seconds": 1.0})
    protocol = {"words": 1_000, "search_seconds": 4.0}
    asked = {"machines": 3, "seeds": 2, "arms": ["a", "b"]}
    return {"asked": asked, "protocol": protocol, "titles": {"a": "A", "b": "B"}, "machines": machines, "runs": runs}


def test_tables_name_exceptions_classes_and_what_was_not_learned(document):
    lines = show.table(document).splitlines()
    assert lines[2] == "| A | 2 | 1 of 2 | – | – | 1 | 1 | 0 | 2.0 |"
    assert lines[3] == "| B | 2 | – | 1 of 2 | – | 0 | 0 | 0 | 1.5 |"
    assert "4 of 12 cells have been run, on 2 of 3 machines (1 group, 0 aperiodic, 1 mixed)" in "\n".join(lines)
    assert show.exceptions(document) == [
        "- B on group 0 (5 states, 2 letters), seed 0: 900 of 1,000 words of 500 letters are right; a word of 31 "
        "letters fails."
    ]
    assert show.exceptions(document)[0] in show.notes(document)
    document["machines"][0]["definite_order"] = 3
    assert show.exceptions(document)[0].endswith("31 letters fails, and the last 3 letters decide the state.")
    lines = show.classes(document).splitlines()
    assert lines[2] == "| A | 1 of 1 | 1.000 / 1.000 | 0 of 0 | – | 0 of 1 | 1.000 / 1.000 |"
    assert lines[3] == "| B | 1 of 1 | 1.000 / 1.000 | 0 of 0 | – | 0 of 1 | – |"
    assert lines[4] == "| a constant answer |  | 0.500 / 0.625 |  | – |  | 0.500 / 0.625 |"
    assert show.missed(document) == ["- A: mixed 1 (5)."]
    document["runs"].append({**run(1, "a", 1_000, None), "seed": 1})
    assert show.missed(document) == ["- A: mixed 1 (5) with seed 0."]
    assert "- A: mixed 1 (5) with seed 0." in show.table(document)
    document["runs"] = [line for line in document["runs"] if line["arm"] == "a"]
    assert "No run has learned what theory says its layer cannot represent." in show.notes(document)


def test_figures_are_reproducible(document, tmp_path):
    for name in ("one", "two"):
        show.figure(document, tmp_path / f"{name}.svg")
    one, two = ((tmp_path / f"{name}.svg").read_bytes() for name in ("one", "two"))
    assert one == two
    assert b"<svg" in one
