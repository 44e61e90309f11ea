import pytest

from experiments import results_io
from experiments.studies import learned_cascades
from experiments.studies.learned_cascades import main, plan, run_one, table


@pytest.mark.slow
def test_what_is_distilled_is_proved_and_what_does_not_fit_says_why(monkeypatch):
    monkeypatch.setattr(learned_cascades, "BLOCKS", (4, 4))
    proved = run_one("distilled", "mod_arith(2)", 0, 10)
    assert (proved["end"], proved["blocks"]) == ("proved", [[4, 4]] * 3)
    assert proved["taught"] > 40
    failed = run_one("distilled", "mod_arith(5)", 0, 10)
    assert failed["end"] == "failed"
    assert "a component's group of order 5 on 5 states needs a block of more than max_block = 4 states" in failed["why"]


def test_a_run_from_scratch_says_how_far_it_came():
    for way in ("together", "layer-wise"):
        run = run_one(way, "mod_arith(2)", 0, 1e-3)
        assert run["end"] == "out of time"
        assert run["length"] == 3
        assert 0 < run["error"] <= 1


def test_runs_in_the_file_are_not_done_again(monkeypatch, tmp_path):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    first = {"way": "distilled", "task": "a", "seed": 0, "end": "proved", "processor_seconds": 2.0}
    monkeypatch.setattr(learned_cascades, "distil_cascade", lambda *_: None)
    monkeypatch.setattr(
        learned_cascades, "run_one", lambda way, task, seed, _: first | {"task": task, "way": way, "seed": seed}
    )
    main(seeds=1, seconds=1.0)
    kept = results_io.read("learned_cascades")["results"]
    assert len(kept["runs"]) == len(plan(1)) == kept["asked"]
    monkeypatch.setattr(learned_cascades, "run_one", lambda *_: 1 / 0)
    main(seeds=1, seconds=1.0)
    assert results_io.read("learned_cascades")["results"] == kept
    assert table(kept)[0] == {
        "way": "learned, distilled", "task": "mod_arith(5)", "runs": 1, "proved": 1, "seconds": 2.0, "length": None,
        "error": None, "why": "",
    }  # fmt: skip
