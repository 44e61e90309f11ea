"""Bounds on Householder factors: named machines, and explicit factors for what is said to suffice."""

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.block_size.householder import factor_bounds
from fsa2lrnn.families import RejectedCertificate, recheck

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
    with pytest.raises(RejectedCertificate):
        recheck({**certificate, "machine": other})


def test_more_states_than_the_search_takes():
    found = factor_bounds(zoo.random_dfa(300, 2, seed=0, minimal=True))
    assert (found.lower, found.upper) == (1, None)
    assert found.note.endswith("states are more than the 200 for which submodules are looked for")
