"""One layer of diagonal and Walsh–Hadamard SLiCE (T59), compared with layers in fractions and with brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.export.slice_and_dual import after_a_letter, has_register, is_diagonal, is_walsh_hadamard
from fsa2lrnn.testing.strategies import machines

REGISTER = np.array([[0, 0], [1, 1]])


def closed(kept, delta):
    """Return whether the largest space that letters preserve and some of these functions span separates the states."""
    while True:
        rank = np.linalg.matrix_rank(kept)
        inside = [all(np.linalg.matrix_rank(np.vstack([kept, g[step]])) == rank for step in delta) for g in kept]
        if all(inside):
            return len({tuple(column) for column in kept.T}) == delta.shape[1]
        kept = kept[np.array(inside)]


def grid(n):
    return np.array(list(itertools.product((-1, 0, 1), repeat=n)))


def is_multiple(g, delta):
    return np.linalg.matrix_rank(np.array([g[step] - g for step in delta])) <= 1


def is_eigenfunction(g, delta):
    return all(np.linalg.matrix_rank(np.array([g, g[step]])) <= 1 for step in delta)


@settings(max_examples=150, deadline=None)
@given(machines(max_states=4))
def test_decisions_are_those_of_all_functions_of_a_grid(machine):
    delta = after_a_letter(minimise(machine))
    candidates = grid(delta.shape[1])
    hadamard = is_walsh_hadamard(delta)
    if closed(np.array([g for g in candidates if is_multiple(g, delta)]), delta):
        assert hadamard is not False
    else:
        assert hadamard is not True
    assert is_diagonal(delta) == closed(np.array([g for g in candidates if is_eigenfunction(g, delta)]), delta)
    assert hadamard is not False or not is_diagonal(delta)


@settings(max_examples=100, deadline=None)
@given(machines(max_states=4))
def test_a_register_is_found_by_words(machine):
    delta = after_a_letter(minimise(machine))
    maps = {tuple(range(delta.shape[1]))}
    while len(longer := maps | {tuple(step[list(word)]) for word in maps for step in delta}) > len(maps):
        maps = longer
    pairs = itertools.permutations(range(delta.shape[1]), 2)
    assert has_register(delta) == any(
        any(e[p] == e[q] == p for e in maps) and any(f[p] == f[q] == q for f in maps) for p, q in pairs
    )


@pytest.mark.parametrize(("delta", "answer"), [
    (REGISTER, False),
    (np.array([[1, 0], [0, 0]]), False),  # an exchange and a reset
    (np.array([[0, 0], [0, 1]]), True),  # one letter acts
    (zoo.group("Z60").delta, True),
    (zoo.group("D5").delta, True),
    (zoo.group("Q8").delta, False),
    (minimise(zoo.from_task("sum_mod(5)")).delta, False),
    (minimise(zoo.from_task("sum_mod(2)")).delta, True),
])  # fmt: skip
def test_known_answers_of_walsh_hadamard(delta, answer):
    assert is_walsh_hadamard(delta) is answer


def test_the_start_counts_only_if_a_word_leads_back_to_it():
    machine = MooreMachine([[1, 0, 2], [2, 1, 0]], [0, 1, 2])
    assert after_a_letter(machine).shape == (2, 3)
    leaves = MooreMachine([[1, 1, 2], [2, 2, 1]], [0, 1, 2])
    assert after_a_letter(leaves).tolist() == [[0, 1], [1, 0]]
