import sys
from types import ModuleType, SimpleNamespace

import pytest

from fsa2lrnn.training.bars import ProgressBars
from fsa2lrnn.training.evaluate import Accuracy
from fsa2lrnn.training.seeds import FinalAccuracy
from fsa2lrnn.training.train import Progress


def at(step, seed=0, record=None):
    return Progress(seed, step, 100, 0.5, None if record is None else 0.75, 12.5, record)


@pytest.fixture
def notebook(monkeypatch):
    """IPython in a kernel, as far as it is asked: what was shown and how often it was replaced."""
    shown, replaced = [], []

    def display(thing, display_id):
        assert display_id is True
        shown.append(thing._repr_html_())
        return SimpleNamespace(update=lambda thing: replaced.append(thing._repr_html_()))

    ipython, of_display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    of_display.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", of_display)
    return shown, replaced


def test_a_notebook_has_one_output_that_is_replaced(notebook, capsys):
    shown, replaced = notebook
    bars = ProgressBars()
    for step in range(10):
        bars(at(step))
    bars(at(50, seed=1, record={"accuracy": 0.75}))
    bars(at(100))
    assert len(shown) == 1
    assert len(replaced) == 2  # a run's news at once, what is between them not oftener than one can see
    assert '<progress value="100" max="100"' in replaced[-1]
    assert '<progress value="50" max="100"' in replaced[-1]
    assert "0.750 right" in replaced[-1]
    assert capsys.readouterr() == ("", "")


def test_elsewhere_a_line_for_every_test(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", None)
    bars = ProgressBars()
    bars(at(1))
    bars(at(50, record={"accuracy": 0.75}))
    bars(FinalAccuracy(0, Accuracy(40, 10, 9, 8)))
    assert capsys.readouterr().err.splitlines() == [
        "seed 0: 50 of 100 steps, loss 0.5000, 0.750 right, 12.5 steps/s",
        f"seed 0: {bars.lines()[0].partition(': ')[2]}",
    ]


def test_a_terminal_has_one_line_until_there_is_news(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    bars = ProgressBars()
    bars(at(1))
    bars(at(100))
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.count("\r") == 2


def test_a_shell_without_a_kernel_is_no_notebook(monkeypatch, capsys):
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    ProgressBars()(at(100))
    assert "100 of 100 steps" in capsys.readouterr().err
