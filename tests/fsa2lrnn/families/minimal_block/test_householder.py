"""Bounds on Householder factors: named machines, and explicit factors for what is said to suffice."""

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.families import Rejected, recheck
from fsa2lrnn.families.minimal_block.householder import factor_bounds

from .conftest import KNOWN, machine_of


@pytest.mark.parametrize("source", KNOWN)
def test_named_machines(source):
    lower, upper = KNOWN[source][3]
    found = factor_bounds(zoo.from_task(source))
    assert (found.lower, found.upper) == (lower, upper)
    if found.impossible is not None:
        assert recheck(found.impossible).startswith("impossible: no layer of products of ")
    if found.heads:
        assert recheck(found.to_json()).startswith("representable: ")


def reflections(A, tolerance=1e-9):
    """Unit vectors whose reflections, the first applied first, make an orthogonal matrix: as many as rank(A − I)."""
    found = []
    while (moved := np.linalg.norm(A - np.eye(len(A)), axis=0)).max() > tolerance:
        x = np.eye(len(A))[moved.argmax()]
        k = (A @ x - x) / np.linalg.norm(A @ x - x)
        found.insert(0, k)
        A = A - 2 * np.outer(k, k @ A)
    return found[::-1]


@pytest.mark.parametrize(
    "task",
    [
        *("group(S4)", "group(Q8)", "sum_mod(7)", "group(D5)", "resettable_counter(5)"),
        *(pytest.param(task, marks=pytest.mark.slow) for task in ("group(A5)", "sum_mod(29)")),
    ],
)
def test_heads_have_the_factors_that_are_promised(task):
    """In the mean of an inner product over the group letters are orthogonal: products of so few reflections."""
    machine = zoo.from_task(task).minimise()
    bounds = factor_bounds(machine)
    assert bounds.heads
    for head in bounds.heads:
        _, matrices, _ = head.rounded()
        turning = [A for A, row in zip(matrices, machine.delta, strict=True) if len(np.unique(row)) > 1]
        group = {np.round(np.eye(head.real_size), 6).tobytes(): np.eye(head.real_size)}
        queue = list(group.values())
        for g in queue:
            for A in turning:
                key = (np.round(A @ g, 6) + 0.0).tobytes()
                if key not in group:
                    group[key] = A @ g
                    queue.append(A @ g)
        root = np.linalg.cholesky(sum(g.T @ g for g in queue) / len(queue)).T
        for A in matrices:
            inner = root @ A @ np.linalg.inv(root)
            if np.abs(A).max() < 1e-12:
                assert head.real_size <= bounds.upper
                continue
            np.testing.assert_allclose(inner @ inner.T, np.eye(head.real_size), atol=1e-9)
            found = reflections(inner)
            assert len(found) <= bounds.upper
            product = np.eye(head.real_size)
            for k in reversed(found):
                product = product - 2 * np.outer(k, k @ product)
            np.testing.assert_allclose(product, inner, atol=1e-8)


def test_transpositions_alone_need_one_factor():
    """S4 by its neighbours' exchanges, on 24 elements: each is a reflection of the cube's space."""
    generators = [[1, 0, 2, 3], [0, 2, 1, 3], [0, 1, 3, 2]]
    elements = [(0, 1, 2, 3)]
    for x in elements:
        for g in generators:
            y = tuple(x[g[i]] for i in range(4))
            if y not in elements:
                elements.append(y)
    delta = [[elements.index(tuple(x[g[i]] for i in range(4))) for x in elements] for g in generators]
    found = factor_bounds(machine_of(delta))
    assert (found.lower, found.upper) == (1, 1)


def test_a_bound_for_another_machine_is_refused():
    certificate = factor_bounds(zoo.group("Q8")).impossible
    other = factor_bounds(zoo.group("D4")).to_json()["machine"]
    with pytest.raises(Rejected):
        recheck({**certificate, "machine": other})


def test_more_states_than_the_search_takes():
    found = factor_bounds(zoo.random_dfa(300, 2, seed=0, minimal=True))
    assert (found.lower, found.upper) == (0, None)
    assert found.note.endswith("states are more than 200")
