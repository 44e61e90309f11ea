"""A long failing word becomes one from which nothing can be taken."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.shorten import shorten, variants

PARITY = MooreMachine([[0, 1], [1, 0]], [0, 1])
NEVER_EVEN_AGAIN = MooreMachine([[0, 1], [1, 1]], [0, 1])


@given(st.lists(st.integers(0, 2), max_size=8))
def test_variants_hold_every_cut_and_every_replaced_letter(word):
    found = {tuple(row) for row in variants(np.array(word, np.int64), 3).tolist()}
    n = len(word)
    for i, j in itertools.combinations(range(n + 1), 2):
        cut = tuple(word[:i] + word[j:])
        assert any(row[: len(cut)] == cut for row in found) or not cut
    for i, a in itertools.product(range(n - 1), range(3)):
        if a != word[i]:
            assert (*word[:i], a, *word[i + 1 : -1]) in found
    assert all(len(row) == n - 1 for row in found)


def test_the_shortest_word_is_reached():
    judge = ModelComparison(compile_machine(PARITY), NEVER_EVEN_AGAIN)
    failure = judge.confirm(np.array([0, 0, 1] + [0] * 40 + [1]))
    outcome = shorten(judge, failure, Deadline(60))
    assert outcome.failure.tokens.tolist() == [1, 1]
    assert outcome.length == 1
    assert shorten(judge, outcome.failure, Deadline(60)).failure is None
