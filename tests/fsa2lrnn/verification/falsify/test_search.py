"""The guided search for counterexamples and its parts."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.switched import switched
from fsa2lrnn.verification.falsify.beam import beam
from fsa2lrnn.verification.falsify.comparison import ModelComparison
from fsa2lrnn.verification.falsify.exhaustive import exhaustive
from fsa2lrnn.verification.falsify.guided import guided
from fsa2lrnn.verification.falsify.long_words import (
    _for_ever,
    _places,
    periodic,
    periodic_words,
    random,
    read_side_by_side,
    shorten,
    variants,
)
from fsa2lrnn.verification.falsify.pulled import FailureTarget, FunctionalPullback
from fsa2lrnn.verification.falsify.verdict import Budget
from tests.fsa2lrnn.verification.falsify.test_beam import MACHINE, leaking
from tests.fsa2lrnn.verification.falsify.test_init import drifting

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


def test_margins_and_known_words_shorten_the_search():
    for machine, seed, noise in (CASES[0], CASES[2]):
        judge = ModelComparison(drifting(machine, noise, seed), machine)
        plain, found = (search(judge, Budget(width=4), 100, Deadline(600)) for search in (beam, guided))
        assert len(found.failure.tokens) < len(plain.failure.tokens)
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


def test_the_guided_search_is_bounded_and_takes_overflow():
    judge = ModelComparison(leaking(0.03), MACHINE)
    first, second = (guided(judge, Budget(width=4), 100, Deadline(600)) for _ in range(2))
    assert np.array_equal(first.failure.tokens, second.failure.tokens)
    assert (first.letters, first.words) == (second.letters, second.words)
    outcome = guided(judge, Budget(width=4, length=9), 100, Deadline(600))
    assert (outcome.failure, outcome.length) == (None, 9)
    assert not guided(judge, Budget(), 100, Deadline(-1.0)).finished
    model = compile_machine(MACHINE, layout="index")
    outcome = guided(ModelComparison(model, MACHINE), Budget(), 100, Deadline(600))
    assert (outcome.failure, outcome.what, outcome.letters) == (None, "no switched affine model", 0)
    assert (
        guided(ModelComparison(leaking(0.03, torch.float16), MACHINE), Budget(width=4), 100, Deadline(600)).failure
        is not None
    )
    tables = switched(compile_machine(MACHINE))
    model = LRNN.from_tables(tables.A * 1e6, tables.v, tables.x0, tables.readout, tables.alphabet, tables.outputs)
    outcome = guided(ModelComparison(model, MACHINE), Budget(width=4), 100, Deadline(600))
    assert outcome.failure is not None


@pytest.fixture(scope="module")
def judge():
    return ModelComparison(leaking(0.03), MACHINE)


@pytest.fixture(scope="module")
def points(judge):
    """The states after a few random words of 5 letters, by the machine's."""
    tokens = judge.goal.random_words(np.random.default_rng(0), 40, 5)
    x = judge.runner.tables.run(torch.from_numpy(tokens))[:, -1].flatten(1).double().numpy()
    q = judge.goal.path(tokens)[:, -1]
    return {int(state): x[q == state] for state in np.unique(q)}


def test_a_tangent_is_the_lead_of_the_wrong_output_where_it_is_taken(judge, points):
    pull = FunctionalPullback(judge.runner.tables, judge.goal)
    targets = pull.targets(points)
    wanted = judge.goal.wanted
    assert set(targets) == {FailureTarget(q, y) for q in points for y in range(judge.goal.known) if y != wanted[q]}
    ahead = [pull.ahead(target, points) for target in targets]
    assert sorted(ahead, reverse=True) == ahead
    for target, lead in zip(targets, ahead, strict=True):
        found = pull.tangents(target, points)[target.q].at(points[target.q])
        assert np.isclose(found, lead).any()
    assert pull.tangents(FailureTarget(99, 0), points) == {}
    assert pull.ahead(FailureTarget(99, 0), points) == -np.inf


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


def test_shortest_words_are_reached():
    judge = ModelComparison(compile_machine(PARITY), NEVER_EVEN_AGAIN)
    failure = judge.confirm(np.array([0, 0, 1] + [0] * 40 + [1]))
    outcome = shorten(judge, failure, Deadline(60))
    assert outcome.failure.tokens.tolist() == [1, 1]
    assert outcome.length == 1
    assert shorten(judge, outcome.failure, Deadline(60)).failure is None
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


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [
        ("seconds", 0, "more than 0 are"),
        ("seconds", float("nan"), "more than 0 are"),
        ("length", 0, "at least 1 is"),
        ("width", -1, "at least 0 is"),
        ("random_words", -3, "at least 0 is"),
    ],
)
def test_a_budget_says_what_is_wrong_with_it(name, value, least):
    with pytest.raises(UnsupportedFormat, match=f"budget: {name} = {value}, but {least} needed"):
        Budget(**{name: value})


def test_failures_are_the_earliest_and_dead_words_are_dropped():
    judge = ModelComparison(compile_machine(PARITY), NEVER_EVEN_AGAIN)
    for last in (1, 7, 8, 64, 65, 150):
        tokens = np.zeros((3, 200), np.int64)
        tokens[0, [0, 180]], tokens[1, [0, last]] = 1, 1
        outcome = read_side_by_side(judge, tokens, Deadline(60), "words")
        assert len(outcome.failure.tokens) == last + 1
        assert outcome.letters <= 3 * 200
    ends = MooreMachine([[0, 1], [1, 1]], [0, "over"])  # after a 1 nothing counts
    judge = ModelComparison(compile_machine(PARITY), ends, "lacked")
    tokens = np.zeros((2, 100), np.int64)
    tokens[0, 0] = 1
    outcome = read_side_by_side(judge, tokens, Deadline(60), "words")
    assert (outcome.failure, outcome.length) == (None, 100)
    assert outcome.letters == 2 * 8 + 92
    judge = ModelComparison(compile_machine(PARITY), PARITY)
    assert read_side_by_side(judge, np.empty((0, 5), np.int64), Deadline(60), "none").letters == 0


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


def test_periodic_and_random_words_are_live():
    judge = arithmetic()
    letters = judge.model.alphabet
    kept = _for_ever(judge, list(periodic_words(len(letters), 1, 2)))
    words = {"".join(letters[a] for a in u) + "|" + "".join(letters[a] for a in w) for u, w in kept}
    assert words == {f"|{digit}{operator}" for digit in "01" for operator in "+-*"} | {
        f"{first}|{operator}{digit}" for first in "01" for digit in "01" for operator in "+-*" if first != digit
    }
    judge = arithmetic()
    tokens = judge.goal.random_words(np.random.default_rng(0), 200, 9)
    assert judge.goal.coaccessible[judge.goal.path(tokens)].all()
    assert len({tuple(word) for word in tokens[:, :3].tolist()}) == 12  # 2 · 3 · 2
