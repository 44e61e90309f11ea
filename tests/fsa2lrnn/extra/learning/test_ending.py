"""Runs are gone through with, or said to have nothing to show."""

import os
import signal

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.extra.learning.ending import trained
from fsa2lrnn.extra.learning.examples import FreshWords
from fsa2lrnn.extra.learning.recipe import Recipe
from fsa2lrnn.extra.learning.run import LearningRun
from fsa2lrnn.extra.learning.saving import RunFolder, RunRequest


def test_what_has_nothing_to_show_is_said(monkeypatch):
    run = LearningRun(Recipe(steps=7), FreshWords(zoo.parity()), None, 2)
    monkeypatch.setattr(run, "go", lambda _: None)
    with pytest.raises(BudgetExceeded, match="after 0 steps and 1 starts every head reaches too many states"):
        trained(run, None, None)


def test_an_end_that_is_asked_for_is_saved_first(tmp_path):
    recipe = Recipe(steps=40, look=3)
    folder = RunFolder(tmp_path, RunRequest("s", "d", "train", "task", 0.0, recipe), resume=True)
    run = LearningRun(recipe, FreshWords(zoo.sum_mod(5)), None, 5)
    with pytest.raises(KeyboardInterrupt):
        trained(run, folder, lambda _: os.kill(os.getpid(), signal.SIGINT))
    again = LearningRun(recipe, FreshWords(zoo.sum_mod(5)), None, 5)
    folder.restore(again)
    assert again.steps == run.steps == 3
