"""Exact steps are told from others by integers, and a proof by margins is one that every shape of call bears out."""

import numpy as np
import pytest
import torch

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.extraction import ModelSystem
from fsa2lrnn.lrnn import LRNN
from fsa2lrnn.lrnn.affine import Readout, SwitchedAffine
from fsa2lrnn.lrnn.rounding import FloatFormat
from fsa2lrnn.scope import EVERY, LETTERS
from fsa2lrnn.verification import Proved, prove_equivalent
from fsa2lrnn.verification.specification import specification_of
from fsa2lrnn.verification.stepping import is_right_in_every_order, lowest_bit, steps_exactly
from verify.soundness.models import Drawn, model

SINGLE, DOUBLE = FloatFormat.of(torch.float32), FloatFormat.of(torch.float64)
SUM3 = MooreMachine(zoo.sum_mod(3).delta, (0, 1, 2), 0, (0, 1, 2))


def dyadic(gap=1.0, scale=1.0, dtype=torch.float32):
    """Sums modulo 3 by a matrix of order 3 on three points, and the nearest of them is read: 2 p·x − |p|²."""
    turn = torch.tensor([[0.0, -1.0], [1.0, -1.0]])
    A = torch.stack([torch.linalg.matrix_power(turn, a) for a in range(3)])
    x0 = scale * torch.tensor([3.0, 1.0])
    points = A @ x0
    readout = Readout.linear((2 * gap * points).to(dtype), (-gap * (points**2).sum(1)).to(dtype))
    parts = A[:, None].to(dtype), torch.zeros(3, 1, 2, dtype=dtype), x0[None].to(dtype)
    return LRNN.from_affine(SwitchedAffine.of(*parts, readout, (0, 1, 2), (0, 1, 2)))


def test_the_lowest_bit_of_every_number():
    x = np.array([0.0, 1.0, -3.0, 0.375, 2.0**-149, 2.0**100, 1 / 3])
    assert lowest_bit(x).tolist() == [1 << 20, 0, 0, -3, -149, 100, -54]


@pytest.mark.parametrize("seed", range(20))
def test_exact_steps_round_in_no_order(seed):
    """Against sums of float32 in all orders of four terms, and what is one bit too long is found."""
    rng = np.random.default_rng(seed)
    bits = 11 if seed % 2 else 13
    A, x = (rng.integers(-(2**bits), 2**bits, shape) / 2.0**7 for shape in ((1, 1, 3, 3), (5, 1, 3)))
    v = rng.integers(-(2**bits), 2**bits, (1, 1, 3)) / 2.0**14
    exact = np.einsum("aij,nj->nai", A[:, 0], x[:, 0]) + v[:, 0]
    terms = np.concatenate([A[None, :, 0] * x[:, None, 0, None], np.broadcast_to(v, (5, 1, 3))[..., None]], -1)
    rounds = False
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]):
        total = np.zeros(terms.shape[:-1], np.float32)
        for j in order:
            total = total + terms[..., j].astype(np.float32)
        rounds |= not np.array_equal(total.astype(np.float64), exact)
    assert not (steps_exactly(A, v, x, SINGLE) and rounds)
    assert steps_exactly(A, v, x, SINGLE) == (bits == 11)
    assert steps_exactly(A, v, x, DOUBLE)


def test_numbers_that_are_none_or_too_small_step_exactly_nowhere():
    one = np.ones((1, 1, 1, 1))
    for value in (np.nan, np.inf, 2.0**-127):
        assert not steps_exactly(one, np.zeros((1, 1, 1)), np.full((1, 1, 1), value), SINGLE)
    assert steps_exactly(one, np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), SINGLE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_steps_and_wide_margins_are_proved_for_every_shape(dtype):
    model = dyadic(gap=0.3, dtype=dtype)
    verdict = prove_equivalent(model, SUM3)
    assert isinstance(verdict, Proved)
    assert verdict.covers.shapes == EVERY
    assert verdict.scans == ("sequential", "fused", "letters")
    words = torch.randint(3, (7, 200), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for method in verdict.scans:
            assert torch.equal(model(words, method).argmax(-1), words.cumsum(1) % 3)


def test_steps_that_round_are_not_proved_for_every_shape():
    """Whether the states of a third of the same model close or not."""
    verdict = prove_equivalent(dyadic(scale=1 / 3), SUM3, budget=50)
    assert not isinstance(verdict, Proved) or verdict.covers.shapes == LETTERS


def test_margins_that_rounding_may_take_are_not_proved_by_them():
    model = dyadic()
    goal, system = specification_of(model, SUM3), ModelSystem(model)
    rows = np.concatenate([system.start(), system.fan(system.start(), np.ones((1, 3), bool))[1]])
    states = np.array([0, 0, 1, 2])
    assert is_right_in_every_order(model, goal, rows, states)
    assert not is_right_in_every_order(model, goal, rows, (states + 1) % 3)
    with torch.no_grad():
        model.readout[2].bias[1] = model.readout[2].bias[0] + 1e30  # all that the read-out computes drowns
    assert not is_right_in_every_order(model, goal, rows, states)


def test_gates_that_round_are_not_proved_so():
    made = model(Drawn("none", 1e3, True, 0.0, False, False, 0), zoo.parity())
    goal, system = specification_of(made, zoo.parity()), ModelSystem(made)
    assert not is_right_in_every_order(made, goal, system.start(), np.array([0]))
