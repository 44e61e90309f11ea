"""The leaderboard of MLRegTest, on machines that a person can check."""

from collections import Counter
from dataclasses import replace

import pytest

from experiments.studies.mlregtest import board, leaderboard
from experiments.studies.mlregtest.languages import names
from fsa2lrnn import zoo
from fsa2lrnn.errors import UnsupportedFormat

QUICK = ("onehot", "released", "pd_ssm")  # one-hot, trained and verified, searched alone


@pytest.mark.long_cases("onehot", "pd_ssm", "released")
@pytest.mark.parametrize(
    "arm", [arm if arm in QUICK else pytest.param(arm, marks=pytest.mark.slow) for arm in leaderboard.ARMS]
)
def test_each_layer_runs_and_is_verified_or_searched(arm, monkeypatch):
    monkeypatch.setattr(leaderboard, "language", lambda _: zoo.ab_star())
    monkeypatch.setattr(leaderboard, "PROTOCOL", {**leaderboard.PROTOCOL, "steps": 2, "evaluate_every": 2})
    monkeypatch.setattr(leaderboard, "CERTIFY", 0.1)
    monkeypatch.setattr(leaderboard, "SEARCH", replace(leaderboard.SEARCH, seconds=0.1))
    monkeypatch.setattr(leaderboard, "WORDS", 20)
    monkeypatch.setattr(leaderboard, "LENGTHS", (5, 9))
    run = leaderboard.run_one("ab_star", arm, 0)
    assert run["last_9"] >= run["whole_9"]
    if arm == "onehot":
        assert run["proved"]
        assert run["whole_9"] == leaderboard.WORDS
    else:
        assert not run["proved"]
        assert run["certified"] is None or run["fails_at"] is None or run["certified"] < run["fails_at"]


def test_rows_of_the_stored_results_compare_the_same_languages():
    results = board.document()
    runs = Counter(run["arm"] for run in results["runs"])
    assert set(runs) == set(results["asked"]["arms"])
    assert set(runs.values()) == {results["complete"].total()}
    assert results["finished"] >= len(results["runs"])
    for run in results["runs"]:
        if run.get("certified") is not None and run["fails_at"] is not None:
            assert run["certified"] < run["fails_at"]


def test_a_folder_without_languages_is_refused(tmp_path):
    with pytest.raises(UnsupportedFormat, match=r"has no \.att file"):
        names(tmp_path)
