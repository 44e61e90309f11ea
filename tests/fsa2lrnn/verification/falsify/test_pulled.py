"""Functionals before some letters say what they say after them, and the ones kept are the largest."""

import numpy as np
import pytest
import torch

from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.pulled import FailureTarget, FunctionalPullback, Functionals
from tests.fsa2lrnn.verification.falsify.test_beam import MACHINE, leaking


@pytest.fixture(scope="module")
def judge():
    return ModelComparison(leaking(0.03), MACHINE)


@pytest.fixture(scope="module")
def points(judge):
    """The states after a few random words of 5 letters, by the machine's."""
    tokens = judge.goal.random_words(np.random.default_rng(0), 40, 5)
    x = judge.runner.tables.run(torch.from_numpy(tokens))[:, -1].flatten(1).double().numpy()
    q = judge.goal.path(tokens)[:, -1]
    return {int(state): x[q == state] for state in np.unique(q)}


def stepped(judge, x, letter):
    tables = judge.runner.tables.to(torch.float64)
    return tables.step(torch.from_numpy(x).reshape(-1, *tables.x0.shape))[:, letter].flatten(1).numpy()


def test_before_a_letter_a_functional_says_what_it_says_after_it(judge, points):
    pull, d = FunctionalPullback(judge.runner.tables, judge.goal), judge.runner.tables.x0.numel()
    rng = np.random.default_rng(1)
    ahead = {q: Functionals(rng.standard_normal((3, d)), rng.standard_normal(3)) for q in points}
    before = pull.back(ahead, points, 1_000)
    for q, x in points.items():
        after = [
            ahead[to].at(stepped(judge, x, a)) for a, to in enumerate(judge.goal.delta[:, q].tolist()) if to in ahead
        ]
        wanted, found = np.concatenate(after, axis=1), before[q].at(x)
        assert np.allclose(np.unique(wanted[0]), np.unique(found[0]))
        assert np.allclose(wanted.max(1), found.max(1))


def test_of_many_those_are_kept_that_are_largest_at_a_point(judge, points):
    pull, d = FunctionalPullback(judge.runner.tables, judge.goal), judge.runner.tables.x0.numel()
    rng = np.random.default_rng(2)
    ahead = {q: Functionals(rng.standard_normal((20, d)), rng.standard_normal(20)) for q in points}
    every, few = pull.back(ahead, points, 1_000), pull.back(ahead, points, 4)
    for q, x in points.items():
        assert len(few[q].c) == 4
        best = np.unique(every[q].at(x).argmax(1))
        assert few[q].at(x).max() == pytest.approx(every[q].at(x).max())
        if len(best) <= 4:
            assert np.allclose(few[q].at(x).max(1), every[q].at(x).max(1))


def test_a_tangent_is_the_lead_of_the_wrong_output_where_it_is_taken(judge, points):
    pull = FunctionalPullback(judge.runner.tables, judge.goal)
    targets = pull.targets(points)
    wanted = judge.goal.wanted
    assert set(targets) == {FailureTarget(q, y) for q in points for y in range(judge.goal.known) if y != wanted[q]}
    ahead = [pull.ahead(target, points) for target in targets]
    assert sorted(ahead, reverse=True) == ahead
    for target, lead in zip(targets, ahead, strict=True):
        found = pull.tangents(target, points)[target.q].at(points[target.q])
        assert np.isclose(found, lead).any()
    assert pull.tangents(FailureTarget(99, 0), points) == {}
    assert pull.ahead(FailureTarget(99, 0), points) == -np.inf
