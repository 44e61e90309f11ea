import pytest

from experiments import results_io
from experiments.studies import noise
from experiments.studies.noise import LABELS, MACHINES, METHODS, WORDS, WRONG, Cell, draw, main, plan, run_one
from fsa2lrnn import MooreMachine
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.errors import OutOfTime, UnsupportedFormat

SMALL = "task:random_dfa(4, 2, seed=0, minimal=true)"


def test_every_cell_is_planned_once_and_the_quickest_method_first():
    cells = list(plan(2))
    assert len(cells) == len(set(cells)) == 2 * len(METHODS) * len(LABELS) * len(WRONG) * len(WORDS)
    assert {cell.method for _, cell in cells[: len(cells) // len(METHODS)]} == {"test"}


def test_the_words_are_the_same_whatever_the_labels_and_the_share_that_is_wrong_is_what_was_asked():
    machine = MooreMachine.from_source(MACHINES[3])
    clean, noisy, last = (draw(machine, 2_000, *how, seed=3) for how in ((0.0, True), (0.1, True), (0.0, False)))
    assert (clean.tokens == noisy.tokens).all()
    assert (clean.tokens == last.tokens).all()
    given = clean.labels != UNCOUNTED
    assert (given.sum(1) == clean.lengths + 1).all()
    assert (clean.labels != noisy.labels).sum() / given.sum() == pytest.approx(0.1, abs=0.01)
    assert ((last.labels != UNCOUNTED).sum(1) == 1).all()
    word = clean.tokens[0, : int(clean.lengths[0])].tolist()
    outputs = [clean.outputs[label] for label in clean.labels[0, 1 : len(word) + 1].tolist()]
    assert outputs == machine.transduce([machine.alphabet[a] for a in word])


@pytest.mark.parametrize("method", [pytest.param("test", marks=pytest.mark.slow), "alergia", "rpni", "edsm"])
@pytest.mark.filterwarnings("ignore:Automaton ")
def test_mergers_find_a_small_machine_in_many_clean_words(method):
    found = run_one(SMALL, Cell(method, "dense", 200, 0.0), 20.0)
    assert found["end"] == "done"
    assert found["exact"] == (method != "alergia" or found["states"] == 4)


@pytest.mark.filterwarnings("ignore:Automaton ")
def test_alergia_reads_words_with_one_label():
    found = run_one(SMALL, Cell("alergia", "last", 50, 0.0), 20.0)
    assert (found["end"], found["states"] >= 1) == ("done", True)


def test_a_run_whose_time_has_passed_is_none(monkeypatch):
    def forever(_data, _wrong):
        while True:
            pass

    monkeypatch.setitem(METHODS, "test", forever)
    found = run_one(SMALL, Cell("test", "dense", 50, 0.0), 0.05)
    assert (found["end"], found["exact"], found["states"]) == ("out of time", False, None)
    assert found["seconds"] == pytest.approx(0.05, abs=0.03)


def test_a_compiled_kernel_that_was_interrupted_is_out_of_time_and_no_other_fault_is(monkeypatch):
    def failing(cause):
        def method(_data, _wrong):
            raise SystemError("returned a result with an exception set") from cause

        return method

    monkeypatch.setitem(METHODS, "test", failing(OutOfTime("0.05 s")))
    assert run_one(SMALL, Cell("test", "dense", 50, 0.0), 5.0)["end"] == "out of time"
    monkeypatch.setitem(METHODS, "test", failing(ValueError()))
    with pytest.raises(SystemError):
        run_one(SMALL, Cell("test", "dense", 50, 0.0), 5.0)


def test_alergia_and_unknown_methods_are_refused():
    with pytest.raises(UnsupportedFormat, match="method 'magic' is not known: choose of test, alergia"):
        main(1, method=["magic"])


def test_a_call_goes_on_where_the_last_one_stopped(monkeypatch, tmp_path):
    ran = []

    def run(source, cell, _seconds):
        ran.append((source, cell))
        if len(ran) == 3:
            raise KeyboardInterrupt
        end = "out of time" if cell.method == "rpni" else "done"
        return {"exact": False, "states": 1, "seconds": 0.0, "end": end}

    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    monkeypatch.setattr(noise, "run_one", run)
    monkeypatch.setattr(noise, "_compile", lambda: None)
    with pytest.raises(KeyboardInterrupt):
        main(1)
    assert len(ran) == 3
    main(1, method=["alergia"])
    assert {cell.method for _, cell in ran[3:]} == {"alergia"}
    main(1)
    left_out = len(LABELS) * ((len(WRONG) - 1) * len(WORDS) - 1)  # the first noisy cell stands for all of RPNI's
    assert len(ran) - 1 == len({cell for _, cell in ran}) == 36 * len(METHODS) - left_out
    rows = results_io.read("noise")["results"]["cells"]
    (skipped,) = [
        row for row in rows if (row["method"], row["labels"], row["words"], row["wrong"]) == ("rpni", "last", 200, 0.05)
    ]
    assert skipped["runs"]["end"] == ["out of time with easier words"]
    assert all(row["runs"]["machine"] == [0] for row in rows)


def test_files_that_give_the_share_drawn_anew_are_read_as_half_of_it_wrong(monkeypatch, tmp_path):
    runs = {"machine": [0], "exact": [True], "states": [4], "seconds": [0.1], "end": ["done"]}
    cells = [{"method": "test", "labels": "last", "words": 50, "noise": 0.2, "runs": runs}]
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    monkeypatch.setattr(noise, "plan", lambda _: iter(()))
    monkeypatch.setattr(noise, "_compile", lambda: None)
    results_io.write("noise", {"cells": cells}, "")
    main(1)
    (row,) = results_io.read("noise")["results"]["cells"]
    assert row == {"method": "test", "labels": "last", "words": 50, "wrong": 0.1, "runs": runs}
