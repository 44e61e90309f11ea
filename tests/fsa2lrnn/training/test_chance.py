"""Chance levels against simulation, and against what guessing is known to score."""

import numpy as np
import pytest

from fsa2lrnn.training import chance


def test_levels_are_those_of_the_papers_protocol():
    assert chance.level("task:sum_mod(5)", 500).best_of_looks == pytest.approx(0.279, abs=5e-4)
    even = chance.level("task:even_pair(5)", 500)
    assert even.best_of_looks == pytest.approx(0.873, abs=5e-4)
    assert (even.answer, even.share) == (0, pytest.approx(0.8))
    assert chance.level("task:mod_arith(5)", 500).share == pytest.approx(0.2, abs=2e-3)


def test_shares_of_outputs_add_up_and_agree_with_drawn_words():
    from fsa2lrnn.automata.machine import MooreMachine
    from fsa2lrnn.training.data import make_sampler, words

    task = "task:mod_arith(5)"
    shares = chance.output_shares(task, 10)
    assert sum(shares.values()) == pytest.approx(1)
    machine = MooreMachine.from_source(task)
    drawn = words(machine, make_sampler("task", machine, task))
    labels = drawn.batch(20_000, drawn.fit(10), drawn.generator(0)).labels[:, -1].numpy()
    found = np.bincount(labels, minlength=len(drawn.outputs)) / len(labels)
    assert found == pytest.approx([shares[output] for output in drawn.outputs], abs=0.015)


def test_the_best_of_looks_and_its_mean_agree_with_simulation():
    best = chance.best_of_looks(0.2)
    draws = np.random.default_rng(0).binomial(chance.WORDS, 0.2, (4_000, chance.TRIALS, chance.LOOKS)).max(2)
    scores = np.arange(chance.WORDS + 1)
    assert best.sum() == pytest.approx(1)
    assert float(best @ scores) == pytest.approx(draws.mean(), abs=0.1)
    low, high = chance.mean_interval(best)
    means = draws.mean(1) / chance.WORDS
    assert np.mean((low <= means) & (means <= high)) == pytest.approx(0.95, abs=0.02)


def test_certain_answers_score_one():
    assert chance.best_of_looks(1.0)[-1] == 1
    assert chance.best_of_looks(0.0)[0] == 1
