"""The largest prime that divides the order of a group in a machine, against the monoid element by element."""

import numpy as np
import pytest
from hypothesis import given

from fsa2lrnn.automata import zoo
from fsa2lrnn.decomposition import bound
from fsa2lrnn.decomposition.bound import Bound, prime_bound
from fsa2lrnn.decomposition.coordinates import assemble
from fsa2lrnn.decomposition.holonomy import holonomy
from fsa2lrnn.testing.strategies import aperiodic_machines, machines, permutation_machines


def orders(m):
    """The orders of the maximal subgroups of the minimal machine's monoid, with the sizes of their images.

    A map is in the group of an idempotent if it has its image and identifies the same states.
    """
    m = m.minimise()
    monoid = {tuple(range(m.n_states))}
    while more := {tuple(a[q] for q in f) for f in monoid for a in m.delta.tolist()} - monoid:
        monoid |= more
    idempotents = [e for e in monoid if all(e[q] == q for q in e)]
    return [
        (sum(set(f) == set(e) and len(set(zip(e, f, strict=True))) == len(set(e)) for f in monoid), len(set(e)))
        for e in idempotents
    ]


def largest_prime(number):
    return max((p for p in range(2, number + 1) if number % p == 0 and all(p % d for d in range(2, p))), default=1)


@given(machines(max_states=5, max_letters=2) | permutation_machines(max_states=6))
def test_the_largest_prime_of_all_groups_in_the_monoid(m):
    found, expected = prime_bound(m), orders(m)
    assert found.complete
    assert found.prime == max(largest_prime(order) for order, _ in expected)
    sizes = [size for order, size in expected if largest_prime(order) == found.prime > 1]
    assert found.image_size == max(sizes, default=1)


@given(aperiodic_machines())
def test_aperiodic_machines_are_not_bounded(m):
    found = prime_bound(m)
    assert (found.prime, found.image_size, found.complete) == (1, 1, True)
    assert found.says.startswith("no word moves states round a cycle, so resets suffice (by enumeration of the images")


@given(machines(max_states=6, max_letters=2))
def test_some_component_of_a_cascade_is_as_large_and_no_reset(m):
    m = m.minimise()
    prime = prime_bound(m).prime
    permuting = [c.n_states for c in assemble(m, holonomy(m.delta, m.start)).components if "permutation" in c.kind]
    assert max(permuting, default=1) >= prime


def test_groups_too_large_to_list():
    """Of order 12!, and C₂ ≀ S₅ on 10 points by generators of which the first do not make it all."""
    assert prime_bound(zoo.all_maps(12)).prime == 11
    swaps = np.array([[*range(2 * i), 2 * i + 1, 2 * i, *range(2 * i + 2, 10)] for i in range(5)], np.uint32)
    cycle = np.array([*range(2, 10), 0, 1], np.uint32)
    generators = np.concatenate([swaps, cycle[None]])
    assert bound._largest_prime_of_group(generators, cap=10) == 5
    assert bound._largest_prime_of_group(generators, cap=1_000) == 5
    assert bound._largest_prime_of_group(swaps, cap=10) == 2


@given(permutation_machines(max_states=6))
def test_by_sims_as_by_listing(m):
    permutations = m.delta.astype(np.uint32)
    assert bound._largest_prime_of_group(permutations, cap=1) == bound._largest_prime_of_group(permutations, cap=1_000)


def test_what_is_found_before_the_limit_is_a_bound_too():
    found = prime_bound(zoo.all_maps(6), max_sets=1)
    assert (found.prime, found.image_size, found.complete) == (5, 6, False)
    assert found.says.startswith("words permute 6 states, in a group whose order 5 divides, so in every cascade some")
    assert found.says.endswith("moves 5 states, if not more, round a cycle (capped at 1 sets of states)")
    assert Bound(1, 1, False, "capped at 1 sets of states").says == "no bound found (capped at 1 sets of states)"


BOUNDS = {
    (1, 1): "even_pair(5) dyck(2,3) flip_flop tomita(1) tomita(2) tomita(4) tomita(7)",
    (2, 2): "parity",
    (2, 4): "tomita(3) tomita(5)",
    (3, 3): "tomita(6)",
    (5, 5): "sum_mod(5)",
    (5, 6): "mod_arith(5) all_maps(6)",
    (5, 60): "group(A5) group(Z60)",
    (5, 120): "group(S5)",
    (97, 97): "sum_mod(97)",
}


@pytest.mark.parametrize(("bounds", "sources"), BOUNDS.items())
def test_the_zoo(bounds, sources):
    for source in sources.split():
        found = prime_bound(zoo.from_task(source))
        assert (found.prime, found.image_size, found.complete) == (*bounds, True)
        assert found.says.endswith(" sets of states)")
