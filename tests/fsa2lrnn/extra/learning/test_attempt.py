import torch

from fsa2lrnn import MooreMachine
from fsa2lrnn.extra.learning.attempt import LearningStart
from fsa2lrnn.extra.learning.examples import FreshWords
from fsa2lrnn.extra.learning.recipe import Recipe


def attempt(**changes):
    return LearningStart(Recipe(**changes), FreshWords(MooreMachine.from_source("task:sum_mod(3)")), 0, 6, 3)


def test_words_grow_once_short_ones_are_read_rightly():
    one, draw = attempt(letters=320), torch.Generator().manual_seed(0)
    lengths = []
    for _ in range(240):
        one.update(draw)
        lengths.append(one.at.length)
    assert lengths[0] == 5
    assert lengths == sorted(lengths)
    assert lengths[-1] > 5


def test_a_head_alone_is_the_same_automaton():
    one = attempt()
    alone = one.focused(2)
    assert alone.is_alone
    assert alone.at.length == 40
    assert (alone.heads.next_state[:, 0] == one.heads.next_state[:, 2]).all()
    assert alone.heads.start[0] == one.heads.start[2]


def test_the_rate_falls_at_full_length_and_can_be_warmed():
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


def test_without_growth_a_start_is_stuck():
    one, draw = attempt(patience=2, threshold=1e-9), torch.Generator().manual_seed(0)
    assert not one.is_stuck
    for _ in range(3):
        one.update(draw)
    assert one.is_stuck


def test_wrong_labels_of_unknown_number_let_words_grow_at_a_plateau():
    machine = MooreMachine.from_source("task:parity")
    one = LearningStart(Recipe(noise=None, letters=640), FreshWords(machine, noise=0.1), 0, 6, 3)
    draw = torch.Generator().manual_seed(0)
    for _ in range(300):
        one.update(draw)
    assert one.at.length > 5
    assert one.at.base is not None
    assert 0.05 < one.at.base < 0.15  # a label in ten is wrong


def test_words_grow_though_the_wrong_labels_are_missed():
    machine = MooreMachine.from_source("task:parity")
    one = LearningStart(Recipe(noise=0.1), FreshWords(machine, noise=0.1), 0, 6, 3)
    assert 0.1 < one._threshold() < 0.15
