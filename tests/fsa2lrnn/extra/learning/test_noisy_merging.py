import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime
from fsa2lrnn.extra.learning import noisy_merging
from fsa2lrnn.extra.learning.noisy_merging import description, merge_noisy, merge_within, repaired, wrong_labels
from fsa2lrnn.extra.learning.word_files import from_pairs


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


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_the_machine_is_found_among_wrong_labels(noise):
    target = zoo.sum_mod(5)
    data = from_pairs(pairs(target, 300, noise), target.alphabet)
    assert equivalent(merge_noisy(data, noise), target) is None


def test_the_share_of_wrong_labels_need_not_be_known():
    target = zoo.random_dfa(6, 2, seed=1, minimal=True)
    data = from_pairs(pairs(target, 200, 0.1), target.alphabet)
    assert equivalent(merge_noisy(data, None), target) is None


def test_where_no_label_is_wrong_one_parts_two_states():
    words = [("a" * n, 0) for n in range(30)]
    assert merge_noisy(from_pairs([*words, ("b", 1)]), 0.0).transduce("aab")[-1] == 1
    spoiled = from_pairs([*words[:-1], ("a" * 29, 1), ("b", 1)])
    assert merge_noisy(spoiled, 0.0).transduce("a" * 29)[-1] == 1
    assert merge_noisy(spoiled, 0.2).transduce("a" * 29)[-1] == 0


def test_the_true_machine_is_described_in_the_fewest_nats():
    target = zoo.sum_mod(3)
    data = from_pairs(pairs(target, 100, 0.1), target.alphabet)
    others = [MooreMachine(target.delta, [0, 1, 1]), target, MooreMachine([[0]] * 3, [0])]
    costs = [description(machine, data) for machine in others]
    assert min(costs) == costs[1] < 0.7 * costs[0]


def test_mending_puts_a_column_right():
    target = zoo.sum_mod(3)
    data = from_pairs(pairs(target, 200, 0.1), target.alphabet)
    delta = target.delta.copy()
    delta[1, 2] = 1
    wrong = MooreMachine(delta, target.outputs, alphabet=target.alphabet)
    assert equivalent(repaired(wrong, data), target) is None
    assert wrong_labels(target, data) / data.n_labels == pytest.approx(0.1, abs=0.02)
    assert wrong_labels(target, data) < 0.5 * wrong_labels(wrong, data)


def test_too_many_states_are_refused(monkeypatch):
    data = from_pairs(pairs(zoo.sum_mod(5), 100, 0.0))
    monkeypatch.setattr(noisy_merging, "MAX_STATES", 3)
    assert merge_within(data, 0.0, 3.0) is None
    with pytest.raises(BudgetExceeded, match="more than 3 states are left: give more words, or say that more labels"):
        merge_noisy(data, 0.0)


def recovers(n, seed):
    """Merge 2,000 words with a tenth of the outputs wrong; return whether the two-output machine comes back."""
    target = zoo.random_dfa(n, 2, seed=seed, minimal=True)
    return equivalent(merge_noisy(from_pairs(pairs(target, 2_000, 0.1), target.alphabet), 0.1), target) is None


@pytest.mark.parametrize("n", [4, 8])
def test_a_tenth_of_two_outputs_wrong_is_noise_of_a_tenth(n):
    assert recovers(n, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n", [4, 6, 8, 10, 12])
def test_a_tenth_of_two_outputs_wrong_is_noise_of_a_tenth_on_ten_machines(n, seed):
    assert recovers(n, seed)


def test_the_share_that_is_said_is_the_share_that_is_wrong():
    target = zoo.random_dfa(6, 2, seed=0, minimal=True)
    data = from_pairs(pairs(target, 150, 0.2), target.alphabet)
    assert equivalent(merge_noisy(data, 0.2), target) is None


def test_a_deadline_ends_the_merger_with_what_was_reached(monkeypatch):
    data = from_pairs(pairs(zoo.sum_mod(3), 100, 0.1))
    with pytest.raises(OutOfTime, match=r"merging states, 1 so far: the limit of 0 s has passed.*; 0 of 5 bounds were"):
        merge_noisy(data, 0.1, Deadline(0.0))
    limit, left = Deadline(1.0), iter([1.0] * 25)
    monkeypatch.setattr(Deadline, "left", lambda _: next(left, 0.0))  # ends while states are merged
    with pytest.raises(OutOfTime, match=r"; [1-5] of 5 bounds were tried, and the best machine so far, of \d+ states?"):
        merge_noisy(data, 0.1, limit)


def test_a_deadline_ends_mending():
    target = zoo.sum_mod(3)
    wrong = MooreMachine(np.where(target.delta == 0, 1, target.delta), target.outputs, alphabet=target.alphabet)
    with pytest.raises(OutOfTime, match="changing columns"):
        repaired(wrong, from_pairs(pairs(target, 100, 0.1), target.alphabet), Deadline(0.0))
