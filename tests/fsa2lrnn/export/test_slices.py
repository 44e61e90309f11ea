"""One layer of diagonal and Walsh–Hadamard SLiCE (T59), compared with layers in fractions and with brute force."""

import itertools
from fractions import Fraction

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


@pytest.mark.parametrize(
    ("delta", "answer"),
    [
        (REGISTER, False),
        (np.array([[1, 0], [0, 0]]), False),  # an exchange and a reset
        (np.array([[0, 0], [0, 1]]), True),  # one letter acts
        (zoo.group("Z60").delta, True),
        (zoo.group("D5").delta, True),
        (zoo.group("Q8").delta, False),
        (minimise(zoo.from_task("sum_mod(5)")).delta, False),
        (minimise(zoo.from_task("sum_mod(2)")).delta, True),
    ],
)
def test_known_answers_of_walsh_hadamard(delta, answer):
    assert is_walsh_hadamard(delta) is answer


def test_the_start_counts_only_if_a_word_leads_back_to_it():
    machine = MooreMachine([[1, 0, 2], [2, 1, 0]], [0, 1, 2])
    assert after_a_letter(machine).shape == (2, 3)
    leaves = MooreMachine([[1, 1, 2], [2, 2, 1]], [0, 1, 2])
    assert after_a_letter(leaves).tolist() == [[0, 1], [1, 0]]


def indices_of(S):
    """Return distinct vectors over two elements (k, m) whose scalar products are 1 where S is −1."""
    k = len(S)
    pairs = [(i, j) for i in range(k) for j in range(i) if S[i, j] < 0]
    of_pairs = np.array([[int(i in pair) for pair in pairs] for i in range(k)]).reshape(k, len(pairs))
    odd = (of_pairs.sum(axis=1) + (np.diag(S) < 0)) % 2
    return np.hstack([of_pairs, np.diag(odd), np.eye(k, dtype=int), np.eye(k, dtype=int)])


def walsh_hadamard_layer(delta, functions, images):
    """Return S, a principal submatrix of H times a number, and d_a and g at its indices, by T59's proof.

    `images[i]` are the coefficients of f_i in the functions g_i.
    """
    k = len(functions)
    elements = [(j, 1) for j in range(k)]
    elements += sorted({(j, c) for row in images for j, c in enumerate(row) if c not in (0, 1)})
    nodes = [(copy, e, s) for copy in range(3) for e in range(len(elements)) for s in (1, -1)]

    def takes(one, other):
        (copy, e, _), (next_copy, e2, _) = one, other
        j, c = elements[e2]
        return next_copy == (copy + 1) % 3 and images[elements[e][0]][j] == c

    S = np.array([[s[2] if takes(s, t) else t[2] if takes(t, s) else s[2] * t[2] for t in nodes] for s in nodes])
    assert (S == S.T).all()
    assert (indices_of(S) @ indices_of(S).T % 2 == (S < 0)).all()
    g = np.array([elements[e][1] * functions[elements[e][0]] for _, e, _ in nodes])  # twice those of the proof
    f = np.array([images[elements[e][0]] @ functions for _, e, _ in nodes])
    d = []
    for step in delta:
        moved = g[:, step] - g
        factors = [
            next((Fraction(int(m), int(x)) for m, x in zip(a, b, strict=True) if x), Fraction(0))
            for a, b in zip(moved, f, strict=True)
        ]
        assert all((a == factor * b).all() for a, b, factor in zip(moved, f, factors, strict=True))
        # (g∘δ_a − g)/2 = factor f/2 = (s factor / 2)(S g/2)
        d.append(np.array([s * factor for (_, _, s), factor in zip(nodes, factors, strict=True)]))
    return S, d, g


@pytest.mark.parametrize(
    ("delta", "functions", "images"),
    [
        # S3 by (0 1) and (1 2) on three points: g_i = [q ≤ i].
        ([[1, 0, 2], [0, 2, 1]], [[1, 0, 0], [1, 1, 0], [1, 1, 1]], [[-2, 1, 0], [1, -2, 1], [0, 0, 0]]),
        # Z3 by one letter.
        ([[1, 2, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[-1, 0, 1], [1, -1, 0], [0, 1, -1]]),
    ],
)
def test_layers_of_the_proof_run_their_machine(delta, functions, images):
    delta, functions, images = np.array(delta), np.array(functions), np.array(images)
    S, d, g = walsh_hadamard_layer(delta, functions, images)
    y = S @ g  # y = H g at the indices of S; at the others d is 0
    for step, d_a in zip(delta, d, strict=True):
        after = y + S @ np.array([[x * int(v) / 2 for v in row] for x, row in zip(d_a, y, strict=True)])
        assert (after == y[:, step]).all()
    assert len({tuple(column) for column in y.T}) == delta.shape[1]
