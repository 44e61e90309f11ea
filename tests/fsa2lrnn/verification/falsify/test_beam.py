"""The beam follows the states that go astray, and gives back a word that leads there."""

import numpy as np
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.verification.falsify.beam import beam
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.verdict import Budget

MACHINE = zoo.even_pair(2)


def leaking(rate, dtype=torch.float32):
    """EvenPair(2) compiled, but one letter, in one state alone, shrinks what the state is known by."""
    tables = switched(compile_machine(MACHINE, dtype=dtype))
    A = tables.A.clone()
    A[0] *= 1 - rate
    readout = tables.readout
    b2 = readout.b2.clone()
    b2[0] += 0.5  # an output that wins when all else has faded
    faded = type(readout)(readout.W1, readout.b1, readout.W2, b2)
    return LRNN.from_tables(A, tables.v, tables.x0, faded, tables.alphabet, tables.outputs)


def search(model, below=10_000, seconds=60, **budget):
    judge = ModelComparison(model, MACHINE)
    return judge, beam(judge, Budget(**budget), below, Deadline(seconds))


def test_a_leak_is_found_where_it_first_can_show():
    """Output 1 loses 0.99^k of its say: it is wrong once that is below ½, after at least 69 letters "0"."""
    judge, outcome = search(leaking(0.01), width=2)
    length = len(outcome.failure.tokens)
    assert 69 <= length <= 71
    states = judge.goal.path(outcome.failure.tokens[None])[0]
    assert judge.goal.wanted[states[-1]] != outcome.failure.outputs[-1]
    assert outcome.failure.tokens.tolist().count(0) >= 69


def test_the_beam_is_bounded_and_deterministic():
    _, outcome = search(leaking(0.01), below=50, width=8)
    assert (outcome.failure, outcome.length, outcome.finished) == (None, 49, True)
    _, outcome = search(leaking(0.01), length=20, width=8)
    assert (outcome.failure, outcome.length, outcome.finished) == (None, 20, True)
    _, outcome = search(leaking(0.01), seconds=-1)
    assert not outcome.finished
    first, second = (search(leaking(0.03), width=4)[1].failure.tokens for _ in range(2))
    assert np.array_equal(first, second)


def test_half_precision_and_overflow():
    assert search(leaking(0.03, torch.float16), width=4)[1].failure is not None
    model = compile_machine(MACHINE, layout="index")
    outcome = beam(ModelComparison(model, MACHINE), Budget(length=12, width=4), 100, Deadline(60))
    assert (outcome.failure, outcome.length) == (None, 12)
    tables = switched(compile_machine(MACHINE))
    model = LRNN.from_tables(tables.A * 1e6, tables.v, tables.x0, tables.readout, tables.alphabet, tables.outputs)
    _, outcome = search(model, width=4)
    assert outcome.failure is not None
    assert torch.tensor(outcome.failure.margin).isnan() or outcome.failure.margin <= 0
