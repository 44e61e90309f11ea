"""What the families force: identities between words, the space they span, and four words that contradict them."""

import itertools
import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.families import Witness, closure, linear, represent
from fsa2lrnn.families.closure import obstruction
from fsa2lrnn.families.four_words import shortest_four_words
from fsa2lrnn.families.function_modules import functions_module, quotient, restricted, spin, words_of
from fsa2lrnn.families.householder import fewest_points, transpositions
from fsa2lrnn.families.identities import FORCED
from fsa2lrnn.families.permutation_groups import composition_factors, group_of, subgroups
from fsa2lrnn.testing.strategies import machines, permutation_machines

from .conftest import projective_line


def test_what_lies_outside_of_a_space_or_a_prime_field_is_refused():
    with pytest.raises(NotExact, match="a row lies outside of the space that must hold it"):
        linear.coordinates(fmpq_mat(1, 2, [0, 1]), fmpq_mat(1, 2, [1, 0]))
    half = linear.residues(fmpq_mat(1, 2, [fmpq(1, 2), -3]))
    assert (2 * half[0, 0] % linear.PRIME, half[0, 1]) == (1, linear.PRIME - 3)
    with pytest.raises(NotExact, match="divides a denominator"):
        linear.residues(fmpq_mat(1, 1, [fmpq(1, linear.PRIME)]))


def as_row(values):
    return fmpq_mat(1, len(values) - 1, [int(v - values[0]) for v in values[1:]])


@given(machines(6, 2).filter(lambda m: m.n_states > 1), st.data())
def test_what_a_function_generates_and_the_quotient_by_it(machine, data):
    n, module = machine.n_states, functions_module(machine.delta)
    f = as_row(np.array(data.draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n))))
    spun = spin(module, f)
    for word, row in zip(words_of(spun.path), spun.rows.tolist(), strict=True):
        assert (f * module.word(word)).tolist()[0] == row
    letters = restricted(module, spun.rows)
    assert letters is not None
    assert all(b * spun.rows == spun.rows * a for a, b in zip(module.letters, letters, strict=True))
    below = quotient(module, linear.row_space(spun.rows))
    assert not any((spun.rows * below.down).entries())
    assert below.lift * below.down == linear.identity(below.module.dimension)
    for a, b in zip(module.letters, below.module.letters, strict=True):
        assert a * below.down == below.down * b


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


@pytest.mark.parametrize(("permutations", "factors"), [
    ([[1, 2, 3, 4, 0], [1, 0, 2, 3, 4]], {"A5": 1, "Z2": 1}), (projective_line(7), {"PSL(2,7)": 1}),
    (zoo.group("Z60").delta, {"Z2": 2, "Z3": 1, "Z5": 1}), ([[1, 2, 3, 4, 0, 5], [0, 1, 2, 4, 5, 3]], {"A6": 1}),
    (projective_line(11), {"simple of order 660": 1}),
])  # fmt: skip
def test_composition_factors(permutations, factors):
    found, elements = group_of(np.array(permutations))
    assert found.order == len(elements)
    assert composition_factors(found) == factors
    assert group_of(np.array(permutations), found.order - 1) is None


def assert_moved(points, permutations):
    assert points.tells_all_apart
    for row, moves in zip(permutations, points.moves, strict=True):
        assert sorted(moves) == list(range(len(moves)))
        assert np.array_equal(points.vectors[row][:, moves], points.vectors)


@pytest.mark.slow
@given(permutation_machines(max_states=6))
def test_vectors_move_as_states_do(machine):
    points = fewest_points(machine.delta, False)
    assert points is None or len(points.vectors) == machine.n_states
    if points is not None:
        assert_moved(points, machine.delta)
        assert points.factors.tolist() == [len(transpositions(moves)) for moves in points.moves]


LONGEST = 4  # of the words that brute force tries


def run(machine, q, word):
    for a in word:
        q = int(machine.delta[a, q])
    return q


def refutes(machine, form, prefix, u, other):
    """Whether the words are a certificate, by the definition."""
    agree = len(u) == len(other) if form.letters == "input-independent" else sorted(u) == sorted(other)
    s, q = machine.start, run(machine, machine.start, prefix)
    return agree and (run(machine, s, u) == run(machine, s, other)) != (run(machine, q, u) == run(machine, q, other))


