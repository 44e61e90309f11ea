"""The comparison of checkouts: every case is a step that runs, and a server answers with its time."""

import io
import json

import pytest

from experiments.benchmarks import checkouts


def test_cases_name_what_they_measure():
    assert {"scan block", "step sum_mod(5) block", "s4 letters 128x40"} <= set(checkouts.CASES)


@pytest.mark.parametrize("of", ["letters", "inputs"])
def test_a_step_of_a_layer_runs(of):
    checkouts.layer_step("s5", of, 2, 7)()


def test_a_server_answers_with_seconds(monkeypatch, capsys):
    monkeypatch.setitem(checkouts.CASES, "nothing", lambda: lambda: None)
    monkeypatch.setattr(checkouts, "_TURN_SECONDS", 1e-9)
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(["nothing", 1]) + "\n"))
    checkouts.serve()
    assert float(capsys.readouterr().out) >= 0
