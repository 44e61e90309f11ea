"""What the families force: identities between words, the space they span, and four words that contradict them."""

import itertools
import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.families import closure, represent
from fsa2lrnn.families.channels import Affine
from fsa2lrnn.families.closure import obstruction, primitive
from fsa2lrnn.families.four_words import shortest_four_words
from fsa2lrnn.families.identities import FORCED, cycle_lengths, exponent, identities, power_of
from fsa2lrnn.families.verdicts import Witness
from fsa2lrnn.testing.strategies import machines

maps = st.integers(1, 8).flatmap(lambda n: st.lists(st.integers(0, n - 1), min_size=n, max_size=n)).map(np.array)


def iterate(step, k):
    image = np.arange(len(step))
    for _ in range(k):
        image = step[image]
    return image


@given(maps)
def test_cycle_lengths_are_those_of_returning_states(step):
    n = len(step)
    returns = {q: [k for k in range(1, n + 1) if iterate(step, k)[q] == q] for q in range(n)}
    assert cycle_lengths(step) == sorted({ks[0] for ks in returns.values() if ks})


@given(maps, st.integers(0, 40))
def test_a_power_is_the_map_so_many_times(step, k):
    assert power_of(step, k).tolist() == iterate(step, k).tolist()


@given(maps)
def test_the_power_of_a_cycle_leaves_what_is_on_cycles(step):
    k = exponent("complex", step)
    on_cycles = iterate(step, len(step))
    assert power_of(step, k)[on_cycles].tolist() == step[on_cycles].tolist()
    assert (exponent("[0,1]", step), exponent("[-1,1]", step)) == (2, 3)


@given(machines(5, 3), st.sampled_from(list(FORCED)))
def test_the_maps_of_an_identity_are_those_of_its_words(machine, family):
    for identity in identities(FORCED[family], machine.delta):
        for word, image in zip(identity.words, identity.maps, strict=True):
            letters = [a for a, repetitions in word for _ in range(repetitions)]
            for q in range(machine.n_states):
                expected = q
                for a in letters:
                    expected = machine.delta[a, expected]
                assert image[q] == expected


@given(machines(4, 3), st.sampled_from(list(FORCED)))
def test_the_words_have_equal_linear_parts_in_every_witness(machine, family):
    witness = represent(machine, family, short_words=False)
    if not isinstance(witness, Witness):
        return
    delta = witness.machine.delta
    for identity in identities(FORCED[family], delta):
        if isinstance(witness.form, Affine):
            lengths = [sum(repetitions for _, repetitions in word) for word in identity.words]
            assert lengths[0] == lengths[1]
            continue
        for channel in witness.form:
            parts = []
            for word in identity.words:
                used = [(channel.exponents[a], repetitions) for a, repetitions in word]
                vanishes = any(k is None for k, _ in used)
                parts.append(None if vanishes else sum(k * repetitions for k, repetitions in used) % channel.order)
            assert parts[0] == parts[1]


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


@pytest.mark.parametrize(
    ("source", "family", "words"),
    [
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
    ],
)
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
