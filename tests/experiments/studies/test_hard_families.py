from experiments import results_io
from experiments.studies import hard_families
from experiments.studies.hard_families import main, run_one, table


def test_a_run_is_proved_or_refused_or_out_of_time():
    proved = run_one("hard_lanes", "parity", 0, 20)
    assert (proved["theory"], proved["one_vector"], proved["end"]) == ("yes", "yes", "proved")
    assert proved["steps"] > 0
    refused = run_one("hard_lanes", "ab_star", 0, 20)
    assert (refused["theory"], refused["one_vector"], refused["end"]) == ("no", "no", "refused")
    assert "however many" in refused["why"]
    assert run_one("hard_reflections", "group(S4)", 0, 1e-3)["end"] == "out of time"


def test_runs_in_the_file_are_not_done_again(monkeypatch, tmp_path):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    monkeypatch.setattr(hard_families, "TASKS", ("flip_flop", "ab_star"))
    monkeypatch.setattr(hard_families, "FAMILIES", {"hard_lanes": "diagonal[-1,1]"})
    main(seeds=1, seconds=20.0)
    first = results_io.read("hard_families")["results"]
    monkeypatch.setattr(hard_families, "run_one", lambda *_: 1 / 0)
    main(seeds=1, seconds=20.0)
    assert results_io.read("hard_families")["results"] == first
    of_flip_flop, of_ab_star = table(first)
    assert (of_flip_flop["proved"], of_flip_flop["refused"]) == (1, 0)
    assert of_flip_flop["seconds"] == first["runs"][0]["processor_seconds"]
    assert (of_ab_star["proved"], of_ab_star["refused"], of_ab_star["seconds"]) == (0, 1, None)
