import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.training.learning import noisy_merging
from fsa2lrnn.training.learning.noisy_merging import description, mended, merge_noisy, merge_within, wrong_labels
from fsa2lrnn.training.learning.word_files import from_pairs


def pairs(machine, n, noise, seed=0):
    """Words of up to 20 letters, every prefix a pair, with wrong labels among them."""
    generator, outputs = np.random.default_rng(seed), sorted(set(machine.outputs))
    found = []
    for _ in range(n):
        word = [machine.alphabet[a] for a in generator.integers(len(machine.alphabet), size=generator.integers(1, 20))]
        for k, output in enumerate(machine.transduce(word)):
            is_wrong = generator.random() < noise
            found.append((tuple(word[: k + 1]), generator.choice(outputs).item() if is_wrong else output))
    return [((), machine.outputs[machine.start]), *found]


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
    assert equivalent(mended(wrong, data), target) is None
    assert wrong_labels(target, data) < 0.1 * data.n_labels < wrong_labels(wrong, data)


def test_too_many_states_are_refused(monkeypatch):
    data = from_pairs(pairs(zoo.sum_mod(5), 100, 0.0))
    monkeypatch.setattr(noisy_merging, "MAX_STATES", 3)
    assert merge_within(data, 0.0, 3.0) is None
    with pytest.raises(BudgetExceeded, match="more than 3 states are left: give more words, or say that more labels"):
        merge_noisy(data, 0.0)


def test_a_share_that_is_none_is_refused():
    with pytest.raises(UnsupportedFormat, match=r"noise = 1\.5 must be a share from 0 to below 1, or None for unknown"):
        merge_noisy(from_pairs([("a", 0), ("b", 1)]), 1.5)
