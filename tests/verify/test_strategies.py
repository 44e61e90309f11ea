"""The strategies generate what they say and shrink to the simplest counterexample."""

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from verify.strategies import dfas, machines, permutation_machines, words

quiet = settings(max_examples=2_000, database=None, deadline=None, derandomize=True)


def permutes(machine: MooreMachine) -> bool:
    return all(sorted(row) == list(range(machine.n_states)) for row in machine.delta.tolist())


def turns(row: list[int]) -> bool:
    """Whether a letter moves some state round a cycle."""
    periodic = set(range(len(row)))
    for _ in row:
        periodic = {row[q] for q in periodic}
    return any(row[q] != q for q in periodic)


def test_the_smallest_machine_has_one_state_and_one_letter():
    assert find(machines(), lambda _: True, settings=quiet) == MooreMachine([[0]], [0], 0, "a")
    assert find(dfas(), lambda _: True, settings=quiet) == MooreMachine([[0]], [False], 0, "a")


def test_a_counterexample_to_all_dfas_are_aperiodic_has_two_states():
    found = find(dfas(), lambda m: any(turns(row) for row in m.delta.tolist()), settings=quiet)
    assert (found.n_states, len(found.alphabet), found.delta.tolist()) == (2, 1, [[1, 0]])


def test_a_counterexample_to_all_states_are_reachable_is_small():
    from fsa2lrnn.automata import trim

    found = find(machines(), lambda m: trim(m).n_states < m.n_states, settings=quiet)
    assert (found.n_states, found.delta.tolist()) == (2, [[0, 0]])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_every_number_of_states_comes_up(n):
    assert find(machines(max_states=5), lambda m: m.n_states == n, settings=quiet).n_states == n


@given(machines(max_states=4, max_letters=2, outputs="xy", alphabet=None))
def test_machines_keep_to_the_bounds(m):
    assert m.n_states <= 4
    assert m.alphabet in [("a",), ("a", "b")]
    assert set(m.outputs) <= {"x", "y"}


@given(machines(alphabet=(0, "+")))
def test_a_given_alphabet_is_used_whole(m):
    assert m.alphabet == (0, "+")


@given(dfas())
def test_dfas_are_acceptors(m):
    assert m.is_acceptor


@given(permutation_machines())
def test_permutation_machines_permute(m):
    assert permutes(m)


@given(st.data())
def test_words_are_words_of_the_machine(data):
    m = data.draw(machines())
    word = data.draw(words(m, max_size=5))
    assert len(word) <= 5
    assert len(m.transduce(word)) == len(word)


def test_words_shrink_to_the_empty_word():
    m = MooreMachine([[0], [0]], [0], alphabet="ab")
    assert find(words(m), lambda _: True, settings=quiet) == []
    assert find(words(m), lambda w: len(w) == 2, settings=quiet) == ["a", "a"]
