"""W against its definition, computed over fractions by textbook elimination."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.families import closure
from fsa2lrnn.families.closure import obstruction, primitive
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.testing.strategies import machines


class Space:
    """A space of vectors of fractions, by rows with leading ones."""

    def __init__(self):
        self.rows = []

    def rest(self, vector):
        vector = [Fraction(int(x)) for x in vector]
        for pivot, row in self.rows:
            if vector[pivot]:
                vector = [x - vector[pivot] * y for x, y in zip(vector, row, strict=True)]
        return vector

    def add(self, vector):
        vector = self.rest(vector)
        pivot = next((i for i, x in enumerate(vector) if x), None)
        if pivot is None:
            return False
        self.rows.append((pivot, [x / vector[pivot] for x in vector]))
        return True


def matrices(delta):
    """M_a, with column q the unit vector of δ(q, a)."""
    n = delta.shape[1]
    found = []
    for row in delta:
        M = np.zeros((n, n), dtype=object)
        M[row, np.arange(n)] = 1
        found.append(M)
    return found


def order_of_cycles(row):
    n, lengths = len(row), []
    for q in range(n):
        p, k = row[q], 1
        while p != q and k <= n:
            p, k = row[p], k + 1
        lengths += [k] if p == q else []
    return math.lcm(*lengths)


def by_definition(family, delta):
    """W by the table of docs/theory.md §4."""
    M, n = matrices(delta), delta.shape[1]
    generators = []
    for A, B in itertools.combinations(M, 2):
        generators.append(A - B if family.startswith("lti") else A @ B - B @ A)
    for A, row in zip(M, delta.tolist(), strict=True):
        powers = {"lti": 1, "diagonal[0,1]": 2, "diagonal[-1,1]": 3}
        generators.append(np.linalg.matrix_power(A, powers.get(family) or 1 + order_of_cycles(row)) - A)
    space, queue = Space(), []
    for G, s in itertools.product(generators, range(1, n)):
        queue.append(G[:, s] - G[:, 0])
    for vector in queue:
        if space.add(vector):
            queue += [A @ vector for A in M]
    return space


def check_against_definition(family, delta):
    found, space = obstruction(FORCED[family], delta), by_definition(family, delta)
    n = delta.shape[1]
    assert len(found.basis) == len(space.rows)
    assert not any(any(space.rest(vector)) for vector in found.basis)
    own = Space()
    assert all(own.add(vector) for vector in found.basis)
    assert len(found.functions) == n - len(found.basis)
    others = Space()
    assert all(others.add(function) for function in found.functions)
    assert not others.add([1] * n)
    assert not (found.functions @ found.basis.T.astype(object)).any()
    numbers, count = found.merged()
    assert count == len(set(numbers.tolist()))
    for p, q in itertools.combinations(range(n), 2):
        together = not any(space.rest([int(i == p) - int(i == q) for i in range(n)]))
        assert (numbers[p] == numbers[q]) == together


@given(machines(5, 3), st.sampled_from(list(FORCED)))
def test_the_obstruction_is_what_its_definition_says(machine, family):
    check_against_definition(family, machine.minimise().delta)


@pytest.mark.parametrize("source", ["even_pair(2)", "group(D4)", "shift_register(3)", "mod_arith(2)", "elevator(6)"])
@pytest.mark.parametrize("family", FORCED)
def test_the_obstruction_of_larger_machines(family, source):
    check_against_definition(family, zoo.from_task(source).minimise().delta)


@given(machines(6, 3), st.sampled_from(list(FORCED)))
def test_every_vector_comes_from_where_it_says(machine, family):
    delta = machine.minimise().delta
    M = matrices(delta)
    found = obstruction(FORCED[family], delta)
    for vector, origin in zip(found.basis, found.origins, strict=True):
        expected = np.zeros(delta.shape[1], dtype=object)
        for word, sign in zip(origin.words, (1, -1), strict=True):
            for state, other in ((origin.source, 1), (origin.target, -1)):
                image = np.zeros(delta.shape[1], dtype=object)
                image[state] = sign * other
                for a, repetitions in word:
                    image = np.linalg.matrix_power(M[a], repetitions) @ image
                expected = expected + image
        for a in origin.then:
            expected = M[a] @ expected
        assert vector.tolist() == expected.tolist()


def test_a_prime_that_loses_vectors_is_noticed(monkeypatch):
    swap = zoo.parity().delta  # (M² − M)(e_1 − e_0) = 2 (e_0 − e_1), which is zero modulo 2
    monkeypatch.setattr(closure, "_PRIMES", (2, 67_108_859))
    assert len(obstruction(FORCED["diagonal[0,1]"], swap).basis) == 1
    monkeypatch.setattr(closure, "_PRIMES", (2,))
    with pytest.raises(NotExact, match=r"too small modulo each of the primes \(2,\)"):
        obstruction(FORCED["diagonal[0,1]"], swap)


@given(st.lists(st.lists(st.integers(-12, 12), min_size=3, max_size=3), max_size=4))
def test_primitive_rows_point_the_same_way_and_have_no_common_divisor(rows):
    before = np.array(rows, dtype=object).reshape(len(rows), 3)
    for row, shrunk in zip(before.tolist(), primitive(before).tolist(), strict=True):
        divisor = math.gcd(*row)
        assert [divisor * x for x in shrunk] == row
        assert math.gcd(*shrunk) == (1 if divisor else 0)
