"""A lower bound on the largest component of every cascade: the largest prime that divides the order of a group.

Let a prime p divide the order of a group of permutations that words induce on a set of states. Then p divides the order
of one of its composition factors, a simple group. In every cascade that implements the machine, the monoid of some
component has a subgroup of which this simple group is a quotient (Krohn & Rhodes 1965). That subgroup has an element of
order p, which moves p states round a cycle. So the component has at least p states and is not a reset.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np

from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid.elements import Images
from fsa2lrnn.automata.monoid.facts import Action
from fsa2lrnn.automata.monoid.subgroups import elements, generating_set
from fsa2lrnn.display import Brief

MAX_SETS = 100_000
_ENUMERATED = 10_000  # elements of a group, up to which listing them is faster than sympy's algorithm


@dataclass(frozen=True)
class Bound(Brief):
    """A lower bound on the largest component of every cascade of a machine.

    Args:
        prime: the largest prime found to divide the order of one of the machine's groups; 1 if those are trivial. In
            every cascade of the machine, some component permutes a cycle of that many states.
        image_size: the number of states of the minimal machine that this group permutes; 1 for a trivial group.
        complete: whether all groups were examined; if not, a larger prime may exist.
        method: the groups that were examined, or the limit that was reached.
    """

    prime: int
    image_size: int
    complete: bool
    method: str


def prime_bound(machine: MooreMachine, max_sets: int = MAX_SETS) -> Bound:
    """Return a lower bound on the largest component of every cascade: a prime that divides the order of a group.

    It is the largest one, over the groups of the permutations that words induce on image sets of the minimal machine.

    Args:
        machine: any machine; it is minimised first.
        max_sets: the largest number of image sets; the result is a valid bound in any case.

    >>> from fsa2lrnn.automata import zoo
    >>> prime_bound(zoo.sum_mod(5)).prime, prime_bound(zoo.group("S5")).prime, prime_bound(zoo.dyck(1, 3)).prime
    (5, 5, 1)
    """
    images = Images(Action.of(minimise(machine)), max_sets)
    prime, image_size = 1, 1
    for root in images.roots():
        size = len(images.members(root))
        # Roots come in decreasing size, and no permutation group of m points has an order divisible by a prime above m.
        if _largest_prime(factorial(size), size) <= prime:
            break
        permutations, _ = images.generators(root)
        candidate = _largest_prime_of_group(permutations, min(images.cap, _ENUMERATED))
        if candidate > prime:
            prime, image_size = candidate, size
    return Bound(prime, image_size, images.whole, images.method)


def _largest_prime_of_group(permutations: np.ndarray, cap: int) -> int:
    """Return the largest prime that divides the order of the group that permutations (m, n) generate, or 1."""
    n = permutations.shape[1]
    chosen = generating_set(permutations, cap)
    group = elements(permutations[chosen], cap)
    if group is not None:
        return _largest_prime(len(group), n)
    return _largest_prime(_order(permutations, chosen, _largest_prime(factorial(n), n)), n)


def _order(permutations: np.ndarray, chosen: list[int], enough: int) -> int:
    """Return the order of the group that permutations generate, or of a subgroup whose order `enough` divides.

    The algorithm of Schreier and Sims starts from the `chosen` permutations and adds those not yet generated.
    """
    # Slow to load, and rarely needed.
    from sympy.combinatorics import Permutation, PermutationGroup  # pyright: ignore[reportMissingTypeStubs]

    generators = [Permutation(permutations[i].tolist()) for i in chosen]
    group = PermutationGroup(generators)
    for row in permutations:
        if group.order() % enough == 0:
            break
        permutation = Permutation(row.tolist())
        if permutation not in group:
            generators.append(permutation)
            group = PermutationGroup(generators)
    return int(group.order())


def _largest_prime(number: int, most: int) -> int:
    """Return the largest prime that divides a number whose prime factors are at most `most`; 1 for 1.

    >>> _largest_prime(60, 60), _largest_prime(2**10, 20), _largest_prime(1, 4)
    (5, 2, 1)
    """
    largest, p = 1, 2
    while number > 1 and p <= most:
        while number % p == 0:
            largest, number = p, number // p
        p += 1
    return largest
