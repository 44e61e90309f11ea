"""Products, chains and the search over them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.families.block_sizes.answers import head_tables, reflections
from fsa2lrnn.families.block_sizes.factor_bounds import factor_bounds
from fsa2lrnn.families.block_sizes.needs import needs
from fsa2lrnn.families.householder import paths, sink_keys, sink_of


@st.composite
def partial_permutations(draw):
    """A map of n states that is one to one but for those it sends to the last."""
    n = draw(st.integers(2, 7))
    image = draw(st.permutations(range(n - 1)))
    kept = draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))
    return np.array([*(q if keep else n - 1 for q, keep in zip(image, kept, strict=True)), n - 1])


@given(partial_permutations())
def test_keys_multiply_to_the_map_and_are_as_many_as_its_rank(row):
    n = len(row)
    wanted = np.zeros((n, n), int)
    for q in range(n - 1):
        if row[q] < n - 1:
            wanted[row[q], q] = 1
    A = np.eye(n, dtype=int)
    A[-1, -1] = 0
    found = sink_keys(row, n - 1)
    for key in found:
        k = np.array(key)
        A = (np.eye(n, dtype=int) - np.outer(k, k)) @ A
    assert np.array_equal(A, wanted)
    assert len(found) == np.linalg.matrix_rank((wanted - np.eye(n))[: n - 1, : n - 1])
    chains, cycles = paths(row, n - 1)
    assert len(found) == sum(map(len, chains)) + sum(len(cycle) - 1 for cycle in cycles)


def test_sinks_functions_and_too_few_factors():
    assert sink_of(zoo.dyck(2, 2).delta) is not None
    assert sink_of(zoo.sum_mod(3).delta) is None
    assert sink_of(zoo.cerny(4).delta) is None
    machine = zoo.sum_mod(5)
    with pytest.raises(NotExact, match="a head of 2 dimensions takes 2 factors, not 1, after rounding"):
        head_tables(machine, factor_bounds(machine).heads, 1)


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


@pytest.mark.parametrize("task", [
    *("group(S4)", "sum_mod(7)", "group(D5)", "resettable_counter(5)", "flip_flop"),
    *(pytest.param(task, marks=pytest.mark.slow) for task in ("group(A5)", "sum_mod(29)")),
])  # fmt: skip
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


@pytest.mark.parametrize(("task", "expected"), [
    ("group(S4)", {"real blocks": "3 (proved)", "rational blocks, exact in floats": "3 (proved)",
                   "Householder factors per letter": "2 (proved)",
                   "any number of layers": "2 over the reals, for Z2, Z3"}),
    ("dyck(2,2)", {"one-hot block": "8", "real blocks": "7 (proved), since smaller ones give states",
                   "any number of layers": "1 over the reals, as no word permutes states"}),
    ("cerny(5)", {"Householder factors per letter": "no number of them does (proved)",
                  "any number of layers": "2 over the reals, for Z2, Z3, Z5"}),
    ("even_pair(5)", {"real blocks": "3 (proved)",
                      "Householder factors per letter": "no number of them does (proved)"}),
])  # fmt: skip
def test_named_machines(task, expected):
    lines = dict(needs(zoo.from_task(task)).sentences())
    for question, answer in expected.items():
        assert lines[question].startswith(answer)


def test_budgets_that_are_spent_and_both_bounds_in_json():
    lines = dict(needs(zoo.random_dfa(300, 2, seed=0, minimal=True), budget=0).sentences())
    assert lines["real blocks"] == (
        "1 to 299 (both proved); 300 states are more than the 200 for which submodules are looked for"
    )
    found = json.loads(json.dumps(needs(zoo.cerny(4)).to_json()))
    assert found["real"] == {"lower": 3, "upper": 3, "note": ""}
    assert (found["householder"], found["one_hot"]) == ({"lower": None, "upper": None, "note": ""}, 4)
    assert found["any_depth"]["groups"] == ["Z2", "Z3"]
