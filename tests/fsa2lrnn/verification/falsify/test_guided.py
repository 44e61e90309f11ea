"""The guided beam: as short a word as there is where all are tried, and none where there is none."""

import numpy as np
import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.verification.falsify.beam import beam
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.exhaustive import exhaustive
from fsa2lrnn.verification.falsify.guided import guided
from fsa2lrnn.verification.falsify.verdict import Budget
from tests.fsa2lrnn.verification.falsify.test_beam import MACHINE, leaking


def drifting(machine, noise, seed):
    """The compiled model with noise on its transitions."""
    tables = switched(compile_machine(machine))
    torch.manual_seed(seed)
    A = tables.A + noise * torch.randn(tables.A.shape)
    return LRNN.from_tables(A, tables.v, tables.x0, tables.readout, tables.alphabet, tables.outputs)


CASES = [
    (zoo.tomita(4), 0, 0.05),
    (zoo.tomita(4), 4, 0.06),
    (zoo.sum_mod(2), 2, 0.09),
    (zoo.sum_mod(2), 3, 0.13),
    (zoo.even_pair(2), 2, 0.09),
]


@pytest.mark.parametrize(("machine", "seed", "noise"), CASES)
def test_it_finds_as_short_a_word_as_there_is(machine, seed, noise):
    """Four states for each of the machine's, of the thousands that the exhaustive search holds."""
    judge = ModelComparison(drifting(machine, noise, seed), machine)
    shortest = exhaustive(judge, Budget(words=40_000), 1_000, Deadline(600)).failure
    found = guided(judge, Budget(width=4), 100, Deadline(600))
    assert len(found.failure.tokens) == len(shortest.tokens) >= 11
    assert judge.confirm(found.failure.tokens).tokens.tolist() == found.failure.tokens.tolist()
    none = guided(judge, Budget(width=4), len(shortest.tokens), Deadline(600))
    assert (none.failure, none.length, none.finished) == (None, len(shortest.tokens) - 1, True)


def test_margins_and_spread_alone_find_longer_ones():
    for machine, seed, noise in (CASES[0], CASES[2]):
        judge = ModelComparison(drifting(machine, noise, seed), machine)
        plain, found = (search(judge, Budget(width=4), 100, Deadline(600)) for search in (beam, guided))
        assert len(found.failure.tokens) < len(plain.failure.tokens)


def test_a_known_word_is_made_shorter():
    """Every other letter of the known word is wasted: an output fades by 0.97 at each letter "0" alone."""
    judge = ModelComparison(leaking(0.03), MACHINE)
    known = judge.confirm(np.array([1, 0] * 400))
    assert known is not None
    length = len(known.tokens)
    found = guided(judge, Budget(width=2), length, Deadline(600), known)
    assert len(found.failure.tokens) < length


@pytest.mark.parametrize("machine", [zoo.sum_mod(3), zoo.even_pair(2), zoo.tomita(4)])
def test_a_model_that_is_right_has_no_such_word(machine):
    outcome = guided(ModelComparison(compile_machine(machine), machine), Budget(width=4), 40, Deadline(600))
    assert (outcome.failure, outcome.length, outcome.finished) == (None, 39, True)


def test_it_is_deterministic_and_goes_no_further_than_it_is_told():
    judge = ModelComparison(leaking(0.03), MACHINE)
    first, second = (guided(judge, Budget(width=4), 100, Deadline(600)) for _ in range(2))
    assert np.array_equal(first.failure.tokens, second.failure.tokens)
    assert (first.letters, first.words) == (second.letters, second.words)
    outcome = guided(judge, Budget(width=4, length=9), 100, Deadline(600))
    assert (outcome.failure, outcome.length) == (None, 9)
    assert not guided(judge, Budget(), 100, Deadline(-1.0)).finished


def test_what_is_no_switched_affine_model_is_left_alone():
    model = compile_machine(MACHINE, layout="index")
    outcome = guided(ModelComparison(model, MACHINE), Budget(), 100, Deadline(600))
    assert (outcome.failure, outcome.what, outcome.letters) == (None, "no switched affine model", 0)


def test_half_precision_and_states_that_overflow():
    assert (
        guided(ModelComparison(leaking(0.03, torch.float16), MACHINE), Budget(width=4), 100, Deadline(600)).failure
        is not None
    )
    tables = switched(compile_machine(MACHINE))
    model = LRNN.from_tables(tables.A * 1e6, tables.v, tables.x0, tables.readout, tables.alphabet, tables.outputs)
    outcome = guided(ModelComparison(model, MACHINE), Budget(width=4), 100, Deadline(600))
    assert outcome.failure is not None
