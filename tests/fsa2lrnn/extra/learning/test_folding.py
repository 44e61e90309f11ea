import numpy as np
import pytest

from fsa2lrnn.extra.learning.folding import _fold, _predict, _undo, merge_states, prefix_tree
from fsa2lrnn.extra.learning.word_files import from_pairs


def test_a_tree_of_prefixes_counts_labels_where_they_stand():
    data = from_pairs([("ab", 1), ("ab", 1), ("ab", 0), ("b", 0)])
    child, counts = prefix_tree(data)
    ab = child[child[0, 0], 1]
    assert (len(child), child[ab].tolist()) == (4, [-1, -1])
    assert counts[ab].tolist() == [1, 2] if data.outputs == (0, 1) else [2, 1]
    assert counts.sum() == 4


def chances(seen, share, n):
    """The chance of each label after those seen, by summing over which label the state has."""
    likelihood = [np.prod([(1 - share if y == s else share / (n - 1)) ** seen[y] for y in range(n)]) for s in range(n)]
    posterior = np.array(likelihood) / sum(likelihood)
    return posterior @ np.array([[1 - share if y == s else share / (n - 1) for y in range(n)] for s in range(n)])


@pytest.mark.parametrize("seen", [[0, 0, 0], [1, 0, 0], [3, 1, 0], [40, 2, 1]])
def test_a_prediction_is_bayes_rule_label_by_label(seen):
    labels, share = np.array([2, 1, 0]), 0.2
    said = deviation = variance = 0.0
    now = list(seen)
    for y in (0, 0, 1):
        p = chances(now, share, 3)
        entropy = -(p * np.log(p)).sum()
        said += np.log(p[y]) + np.log(3)
        deviation += np.log(p[y]) + entropy
        variance += (p * np.log(p) ** 2).sum() - entropy**2
        now[y] += 1
    assert _predict(np.array(seen), labels, share) == pytest.approx((said, deviation, variance), abs=1e-9)


def test_deviations_of_one_state_have_mean_0_and_variance_1():
    """The claim that the bound rests on: labels that come as the rule says are about as far off as it expects."""
    generator, share = np.random.default_rng(0), 0.1
    scores = []
    for _ in range(2_000):
        state = generator.integers(2)
        drawn = np.where(generator.random(30) < share, 1 - state, state)
        seen, labels = (np.bincount(part, minlength=2) for part in (drawn[:3], drawn[3:]))
        _, deviation, variance = _predict(seen, labels, share)
        scores.append(deviation / np.sqrt(variance))
    assert np.mean(scores) == pytest.approx(0, abs=0.1)
    assert np.std(scores) == pytest.approx(1, abs=0.1)


def test_what_was_folded_can_be_undone():
    child, counts = prefix_tree(from_pairs([("aba", 1), ("b", 0), ("bb", 1), ("aab", 0)]))
    before = child.copy(), counts.copy()
    stack, log = np.empty((len(child), 2), np.int64), np.empty((3 * len(child), 4), np.int64)
    _, _, used = _fold(child, counts, 0, 0, 0, 0.1, stack, log)
    assert child[0, 0] == 0
    _undo(child, counts, log, used)
    assert (child == before[0]).all()
    assert (counts == before[1]).all()


def test_a_prefix_that_no_state_can_take_becomes_one():
    child, counts = prefix_tree(from_pairs([("a" * n, n % 3) for n in range(20)]))
    states = merge_states(child, counts, 1e-9, 3.5, 10)
    assert len(states) == 3
    assert child[states[2], 0] == states[0]
