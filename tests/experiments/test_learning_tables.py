import pytest

from experiments import learning_tables, results_io


def cell(method, words, exact, seconds, end="done"):
    n = len(exact)
    runs = {"machine": list(range(n)), "exact": exact, "states": [4] * n, "seconds": seconds, "end": [end] * n}
    return {"method": method, "labels": "dense", "words": words, "wrong": 0.025, "runs": runs}


@pytest.fixture
def results(monkeypatch, tmp_path):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)


@pytest.mark.usefixtures("results")
def test_a_cell_says_how_many_of_how_many_and_what_has_not_been_run():
    cells = [cell("test", 50, [True, False], [0.01, 0.03]), cell("rpni", 50, [False], [10.0])]
    cells.append(cell("rpni", 200, [False], [None], "out of time with easier words"))
    results_io.write("noise", {"asked": 20, "limit": 10.0, "machines": [], "cells": cells}, "")
    lines = learning_tables.noise().splitlines()
    assert lines[2] == "| every letter | 50 | 2.5 % | not run | 1 of 2 (0.02) | 0 of 1 (10) | not run | not run |"
    assert lines[3] == "| every letter | 200 | 2.5 % | not run | not run | 0 of 1 (out of time) | not run | not run |"
    assert "4 of 200 runs were done" in lines[-1]


@pytest.mark.usefixtures("results")
def test_what_has_no_ratio_is_left_empty():
    row = {"task": "task:sum_mod(5)", "seeds": 5, "both": 5, "proved_seconds": 0.24, "released_seconds": 30.4}
    none = dict.fromkeys(("proved_seconds", "released_seconds", "ratio", "least_ratio"))
    rows = [{**row, "ratio": 126.4, "least_ratio": 60.1}, {"task": "task:mod_arith(5)", "seeds": 1, "both": 0, **none}]
    results_io.write("sooner", {"tasks": rows}, "")
    lines = learning_tables.sooner().splitlines()
    assert lines[2:4] == ["| sum_mod(5) | 5 of 5 | 0.2 | 30.4 | 126 | 60 |", "| mod_arith(5) | 0 of 1 |  |  |  |  |"]