def shortest(machine, form, longest=LONGEST):
    """(|u|, |p|) of the shortest certificate with words of at most `longest` letters, every pair of words tried."""
    letters = range(len(machine.alphabet))
    prefixes = {}
    for length in range(machine.n_states):
        for prefix in itertools.product(letters, repeat=length):
            prefixes.setdefault(run(machine, machine.start, prefix), prefix)
    for length in range(1, longest + 1):
        words = list(itertools.product(letters, repeat=length))
        found = [
            len(prefix)
            for prefix in prefixes.values()
            if any(refutes(machine, form, prefix, u, other) for u, other in itertools.combinations(words, 2))
        ]
        if found:
            return length, min(found)
    return None


@settings(max_examples=40)
@given(machines(4, 2), st.sampled_from(["lti", "diagonal[0,1]"]))
def test_the_words_satisfy_their_definition_and_none_are_shorter(machine, family):
    minimal, form = machine.minimise(), FORCED[family]
    words, least = shortest_four_words(form, minimal.delta, minimal.start), shortest(minimal, form)
    if words is None:
        assert least is None
        return
    assert refutes(minimal, form, words.prefix, words.u, words.other)
    ends = [run(minimal, minimal.start, word) for word in (words.u, words.other)]
    assert words.differ_at_start == (ends[0] != ends[1])
    assert (len(words.u), len(words.prefix)) == least or (least is None and len(words.u) > LONGEST)


@given(machines(5, 3), st.sampled_from(list(FORCED)))
def test_a_machine_with_a_witness_has_no_such_words(machine, family):
    if isinstance(represent(machine, family, short_words=False), Witness):
        minimal = machine.minimise()
        assert shortest_four_words(FORCED[family], minimal.delta, minimal.start) is None


@pytest.mark.parametrize(("source", "family", "words"), [
    ("subtraction(5)", "lti", ("0", "0", "1")),
    ("subtraction(5)", "diagonal[0,1]", ("-", "-0", "0-")),
    ("mod_arith(5)", "diagonal-complex", ("+", "0+", "+0")),
    ("even_pair(5)", "lti-diagonalisable", ("0", "1", "2")),
    ("ab_star", "diagonal[-1,1]", ("b", "ab", "ba")),
    ("flip_flop", "lti", ("s", "s", ".")),
    # No such words need exist where no layer represents a machine.
    ("parity", "lti", None),
    ("parity", "diagonal[0,1]", None),
    ("group(S3)", "lti", None),
    ("group(S3)", "diagonal-complex", None),
    ("shift_register(3)", "diagonal-complex", None),
])  # fmt: skip
def test_the_words_of_the_zoo(source, family, words):
    verdict = represent(zoo.from_task(source), family)
    if words is None:
        assert verdict.four_words is None
        assert "no four words were found" in verdict.explain()
    else:
        assert tuple("".join(word) for word in verdict.four_words) == words


@pytest.mark.parametrize(("family", "budget"), [("lti", "MAX_NODES"), ("diagonal[0,1]", "MAX_ENTRIES")])
def test_a_search_that_runs_out_of_budget_says_nothing(family, budget, monkeypatch):
    machine = zoo.mod_arith(5).minimise()
    assert shortest_four_words(FORCED[family], machine.delta, machine.start) is not None
    monkeypatch.setattr(import_module("fsa2lrnn.families.four_words"), budget, 10)
    assert shortest_four_words(FORCED[family], machine.delta, machine.start) is None


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


def test_a_prime_that_loses_vectors_is_noticed(monkeypatch):
    swap = zoo.parity().delta  # (M² − M)(e_1 − e_0) = 2 (e_0 − e_1), which is zero modulo 2
    monkeypatch.setattr(closure, "_PRIMES", (2, 67_108_859))
    assert len(obstruction(FORCED["diagonal[0,1]"], swap).basis) == 1
    monkeypatch.setattr(closure, "_PRIMES", (2,))
    with pytest.raises(NotExact, match=r"too small modulo each of the primes \(2,\)"):
        obstruction(FORCED["diagonal[0,1]"], swap)
