"""The guided search for counterexamples and its parts."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import Budget, MooreMachine, Refuted, Undecided, falsify, zoo
from fsa2lrnn.compile.lower import DTYPES, compile_machine
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.nn import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification.falsify import (
    periodic,
    random,
    read_side_by_side,
    shorten,
    variants,
)
from fsa2lrnn.verification.falsify.frontiers import beam, exhaustive
from fsa2lrnn.verification.falsify.guided import FailureTarget, FunctionalPullback, guided
from fsa2lrnn.verification.falsify.model_comparison import ModelComparison

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


SMALL = Budget(words=300, length=200, periodic_words=50, random_words=16, width=8, rounds=2)


def drifting(machine, noise, seed=0, dtype=torch.float32):
    """The compiled model with noise on its transitions: right on short words, wrong on long ones."""
    tables = switched(compile_machine(machine, dtype=dtype))
    torch.manual_seed(seed)
    A = tables.A + noise * torch.randn(tables.A.shape).to(tables.dtype)
    return LRNN.from_tables(A, tables.v, tables.x0, tables.readout, tables.alphabet, tables.outputs)


def assert_fails(model, machine, verdict):
    """The word is wrong at its last letter and nowhere before, whatever the scan."""
    wanted = machine.transduce(verdict.word)
    assert list(verdict.failure.wanted) == wanted
    assert verdict.position == len(verdict.word) == len(verdict.failure.given)
    for method in ("auto", "sequential"):
        given = model.transduce(verdict.word, method)
        assert given[-1] != wanted[-1]
        assert given[:-1] == wanted[:-1]
    assert list(verdict.failure.given) == model.transduce(verdict.word, "sequential")
    assert "sequential" in verdict.failure.scans
    assert verdict.failure.margin <= 0


@given(machines(max_states=5, max_letters=2), st.sampled_from(DTYPES), st.sampled_from(["dense", "index"]))
def test_compiled_models_have_no_failing_word(machine, dtype, layout):
    verdict = falsify(compile_machine(machine, dtype=dtype, layout=layout), machine, SMALL)
    assert isinstance(verdict, Undecided)
    assert verdict.checked_length is None
    assert [search.name for search in verdict.searches] == ["exhaustive"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("machine", [zoo.sum_mod(3), zoo.even_pair(3)])
def test_a_model_that_drifts_is_found_out(machine, dtype):
    model = drifting(machine, 0.02, dtype=dtype)
    verdict = falsify(model, machine, SMALL)
    assert isinstance(verdict, Refuted)
    assert_fails(model, machine, verdict)
    assert all(search.finished for search in verdict.searches)
    assert verdict.position > verdict.checked_length >= 4
    finds = [search.found for search in verdict.searches if search.found]
    assert min(finds) == verdict.position
    assert sorted(finds, reverse=True) == finds  # each search looks below what was found before it
    assert verdict.found_by in {search.name for search in verdict.searches if search.found == verdict.position}
    for search in verdict.searches:
        assert search.letters >= search.length or search.words == 0


def test_equal_budgets_give_equal_answers():
    machine, model = zoo.sum_mod(3), drifting(zoo.sum_mod(3), 0.02)
    first, second = falsify(model, machine, SMALL), falsify(model, machine, SMALL)
    assert first.word == second.word
    plain = [[dataclasses.replace(search, seconds=0) for search in v.searches] for v in (first, second)]
    assert plain[0] == plain[1]
    machine = zoo.sum_mod(3)
    assert "guided" in [search.name for search in first.searches]
    shifted = compile_machine(machine, layout="index")
    assert "guided" not in [search.name for search in falsify(shifted, machine, SMALL).searches]
    wrong = MooreMachine(machine.delta, [0, 1, 1], 0, machine.alphabet)
    verdict = falsify(compile_machine(machine), wrong, SMALL)
    assert (verdict.word, verdict.found_by, verdict.is_shortest) == (("2",), "exhaustive", True)
    assert len(verdict.searches) == 1


def test_a_known_word_is_run_first_and_only_shorter_ones_count():
    machine, model = zoo.sum_mod(3), drifting(zoo.sum_mod(3), 0.02)
    found = falsify(model, machine, SMALL)
    nothing = Budget(words=0, length=200, periodic_words=0, random_words=0, width=0, rounds=0)
    again = falsify(model, machine, nothing, known=found.word)
    assert (again.word, again.found_by, again.searches[0].name) == (found.word, "known", "known")
    longer = falsify(model, machine, nothing, known=[*found.word, "0", "1"])
    assert longer.position <= found.position
    right = falsify(compile_machine(machine), machine, SMALL, known=found.word)
    assert isinstance(right, Undecided)
    assert right.checked_length is None
    with pytest.raises(InvalidWord, match="'7'"):
        falsify(model, machine, SMALL, known=["7"])


def test_numbers_that_are_none_are_failures_where_they_count():
    machine = zoo.sum_mod(2)
    tables = switched(compile_machine(machine))
    model = LRNN.from_tables(tables.A * 1e4, tables.v, tables.x0, tables.readout, tables.alphabet, tables.outputs)
    verdict = falsify(model, machine, SMALL)
    assert verdict.failure.given[-1] == "NaN"
    assert "NaN" not in verdict.failure.given[:-1]
    assert verdict.failure.margin == float("-inf")


def test_time_that_runs_out_is_said():
    machine = zoo.even_pair(3)
    verdict = falsify(drifting(machine, 0.001), machine, Budget(seconds=1e-6))
    assert isinstance(verdict, Undecided)
    assert not all(search.finished for search in verdict.searches)


CASES = [
    (zoo.tomita(4), 0, 0.05), (zoo.tomita(4), 4, 0.06), (zoo.sum_mod(2), 2, 0.09), (zoo.sum_mod(2), 3, 0.13),
    (zoo.even_pair(2), 2, 0.09),
]  # fmt: skip


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
    assert (outcome.failure.tokens.tolist(), outcome.length) == ([1, 1], 1)
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


@pytest.mark.parametrize(("name", "value", "least"), [
    ("seconds", 0, "more than 0 are"), ("seconds", float("nan"), "more than 0 are"),
    ("length", 0, "at least 1 is"), ("width", -1, "at least 0 is"), ("random_words", -3, "at least 0 is"),
])  # fmt: skip
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
