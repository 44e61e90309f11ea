"""Which long words are looked at."""

import itertools

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.long_words import _for_ever, _places, periodic, periodic_words, random
from fsa2lrnn.verification.falsify.verdict import Budget


def arithmetic():
    machine = zoo.mod_arith(2)
    torch.manual_seed(0)
    return ModelComparison(
        LRNN(LRNNConfig(machine.alphabet, (0, 1), (BlockLayerConfig((2,), 4, 4),), 4, 4)), machine, "lacked"
    )


@given(st.integers(1, 3), st.integers(0, 2), st.integers(1, 3))
def test_each_ultimately_periodic_word_comes_once(n_letters, prefix, period):
    pairs = list(periodic_words(n_letters, prefix, period))
    k = np.arange(24)
    words = [tuple(np.array(u + w)[_places(u, w, k)].tolist()) for u, w in pairs]
    assert len(set(words)) == len(words)
    wanted = {
        (u + w * 24)[:24]
        for m, n in itertools.product(range(prefix + 1), range(1, period + 1))
        for u in itertools.product(range(n_letters), repeat=m)
        for w in itertools.product(range(n_letters), repeat=n)
    }
    assert set(words) == wanted


def test_words_that_end_up_nowhere_are_left_out():
    judge = arithmetic()
    letters = judge.model.alphabet
    kept = _for_ever(judge, list(periodic_words(len(letters), 1, 2)))
    words = {"".join(letters[a] for a in u) + "|" + "".join(letters[a] for a in w) for u, w in kept}
    assert words == {f"|{digit}{operator}" for digit in "01" for operator in "+-*"} | {
        f"{first}|{operator}{digit}" for first in "01" for digit in "01" for operator in "+-*" if first != digit
    }


def test_random_words_are_live_to_the_end_and_of_all_kinds():
    judge = arithmetic()
    tokens = judge.goal.random_words(np.random.default_rng(0), 200, 9)
    assert judge.goal.coaccessible[judge.goal.path(tokens)].all()
    assert len({tuple(word) for word in tokens[:, :3].tolist()}) == 12  # 2 · 3 · 2


def test_what_is_found_is_the_shortest_of_them():
    """A model of Sum(3) beside the machine that stops counting at the 20th one."""
    machine = zoo.sum_mod(3)
    n = 20
    delta = [[*range(n)], [min(q + 1, n - 1) for q in range(n)], [min(q + 2, n - 1) for q in range(n)]]
    stops = type(machine)(delta, [q % 3 for q in range(n)], 0, machine.alphabet)
    judge = ModelComparison(compile_machine(machine), stops)
    outcome = periodic(judge, Budget(), 1_000, Deadline(60))
    assert outcome.failure.tokens.tolist() == [2] * 10
    outcome = random(judge, Budget(seed=3), 1_000, Deadline(60))
    assert 10 <= len(outcome.failure.tokens) <= 20
    assert periodic(judge, Budget(), 10, Deadline(60)).failure is None
    assert not random(judge, Budget(), 1_000, Deadline(-1)).finished
