"""Heads in numbers: letters as so many reflections, exactly as many as the ranks say."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.extra.block_size.families import head_tables, reflections
from fsa2lrnn.extra.block_size.householder import factor_bounds


def product_of(keys, b):
    total = np.eye(b)
    for k in keys:
        total = total - np.outer(k, k @ total)
    return total


@pytest.mark.parametrize("seed", range(6))
def test_orthogonal_matrices_are_as_many_reflections_as_their_rank_less_one_says(seed):
    """Of some that fix a space, in a basis of no pattern."""
    b, fixed = 3 + seed, seed // 2
    turn, basis = np.eye(b), ortho_group.rvs(b, random_state=seed)
    turn[fixed:, fixed:] = ortho_group.rvs(b - fixed, random_state=seed + 10)
    A = basis @ turn @ basis.T
    found = reflections(A)
    assert len(found) == np.linalg.matrix_rank(A - np.eye(b), tol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    np.testing.assert_allclose(product_of(np.sqrt(2) * found, b), A, atol=1e-10)


@pytest.mark.parametrize(
    "task",
    [
        *("group(S4)", "group(Q8)", "sum_mod(7)", "group(D5)", "resettable_counter(5)", "flip_flop"),
        *(pytest.param(task, marks=pytest.mark.slow) for task in ("group(A5)", "sum_mod(29)")),
    ],
)
def test_heads_follow_the_machine_with_the_factors_that_are_promised(task):
    machine = zoo.from_task(task).minimise()
    bounds = factor_bounds(machine)
    tables = head_tables(machine, bounds.heads, bounds.upper)
    n_letters, n_heads, m, b = tables.keys.shape
    assert (n_heads, m) == (len(bounds.heads), bounds.upper)
    for a, row in enumerate(machine.delta):
        for h in range(n_heads):
            A = product_of(tables.keys[a, h], b)
            assert np.linalg.norm(A, 2) < 1 + 1e-9
            moved = tables.vectors[:, h] @ A.T + tables.shifts[a, h]
            np.testing.assert_allclose(moved, tables.vectors[row, h], atol=1e-9)
    assert n_letters == len(machine.alphabet)
    points = tables.vectors.reshape(machine.n_states, -1)
    assert min(np.abs(points[q] - points[p]).max() for q in range(len(points)) for p in range(q)) > 1e-3


def test_too_few_factors_are_refused():
    machine = zoo.sum_mod(5)
    with pytest.raises(NotExact, match="a head of 2 dimensions takes 2 factors, not 1, after rounding"):
        head_tables(machine, factor_bounds(machine).heads, 1)
