"""Small groups by tables: subgroups, normal ones, quotients, composition factors."""

import numpy as np
import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.families.groups import composition_factors, group_of, subgroups

from .conftest import projective_line


def group(name):
    return group_of(zoo.group(name).delta)[0]


@pytest.mark.parametrize(
    ("name", "order", "n_normal", "n_all"),
    [("S3", 6, 3, 6), ("S4", 24, 4, 30), ("A4", 12, 3, 10), ("A5", 60, 2, 59), ("Q8", 8, 6, 6), ("D4", 8, 6, 10)],
)
def test_numbers_of_subgroups(name, order, n_normal, n_all):
    found = group(name)
    every = subgroups(found, 1_000)
    assert (found.order, len(every)) == (order, n_all)
    assert all(order % int(mask.sum()) == 0 for mask in every)
    assert len(normal_subgroups(found)) == n_normal
    assert subgroups(found, n_all - 1) is None


def normal_subgroups(found):
    every = subgroups(found, 1_000)
    return [mask for mask in every if all(_conjugate(found, mask, g) for g in range(found.order))]


def _conjugate(found, mask, g):
    members = np.flatnonzero(mask)
    return bool(mask[found.table[found.table[found.inverse[g], members], g]].all())


@pytest.mark.parametrize("name", ["S4", "Q8", "A4"])
def test_tables_and_quotients_are_groups(name):
    found = group(name)
    for part in (found, *(found.quotient(mask) for mask in normal_subgroups(found))):
        t = part.table
        assert np.array_equal(t[0], np.arange(part.order))
        assert np.array_equal(t[t], t[:, t])  # (g h) k = g (h k)
        assert not t[np.arange(part.order), part.inverse].any()


@pytest.mark.parametrize(
    ("permutations", "factors"),
    [
        ([[1, 2, 3, 4, 0], [1, 0, 2, 3, 4]], {"A5": 1, "Z2": 1}),
        (projective_line(7), {"PSL(2,7)": 1}),
        (zoo.group("Z60").delta, {"Z2": 2, "Z3": 1, "Z5": 1}),
    ],
)
def test_composition_factors(permutations, factors):
    found, elements = group_of(np.array(permutations))
    assert found.order == len(elements)
    assert composition_factors(found) == factors


def test_larger_simple_groups():
    found, _ = group_of(np.array([[1, 2, 3, 4, 0, 5], [0, 1, 2, 4, 5, 3]]))
    assert composition_factors(found) == {"A6": 1}
    found, _ = group_of(projective_line(11))
    assert composition_factors(found) == {"simple of order 660": 1}


def test_a_group_beyond_the_limit_is_not_listed():
    assert group_of(zoo.group("S5").delta, 100) is None
