"""Group machines against the group axioms, textbook relations, and permutations composed by hand."""

import math
import random
from itertools import product

import pytest

from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat

ORDERS = {
    "Z2": 2,
    "Z5": 5,
    "S2": 2,
    "S3": 6,
    "S4": 24,
    "A3": 3,
    "A4": 12,
    "A5": 60,
    "D2": 4,
    "D4": 8,
    "D5": 10,
    "Q8": 8,
    "Z2xZ3xS3": 36,
    "Z4xQ8": 32,
    "A4×Z2": 24,
}


@pytest.mark.parametrize("spec", ORDERS)
def test_a_group_has_a_state_an_element(spec):
    m = zoo.group(spec)
    assert m.n_states == m.minimise().n_states == ORDERS[spec]
    assert m.outputs == m.labels
    assert len(set(m.outputs)) == m.n_states


@pytest.mark.parametrize("spec", ORDERS)
def test_the_letters_generate_a_regular_permutation_group(spec):
    """Right multiplications: permutations, closed under composition, only the identity with a fixed point."""
    m = zoo.group(spec, generators="all")
    rows = m.delta.tolist()
    assert all(sorted(row) == list(range(m.n_states)) for row in rows)
    assert sum(row == list(range(m.n_states)) for row in rows) == 1
    assert all(row[q] != q for row in rows for q in range(m.n_states) if row != list(range(m.n_states)))
    assert len(set(map(tuple, rows))) == ORDERS[spec]
    assert {tuple(q[image] for image in p) for p in rows for q in rows} == set(map(tuple, rows))


@pytest.mark.parametrize("spec", ORDERS)
def test_the_product_is_associative_and_letters_are_elements(spec):
    m, rng = zoo.group(spec, generators="all"), random.Random(1)
    text = dict(zip(m.outputs, m.alphabet, strict=True))  # letters come in the order of the states

    def times(a, b):
        return m.outputs[m.run([text[a], text[b]])]

    for _ in range(200):
        a, b, c = rng.choices(m.outputs, k=3)
        assert times(times(a, b), c) == times(a, times(b, c)) == m.outputs[m.run([text[a], text[b], text[c]])]


@pytest.mark.parametrize("spec", ["S3", "A4", "D4", "Q8", "Z4", "Z2xS3"])
def test_standard_generators_are_among_all(spec):
    small, large = zoo.group(spec), zoo.group(spec, generators="all")
    for word in product(small.alphabet, repeat=4):
        assert small.outputs[small.run(word)] == large.outputs[large.run(word)]


def test_cyclic_groups_are_sums():
    assert equivalent(zoo.group("Z7", generators="all"), zoo.sum_mod(7)) is None


def test_permutations_multiply_left_to_right():
    m = zoo.group("S3", generators="all")
    assert m.outputs[m.run(["(1,2)", "(2,3)"])] == "(1,3,2)"
    assert m.outputs[m.run(["(2,3)", "(1,2)"])] == "(1,2,3)"
    assert set(m.outputs) == {"()", "(1,2)", "(1,3)", "(2,3)", "(1,2,3)", "(1,3,2)"}


def test_cycles_multiply_as_the_permutations_they_write():
    m = zoo.group("S4", generators="all")
    for word in product(m.alphabet, repeat=2):
        first, second = images(word[0]), images(word[1])
        assert images(str(m.outputs[m.run(word)])) == [second[image] for image in first]


def images(cycles: str, n: int = 4) -> list[int]:
    p = list(range(n))
    for cycle in cycles.strip("()").split(")("):
        points = [int(c) - 1 for c in cycle.split(",") if c]
        for a, b in zip(points, points[1:] + points[:1], strict=True):
            p[a] = b
    return p


def test_dihedral_relations():
    m = zoo.group("D5")
    for word in ["r r r r r", "s s", "r s r s", "s r s r"]:
        assert m.run(word) == m.start
    assert m.outputs[m.run("s r")] == "r4s"
    assert m.outputs[m.run("r s")] == "rs"


def test_quaternion_table():
    m = zoo.group("Q8", generators="all")
    table = {"i i": "-1", "j j": "-1", "k k": "-1", "i j": "k", "j k": "i", "k i": "j", "j i": "-k", "-i j": "-k"}
    assert {word: m.outputs[m.run(word)] for word in table} == table


def test_factors_of_a_product_are_visible():
    m = zoo.group("Z2xZ3xS3")
    assert m.alphabet == ("1|0|()", "0|1|()", "0|0|(1,2)", "0|0|(1,2,3)")
    assert m.labels[m.run("1|0|() 0|1|() 0|1|() 0|0|(1,2)")] == (1, 2, "(1,2)")
    assert m.labels[m.start] == (0, 0, "()")


@pytest.mark.parametrize("spec", ["", "Z", "X5", "z5", "Z5x", "Z5 x Z3", "Q16", "S-3", "5", "Z5xx", 5, None])
def test_unknown_groups_are_refused(spec):
    with pytest.raises(
        UnsupportedFormat, match=r"is not a group of the zoo: write Zn, Sn, An, Dn \(of order 2n\) or Q8"
    ):
        zoo.group(spec)


@pytest.mark.parametrize("spec", ["Z1", "Z0", "S1", "A2", "D1", "Z5xZ1"])
def test_trivial_groups_are_refused(spec):
    with pytest.raises(InvalidMachine, match=r"is trivial or not of its kind: .n needs n of at least [23]"):
        zoo.group(spec)


def test_large_groups_are_refused_at_once():
    with pytest.raises(BudgetExceeded, match=r"group\(S12\) has about 4.79e\+08 states and 2 letters"):
        zoo.group("S12")
    with pytest.raises(BudgetExceeded):
        zoo.group("S999999999")
    with pytest.raises(BudgetExceeded):
        zoo.group("x".join(["S5"] * 50))
    with pytest.raises(BudgetExceeded, match="5,040 letters"):
        zoo.group("S7", generators="all")
    assert math.factorial(7) == zoo.group("S7").n_states


def test_neighbours_exchanged_generate_a_symmetric_group():
    m = zoo.group("S4", generators="transpositions")
    assert m.alphabet == ("(1,2)", "(2,3)", "(3,4)")
    assert m.n_states == 24
    assert m.transduce(["(1,2)", "(2,3)"]) == zoo.group("S4", generators="all").transduce(["(1,2)", "(2,3)"])
    assert zoo.group("S2xS3", generators="transpositions").n_states == 12
    with pytest.raises(UnsupportedFormat, match="only symmetric groups are generated by those"):
        zoo.group("A4", generators="transpositions")


def test_generators_are_standard_or_all():
    with pytest.raises(UnsupportedFormat, match=r"group\(generators='some'\): generators must be one of standard, all"):
        zoo.group("Z5", generators="some")
