import pytest

from experiments import results_io
from experiments.studies.random_languages import __main__ as study
from experiments.studies.random_languages.arms import ARMS


def test_all_arms_of_a_machine_before_the_next_and_first_seeds_first():
    cells = [(found.number, arm, seed) for found, arm, seed in study.plan(2, 2)]
    assert len(cells) == len(set(cells)) == 4 * len(ARMS)
    assert [(number, seed) for number, arm, seed in cells if arm == "none"] == [(0, 0), (1, 0), (0, 1), (1, 1)]


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
