"""Tables are those that their results give."""

import signal

import pytest

from experiments import figures, pictures, results_io
from experiments.resumable import known_rows, run_due, within
from fsa2lrnn.errors import OutOfTime


def compiled(code):
    """Run code as compiled code does, whose caller learns of an exception by a `SystemError`."""
    try:
        code()
    except Exception as error:
        raise SystemError("returned a result with an exception set") from error


def test_a_limit_that_ends_compiled_code_is_out_of_time():
    with pytest.raises(OutOfTime, match="processor time"), within(100):
        compiled(lambda: compiled(lambda: signal.raise_signal(signal.SIGPROF)))
    with pytest.raises(SystemError), within(100):
        compiled(lambda: {}["missing"])


def test_a_study_that_stopped_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(results_io, "RESULTS", tmp_path)
    plan = [("a", 0), ("a", 1), ("b", 0)]

    def run(task, seed):
        if task == "b" and not is_whole:
            raise KeyboardInterrupt
        return {"task": task, "seed": seed, "nth": len(known_rows("study"))}

    def write(runs):
        results_io.write("study", {"runs": runs}, "python -m study")

    is_whole = False
    with pytest.raises(KeyboardInterrupt):
        run_due(plan, ("task", "seed"), known_rows("study"), run, write)
    assert [(row["task"], row["seed"]) for row in known_rows("study")] == plan[:2]
    is_whole = True
    rows = run_due(plan, ("task", "seed"), known_rows("study"), run, write)
    assert [row["nth"] for row in rows] == [0, 1, 2]
    assert rows == known_rows("study")


DRAWN = pictures.pictures()


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_regenerated_as_it_stands(name):
    assert (pictures.FOLDER / name).read_text(encoding="utf-8") == DRAWN[name]


CHAINS = results_io.read("block_sizes")["results"]["chains"]


@pytest.mark.parametrize("source", CHAINS)
def test_a_figure_is_regenerated_as_it_stands(source):
    assert figures.path_of(source).read_text(encoding="utf-8") == figures.chain(CHAINS[source])
