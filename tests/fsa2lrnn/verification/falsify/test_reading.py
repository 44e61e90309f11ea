"""Words side by side: the first failure of any, and no work on words that are over."""

import numpy as np

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.reading import read_side_by_side

PARITY = MooreMachine([[0, 1], [1, 0]], [0, 1])
NEVER_EVEN_AGAIN = MooreMachine([[0, 1], [1, 1]], [0, 1])


def test_the_earliest_failure_is_taken_whichever_word_has_it():
    judge = ModelComparison(compile_machine(PARITY), NEVER_EVEN_AGAIN)
    for last in (1, 7, 8, 64, 65, 150):
        tokens = np.zeros((3, 200), np.int64)
        tokens[0, [0, 180]], tokens[1, [0, last]] = 1, 1
        outcome = read_side_by_side(judge, tokens, Deadline(60), "words")
        assert len(outcome.failure.tokens) == last + 1
        assert outcome.letters <= 3 * 200


def test_words_that_cannot_fail_are_dropped():
    ends = MooreMachine([[0, 1], [1, 1]], [0, "over"])  # after a 1 nothing counts
    judge = ModelComparison(compile_machine(PARITY), ends, "lacked")
    tokens = np.zeros((2, 100), np.int64)
    tokens[0, 0] = 1
    outcome = read_side_by_side(judge, tokens, Deadline(60), "words")
    assert (outcome.failure, outcome.length) == (None, 100)
    assert outcome.letters == 2 * 8 + 92


def test_no_words_are_no_work():
    judge = ModelComparison(compile_machine(PARITY), PARITY)
    assert read_side_by_side(judge, np.empty((0, 5), np.int64), Deadline(60), "none").letters == 0
