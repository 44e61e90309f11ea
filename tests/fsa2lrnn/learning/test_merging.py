"""State merging with and without noise, and the attempts that use it."""

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, equivalent, zoo
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime
from fsa2lrnn.learning import merging
from fsa2lrnn.learning.attempt import LearningStart
from fsa2lrnn.learning.examples import FreshWords
from fsa2lrnn.learning.merging import (
    LEAST_SHARE,
    _predict,
    description,
    merge_noisy,
    merge_states,
    merge_within,
    prefix_tree,
    repaired,
    wrong_labels,
)
from fsa2lrnn.learning.recipe import Recipe
from fsa2lrnn.learning.word_files import from_pairs


def pairs(machine, n, noise, seed=0):
    """Return words of up to 20 letters, every prefix a pair; each label is wrong with probability `noise`."""
    generator, outputs = np.random.default_rng(seed), sorted(set(machine.outputs))
    found = []
    for _ in range(n):
        word = [machine.alphabet[a] for a in generator.integers(len(machine.alphabet), size=generator.integers(1, 20))]
        for k, output in enumerate([machine.outputs[machine.start], *machine.transduce(word)]):
            if generator.random() < noise:
                output = generator.choice([other for other in outputs if other != output]).item()
            found.append((tuple(word[:k]), output))
    return found


@pytest.mark.long_cases("0.0", "0.1")
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_the_machine_is_found_among_wrong_labels(noise):
    target = zoo.sum_mod(5)
    data = from_pairs(pairs(target, 300, noise), target.alphabet)
    assert equivalent(merge_noisy(data, noise), target) is None


@pytest.mark.long
def test_wrong_labels_of_one_state_are_told_from_two():
    target = zoo.random_dfa(6, 2, seed=1, minimal=True)
    data = from_pairs(pairs(target, 200, 0.1), target.alphabet)
    assert equivalent(merge_noisy(data, None), target) is None
    target = zoo.random_dfa(6, 2, seed=0, minimal=True)
    data = from_pairs(pairs(target, 150, 0.2), target.alphabet)
    assert equivalent(merge_noisy(data, 0.2), target) is None
    words = [("a" * n, 0) for n in range(30)]
    assert merge_noisy(from_pairs([*words, ("b", 1)]), 0.0).transduce("aab")[-1] == 1
    spoiled = from_pairs([*words[:-1], ("a" * 29, 1), ("b", 1)])
    assert merge_noisy(spoiled, 0.0).transduce("a" * 29)[-1] == 1
    assert merge_noisy(spoiled, 0.2).transduce("a" * 29)[-1] == 0
    target = zoo.sum_mod(3)
    data = from_pairs(pairs(target, 100, 0.1), target.alphabet)
    others = [MooreMachine(target.delta, [0, 1, 1]), target, MooreMachine([[0]] * 3, [0])]
    costs = [description(machine, data) for machine in others]
    assert min(costs) == costs[1] < 0.7 * costs[0]
    data = from_pairs(pairs(target, 200, 0.1), target.alphabet)
    delta = target.delta.copy()
    delta[1, 2] = 1
    wrong = MooreMachine(delta, target.outputs, alphabet=target.alphabet)
    assert equivalent(repaired(wrong, data), target) is None
    assert wrong_labels(target, data) / data.n_labels == pytest.approx(0.1, abs=0.02)
    assert wrong_labels(target, data) < 0.5 * wrong_labels(wrong, data)


@pytest.mark.parametrize("seed", range(3))
def test_a_fold_that_ends_at_a_wrong_label_is_refused_like_a_complete_one(seed):
    target = zoo.random_dfa(6, 2, seed=seed, minimal=True)
    data = from_pairs(pairs(target, 200, 0.02 * seed), target.alphabet)
    states = []
    for share in (LEAST_SHARE, 1.001 * LEAST_SHARE):
        child, counts = prefix_tree(data)
        states.append((merge_states(child, counts, share, 2.0, 256), child, counts))
    for first, second in zip(*states, strict=True):
        np.testing.assert_array_equal(first, second)


def test_too_many_states_are_refused(monkeypatch):
    data = from_pairs(pairs(zoo.sum_mod(5), 100, 0.0))
    monkeypatch.setattr(merging, "MAX_STATES", 3)
    assert merge_within(data, 0.0, 3.0) is None
    with pytest.raises(
        BudgetExceeded, match="more than 3 states are left: give outputs after every letter, or leave the method out"
    ):
        merge_noisy(data, 0.0)


def test_a_deadline_ends_the_merger_with_what_was_reached(monkeypatch):
    data = from_pairs(pairs(zoo.sum_mod(3), 100, 0.1))
    with pytest.raises(OutOfTime, match=r"merging states, 1 so far: the limit of 0 s has passed.*; 0 of 5 bounds were"):
        merge_noisy(data, 0.1, Deadline(0.0))
    limit, left = Deadline(1.0), iter([1.0] * 25)
    monkeypatch.setattr(Deadline, "left", lambda _: next(left, 0.0))  # ends while states are merged
    with pytest.raises(OutOfTime, match=r"; [1-5] of 5 bounds were tried, and the best machine so far, of \d+ states?"):
        merge_noisy(data, 0.1, limit)


def test_a_deadline_ends_patching():
    target = zoo.sum_mod(3)
    wrong = MooreMachine(np.where(target.delta == 0, 1, target.delta), target.outputs, alphabet=target.alphabet)
    with pytest.raises(OutOfTime, match="changing columns"):
        repaired(wrong, from_pairs(pairs(target, 100, 0.1), target.alphabet), Deadline(0.0))


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


def attempt(**changes):
    return LearningStart(Recipe(**changes), FreshWords(MooreMachine.from_source("task:sum_mod(3)")), 0, 6, 3)


@pytest.mark.long
def test_rates_fall_and_plateaus_let_words_grow():
    one, draw = attempt(decay=4, length=5), torch.Generator().manual_seed(0)
    rates = []
    for _ in range(6):
        one.update(draw)
        rates.append(one.trainer.optimiser.param_groups[0]["lr"])
    assert rates[0] == 0.03
    assert rates[1:4] == sorted(rates[1:4], reverse=True)
    assert rates[-1] == 0.03 * 0.02
    one.warm()
    one.update(draw)
    assert one.trainer.optimiser.param_groups[0]["lr"] > rates[-1]
    machine = MooreMachine.from_source("task:parity")
    one = LearningStart(Recipe(noise=None, letters=640), FreshWords(machine, noise=0.1), 0, 6, 3)
    draw = torch.Generator().manual_seed(0)
    for _ in range(300):
        one.update(draw)
    assert one.at.length > 5
    assert one.at.base is not None
    assert 0.05 < one.at.base < 0.15  # a label in ten is wrong
