"""Frontiers: every live word, letter by letter, with the states it leads to."""

import numpy as np
import torch

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.frontier import Frontier

PARITY = MooreMachine([[0, 1], [1, 0]], [0, 1])


def test_all_words_of_a_length_are_looked_at_and_those_kept_go_on():
    judge = ModelComparison(compile_machine(PARITY), PARITY)
    words, kept = Frontier(judge), [()]
    for length in range(4):
        assert (len(words), words.length) == (len(kept), length)
        found = words.scored()
        ahead = found.ahead
        longer = [kept[parent] + (a,) for parent, a in zip(ahead.parents, ahead.letters, strict=True)]
        assert longer == [(*word, a) for word in kept for a in range(2)]
        assert found.q.tolist() == [sum(word) % 2 for word in longer]
        x = judge.runner.read(judge.runner.start(len(longer)), np.array(longer))[1][0]
        assert torch.equal(ahead.states[0], x)
        assert (found.failure, (found.margin > 0).all()) == (None, True)
        some = np.array([0, len(longer) - 1])
        words.keep(ahead, found.q, some)
        kept = [longer[i] for i in some]
    assert words.letters == 2 + 3 * 4


def test_the_word_that_fails_is_given_letter_by_letter():
    judge = ModelComparison(compile_machine(PARITY), MooreMachine([[0, 1], [1, 1]], [0, 1]))
    words = Frontier(judge)
    found = words.scored()
    words.keep(found.ahead, found.q, np.arange(2))
    assert words.scored().failure.tokens.tolist() == [1, 1]


def test_letters_after_which_nothing_counts_are_left_out():
    ends = MooreMachine([[0, 1], [1, 1]], [0, "over"])
    words = Frontier(ModelComparison(compile_machine(PARITY), ends, "lacked"))
    for _ in range(3):
        found = words.scored()
        assert found.ahead.letters.tolist() == [0]
        words.keep(found.ahead, found.q, np.array([0]))
    assert (words.letters, words.length) == (3, 3)
