"""A learned model before all judges, once for all who look at the judgement."""

from functools import cache

import pytest

from experiments.judge import judge
from experiments.keep_models import LEARNED
from fsa2lrnn import load, zoo
from verify.falsify import Budget


@pytest.fixture(scope="module")
def judged(short_certificates):  # noqa: ARG001
    """The judgement on a kept model of EvenPair(5) whose failing words are short, the model, and the steps told."""
    return _judged()


@cache
def _judged():
    steps = []
    model = load(LEARNED / "even5" / "seed-4.safetensors")
    budget = Budget(seconds=5, length=60, random_words=16)
    return judge(model, zoo.even_pair(5), budget, say=steps.append), model, steps
