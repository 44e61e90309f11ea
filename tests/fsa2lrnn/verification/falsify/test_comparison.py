"""When a model is wrong, where it can still be, and what the model itself says."""

import numpy as np
import pytest
import torch

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.verification.falsify.comparison import ModelComparison

PARITY = MooreMachine([[0, 1], [1, 0]], [0, 1])


def test_margins_ties_and_numbers_that_are_none():
    judge = ModelComparison(compile_machine(PARITY), PARITY)
    nan, inf = float("nan"), float("inf")
    logits = torch.tensor([[3.0, 1.0], [3.0, 1.0], [2.0, 2.0], [2.0, 2.0], [nan, 1.0], [inf, inf], [-inf, -inf]])
    wrong, margin = judge.marks(logits, np.array([0, 1, 0, 1, 0, 0, 0]))
    assert wrong.tolist() == [False, True, False, True, True, False, False]  # ties go to the first output
    assert margin[:5].tolist() == [2, -2, 0, 0, -inf]
    assert judge.marks(logits, np.array([0, 1, 0, 1, 0, 0, 0])).worst(2).tolist() == [4, 1]


def test_words_that_cannot_fail_any_more_are_known():
    """In ModArith an operator after an operator leads to a sink whose output the model does not have."""
    machine = zoo.mod_arith(2)
    torch.manual_seed(0)
    model = LRNN(LRNNConfig(machine.alphabet, (0, 1), (BlockLayerConfig((2,), 4, 4),), 4, 4))
    judge = ModelComparison(model, machine, "lacked")
    for word in ("1", "1+", "1+0", "1++", "11", "1++0"):
        q = machine.minimise().run(word)
        assert judge.goal.coaccessible[q] == (word not in ("1++", "11", "1++0")), word
    after_digit, digit, plus = machine.minimise().run("1"), model.alphabet.index("1"), model.alphabet.index("+")
    assert judge.goal.live[:, after_digit].tolist() == [letter in "+-*" for letter in model.alphabet]
    assert not judge.marks(torch.full((1, 2), float("nan")), judge.goal.delta[[plus], after_digit]).wrong.any()
    assert judge.marks(torch.full((1, 2), float("nan")), judge.goal.delta[[digit], judge.goal.start]).wrong.all()


def test_a_failure_is_cut_to_its_first_wrong_letter():
    judge = ModelComparison(compile_machine(PARITY), MooreMachine([[0, 1], [1, 1]], [0, 1]))
    failure = judge.confirm(np.array([0, 1, 0, 1, 0, 1]))
    assert failure.tokens.tolist() == [0, 1, 0, 1]
    assert failure.outputs.tolist() == [0, 1, 1, 0]
    assert failure.margin < 0
    assert failure.scans == judge.model.methods
    assert judge.confirm(np.array([0, 1, 0])) is None
    assert judge.confirm(np.empty(0, np.int64)) is None


def test_a_word_must_fail_sequentially_and_by_default():
    class OneScanFails(LRNN):
        def forward(self, tokens, method="auto"):
            logits = super().forward(tokens, method)
            return -logits if method == self.broken else logits

    model = compile_machine(PARITY)
    model.__class__ = OneScanFails
    judge = ModelComparison(model, PARITY)
    for model.broken in ("sequential", "auto", "pscan"):
        assert judge.confirm(np.array([0, 1])) is None


def test_unlike_symbols_are_refused():
    with pytest.raises(InvalidMachine, match="the alphabets differ"):
        ModelComparison(compile_machine(PARITY), zoo.sum_mod(3))
    with pytest.raises(UnsupportedFormat, match="none of the machine's"):
        ModelComparison(compile_machine(PARITY), MooreMachine([[0, 1], [1, 0]], "xy"), "lacked")


def test_an_output_that_the_model_lacks_is_wrong_wherever_it_counts():
    judge = ModelComparison(compile_machine(PARITY), MooreMachine([[0, 1], [1, 1]], [0, "over"]))
    wrong, margin = judge.marks(torch.tensor([[3.0, 1.0], [3.0, 1.0], [1.0, 3.0]]), np.array([0, 1, 1]))
    assert (wrong.tolist(), margin.tolist()) == ([False, True, True], [2, -np.inf, -np.inf])
    assert judge.confirm(np.array([0, 1, 0])).tokens.tolist() == [0, 1]


def test_double_precision_is_judged_in_double_precision():
    judge = ModelComparison(compile_machine(PARITY), PARITY)
    logits = torch.tensor([[1.0, 1.0 + 2.0**-40]], dtype=torch.float64)
    assert judge.marks(logits, np.array([0])).wrong.tolist() == [True]
    assert judge.marks(logits, np.array([1])).wrong.tolist() == [False]
