"""The strategies generate what they say and shrink to the simplest counterexample."""

import random

import pytest
import torch
from hypothesis import find, given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, equivalent, zoo
from fsa2lrnn.automata import trim
from fsa2lrnn.recurrence import DenseTables
from fsa2lrnn.testing.strategies import (
    aperiodic_machines,
    block_transitions,
    dfas,
    machines,
    permutation_machines,
    recurrences,
    words,
    wreath_products,
)

quiet = settings(max_examples=2_000, database=None, deadline=None, derandomize=True)
ordered = settings(max_examples=500, database=None, deadline=None)


def permutes(machine: MooreMachine) -> bool:
    return all(sorted(row) == list(range(machine.n_states)) for row in machine.delta.tolist())


def turns(row: list[int]) -> bool:
    """Whether a letter moves some state round a cycle."""
    periodic = set(range(len(row)))
    for _ in row:
        periodic = {row[q] for q in periodic}
    return any(row[q] != q for q in periodic)


def do_not_commute(m):
    return any((a[b] != b[a]).any() for a in m.delta for b in m.delta)


def test_the_simplest_of_each_kind():
    assert find(machines(), lambda _: True, settings=quiet) == MooreMachine([[0]], [0], 0, "a")
    assert find(aperiodic_machines(), lambda _: True, settings=quiet) == MooreMachine([[0]], [0], 0, "a")
    assert find(dfas(), lambda _: True, settings=quiet) == MooreMachine([[0]], [False], 0, "a")
    m = MooreMachine([[0], [0]], [0], alphabet="ab")
    assert find(words(m), lambda _: True, settings=quiet) == []
    assert find(words(m), lambda w: len(w) == 2, settings=quiet) == ["a", "a"]
    found = find(recurrences(), lambda _: True, settings=quiet)
    assert (found.tables.block_sizes, found.alphabet, found.tables.A.tolist()) == ((1,), ("a",), [[[[1]]]])
    assert find(block_transitions(), lambda _: True, settings=quiet).shape == (0, 1, 1, 1)
    assert not find(block_transitions(), lambda A: A.numel() > 3, settings=quiet).any()


@pytest.mark.parametrize(
    ("strategy", "claim", "states", "letters", "delta"),
    [
        (dfas(), lambda m: any(turns(row) for row in m.delta.tolist()), 2, 1, [[1, 0]]),  # not all are aperiodic
        (machines(), lambda m: trim(m).n_states < m.n_states, 2, 1, [[0, 0]]),
        (machines(), lambda m: m.start != 0 and trim(m).n_states < m.n_states, 2, 1, [[1, 1]]),
        (dfas(), lambda m: m.minimise().n_states >= 3, 3, 1, None),
        (dfas(), do_not_commute, 2, 2, None),
        *((machines(max_states=5), lambda m, n=n: m.n_states == n, n, 1, None) for n in (1, 2, 5)),
    ],
)
def test_counterexamples_are_as_small_as_can_be(strategy, claim, states, letters, delta):
    found = find(strategy, claim, settings=ordered, random=random.Random(0))
    assert (found.n_states, len(found.alphabet)) == (states, letters)
    assert delta is None or found.delta.tolist() == delta


@given(machines(max_states=4, max_letters=2, outputs="xy", alphabet=None), machines(alphabet=(0, "+")), dfas())
def test_machines_keep_to_the_bounds(m, listed, acceptor):
    assert m.n_states <= 4
    assert m.alphabet in [("a",), ("a", "b")]
    assert set(m.outputs) <= {"x", "y"}
    assert listed.alphabet == (0, "+")
    assert acceptor.is_acceptor


@given(st.data())
def test_words_are_words_of_the_machine(data):
    m = data.draw(machines())
    word = data.draw(words(m, max_size=5))
    assert len(word) <= 5
    assert len(m.transduce(word)) == len(word)


def is_aperiodic(machine):
    """By the definition: no word of the transition monoid turns states round a cycle."""
    letters = {tuple(row) for row in machine.delta.tolist()}
    monoid, waiting = set(letters), list(letters)
    while waiting:
        word = waiting.pop()
        if turns(list(word)):
            return False
        for row in letters:
            longer = tuple(row[q] for q in word)
            if longer not in monoid:
                monoid.add(longer)
                waiting.append(longer)
    return True


@given(aperiodic_machines(max_states=6), permutation_machines())
def test_aperiodic_machines_are_aperiodic_and_permutation_machines_permute(m, permuting):
    assert m.n_states <= 6
    assert is_aperiodic(m)
    assert permutes(permuting)


@pytest.mark.parametrize("name", ["flip_flop", "tomita(1)"])
def test_small_aperiodic_machines_of_the_zoo_come_up(name):
    wanted = zoo.from_task(name)
    strategy = aperiodic_machines(2, len(wanted.alphabet), tuple(dict.fromkeys(wanted.outputs)))

    def same(m):
        if len(m.alphabet) < len(wanted.alphabet):
            return False
        return equivalent(MooreMachine(m.delta, m.outputs, m.start, wanted.alphabet), wanted) is None

    assert find(strategy, same, settings=quiet).n_states == 2


@given(wreath_products(max_states=8))
def test_wreath_products_stay_within_their_bounds(m):
    assert m.n_states <= 8
    assert len(m.alphabet) <= 3
    assert set(m.outputs) <= {0, 1, 2}


@pytest.mark.slow
def test_wreath_products_reach_groups_and_aperiodic_machines():
    assert find(wreath_products(), lambda m: permutes(m) and m.minimise().n_states == 4, settings=quiet).n_states == 4
    assert find(wreath_products(), lambda m: is_aperiodic(m) and m.minimise().n_states == 3, settings=quiet)


@given(st.data())
def test_block_transitions_keep_to_the_unit_ball_and_the_shape(data):
    p = data.draw(st.sampled_from([1.0, 1.2, 2.0]))
    A = data.draw(block_transitions(p, b=3, heads=2, length=2))
    assert (A.shape, A.dtype) == ((2, 2, 3, 3), torch.float64)
    assert (torch.linalg.vector_norm(A, ord=p, dim=-2) <= 1).all()


@given(block_transitions(1.0, length=2))
def test_eq_7_holds_for_p_1(A):
    assert ((A[0] @ A[1]).abs().sum(-2) <= 1 + 1e-12).all()


@given(recurrences(max_heads=2, max_block=3, max_letters=2))
def test_recurrences_keep_to_the_bounds(r):
    assert isinstance(r.tables, DenseTables)
    assert 1 <= len(r.tables.block_sizes) <= 2
    assert max(r.tables.block_sizes) <= 3
    assert r.alphabet in [("a",), ("a", "b")]
    assert len(r.transduce("aa")) == 2


@pytest.mark.parametrize("kind", ["a reset", "two heads", "a shared cell"])
def test_every_kind_of_recurrence_comes_up(kind):
    has = {
        "a reset": lambda r: bool(r.tables.v.any()),
        "two heads": lambda r: len(r.tables.block_sizes) == 2,
        "a shared cell": lambda r: len(r.tables.A) < len(r.alphabet),
    }[kind]
    assert len(find(recurrences(), has, settings=quiet).alphabet) == 1 + (kind == "a shared cell")
