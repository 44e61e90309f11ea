"""State merging, the repair of tables, and the attempts of training."""

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, equivalent, zoo
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime
from fsa2lrnn.learning import from_pairs, merging
from fsa2lrnn.learning.attempt import LearningStart
from fsa2lrnn.learning.examples import FreshWords
from fsa2lrnn.learning.merging import description, machine_of_table, merge, wrong_labels
from fsa2lrnn.learning.patching import patch_table
from fsa2lrnn.learning.recipe import Recipe


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


@pytest.mark.parametrize("target", [zoo.sum_mod(5), zoo.random_dfa(8, 3, seed=2, minimal=True)])
def test_the_machine_of_correct_labels_is_merged(target):
    data = from_pairs(pairs(target, 300, 0.0), target.alphabet)
    assert equivalent(merge(data), target) is None


def test_a_merger_keeps_every_label_and_fills_what_is_missing():
    words = [("a" * n, 0) for n in range(30)]
    machine = merge(from_pairs([*words, ("b", 1)]))
    assert machine.transduce("aab")[-1] == 1
    data = from_pairs([*words[:-1], ("a" * 29, 1), ("b", 1)])
    assert wrong_labels(merge(data), data) == 0


def test_a_merger_ends_at_its_limits(monkeypatch):
    data = from_pairs(pairs(zoo.sum_mod(5), 100, 0.0))
    with pytest.raises(OutOfTime, match="merging states, 1 so far: the limit of 0 s has passed"):
        merge(data, Deadline(0.0))
    monkeypatch.setattr(merging, "MAX_STATES", 3)
    with pytest.raises(BudgetExceeded, match="more than 3 states are left: give outputs after every letter, or leave"):
        merge(data)


def test_the_description_prefers_the_machine_and_a_repair_finds_it():
    target = zoo.sum_mod(3)
    data = from_pairs(pairs(target, 200, 0.1), target.alphabet)
    others = [MooreMachine(target.delta, [0, 1, 1]), target, MooreMachine([[0]] * 3, [0])]
    costs = [description(machine, data) for machine in others]
    assert min(costs) == costs[1] < 0.7 * costs[0]
    delta = target.delta.copy()
    delta[1, 2] = 1
    wrong = MooreMachine(delta, target.outputs, alphabet=target.alphabet)
    words = data.tokens.numpy(), data.labels.numpy(), 3
    table = patch_table(delta, 0, *words, price=5.0).next_state
    assert equivalent(machine_of_table(table, 0, data), target) is None
    assert wrong_labels(target, data) / data.n_labels == pytest.approx(0.1, abs=0.02)
    assert wrong_labels(target, data) < 0.5 * wrong_labels(wrong, data)
    with pytest.raises(OutOfTime, match="changing columns"):
        patch_table(delta, 0, *words, deadline=Deadline(0.0))


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
