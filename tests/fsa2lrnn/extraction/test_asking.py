"""Outputs as numbers, blank where they do not count; no output is read from what is no number."""

import numpy as np
import pytest
import torch

from fsa2lrnn.automata import MooreMachine
from fsa2lrnn.automata.counting import UNCOUNTED, positions_of
from fsa2lrnn.errors import NotExact
from fsa2lrnn.extraction.runner import MaskedModel
from fsa2lrnn.lower import compile_machine

PARITY = MooreMachine([[0, 1], [1, 0]], [0, 1])
AFTER_ONES = MooreMachine([[0, 0], [1, 1]], [False, True])  # counts after the letter 1 alone


def test_only_what_counts_is_given_and_asked():
    asked = MaskedModel(compile_machine(PARITY), positions_of((0, 1), AFTER_ONES, True))
    tokens = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 1]])
    assert asked.words(tokens).tolist() == [[1, UNCOUNTED, 0], [UNCOUNTED] * 3, [UNCOUNTED, 1, 0]]
    assert asked.letters == 6  # the word without a 1 was not run
    assert asked.words(np.zeros((2, 4), np.int64)).tolist() == [[UNCOUNTED] * 4] * 2


def test_numbers_that_are_none_are_refused_where_they_count():
    asked = MaskedModel(compile_machine(PARITY), positions_of((0, 1), AFTER_ONES, True))
    logits, accepting = torch.tensor([[float("nan"), 0.0]]), asked.mask.delta[1, asked.mask.start]
    assert asked.numbers(logits, np.array([asked.mask.start])).tolist() == [UNCOUNTED]
    with pytest.raises(NotExact, match="logits that count are NaN"):
        asked.numbers(logits, np.array([accepting]))
