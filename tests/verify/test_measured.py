"""What measurements say of claims: unfinished, at chance level, reproduced or not, by the numbers alone."""

import json

import pytest

from verify import measured

TASK = "task:sum_mod(5)"
WHOLE = {"seeds": 5, "is_finished": True}


def cell(column, look, at_40=0.5, seeds=1, is_finished=False):
    last = [{"length": length, "mean": at_40, "least": at_40, "most": at_40} for length in (40, 500)]
    own = {"task": TASK, "column": column, "paper": 0.27, "seeds": [0] * seeds, "is_finished": is_finished}
    return {**own, "best_look": look, "last": last}


@pytest.fixture
def table(monkeypatch, tmp_path):
    monkeypatch.setattr(measured, "RESULTS", tmp_path)

    def write(*cells):
        chance = {TASK: {"interval": [0.264, 0.297], "deviation": 0.02}}
        columns = {each["column"]: {"title": each["column"], "seeds": 5} for each in cells}
        results = {"chance": chance, "columns": columns, "cells": list(cells)}
        (tmp_path / "table2.json").write_text(json.dumps({"results": results}))

    return write


def test_what_guessing_may_score_is_at_chance_level_and_more_is_not(table):
    table(cell("s4", 0.33))
    assert measured.others().kind == "unfinished"
    assert "above chance level: 0 of 1 cells" in measured.others().why
    table(cell("s4", 0.29, **WHOLE))
    assert measured.others().kind == "at chance level"
    table(cell("s4", 0.33, **WHOLE))
    assert measured.others().kind == "not reproduced"
    table(cell("s4", 0.29, **WHOLE), cell("s4d", 0.5))
    assert measured.others().kind == "not reproduced"


def test_ours_is_held_against_the_printed_number(table):
    table({**cell("ours", 0.27), "paper": 0.27})
    assert measured.ours().kind == "reproduced"
    table({**cell("ours", 0.25), "paper": 0.27})
    assert measured.ours().kind == "not reproduced"


def test_where_layers_fail_at_the_length_trained_on_that_all_succeed_is_not_reproduced(table):
    table(cell("ours", 1.0, 1.0))
    assert measured.same_length().kind == "unfinished"
    table(cell("ours", 1.0, 1.0), cell("s4", 0.3, 0.4))
    assert measured.same_length().kind == "unfinished"
    table(cell("ours", 1.0, 1.0), cell("s4", 0.3, 0.4, **WHOLE))
    assert measured.same_length().kind == "not reproduced"
    table(cell("ours", 1.0, 1.0), cell("s4", 0.3, 0.4, **WHOLE))
    assert measured.same_length().why.endswith("Unfinished, seeds that have ended: sum_mod(5): ours 1/5")
    table(cell("ours", 1.0, 1.0, **WHOLE), cell("s4", 0.3, 1.0, **WHOLE))
    assert measured.same_length().kind == "reproduced"


def test_who_lags_behind(table):
    table(cell("s4", 0.3), cell("rwkv4", 0.2))
    assert measured.behind().kind == "unfinished"
    table(cell("s4", 0.3), cell("rwkv4", 0.2, **WHOLE), cell("vanilla", 0.3))
    assert measured.behind().kind == "unfinished"
    table(cell("s4", 0.3), cell("rwkv4", 0.2, **WHOLE), cell("vanilla", 0.3, **WHOLE))
    assert measured.behind().kind == "reproduced"
    table(cell("s4", 0.3), cell("rwkv4", 0.2), cell("vanilla", 0.4))
    assert measured.behind().kind == "not reproduced"


def test_speeds_on_a_cpu_settle_nothing_and_those_on_a_gpu_do(table, tmp_path):
    assert table is not None
    row = {"what": "inference", "block": 8, "sequential_over_pscan": 0.5, "paper_sequential_over_pscan": 1.0}

    def write(name, device, **changes):
        rows = [{**row, "best_over_ours": 9.0, **changes}]
        (tmp_path / f"{name}.json").write_text(json.dumps({"results": {"device": device, "rows": rows}}))
        return measured.speed("inference", 8)().kind

    assert write("paper_speed", "CPU") == "unfinished"
    assert write("paper_speed_gpu", "card") == "not reproduced"
    assert write("paper_speed_gpu", "card", sequential_over_pscan=1.2) == "reproduced"
    assert write("paper_speed_gpu", "card", sequential_over_pscan=9.0) == "not reproduced"
    faster = {"sequential_over_pscan": 9.0, "paper_sequential_over_pscan": 2.5}
    assert write("paper_speed_gpu", "card", **faster) == "reproduced"  # what is claimed is that one is the faster
