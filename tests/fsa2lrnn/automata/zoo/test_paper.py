"""The paper's tasks and Delétang et al.'s against Python's arithmetic and their definitions."""

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.automata.zoo.paper import evaluate
from fsa2lrnn.automata.zoo.paper import random_expression as random_arithmetic
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat

COMPLETIONS = ["sink", "ignore", "running", "operator", "eager", "register"]


def value(expression: list[str], M: int) -> int:
    return eval("".join(expression)) % M


def random_expression(rng: random.Random, M: int, operands: int, operators: str = "+-*") -> list[str]:
    expression = [str(rng.randrange(M))]
    for _ in range(operands - 1):
        expression += [rng.choice(operators), str(rng.randrange(M))]
    return expression


@pytest.mark.parametrize("M", range(2, 8))
@pytest.mark.parametrize("completion", COMPLETIONS)
def test_mod_arith_on_every_short_expression_and_on_long_ones_at_every_digit(M, completion):
    m, rng = zoo.mod_arith(M, completion), random.Random(M)
    digits = [str(d) for d in range(M)]
    for operands in (1, 2, 3):
        for expression in product(*([digits, "+-*"] * operands)[:-1]):
            assert m.outputs[m.run(expression)] == value(expression, M), expression
    for operands in (10, 100, 150):
        expression = random_expression(rng, M, operands)
        expected = [value(expression[: k + 1], M) for k in range(0, len(expression), 2)]
        assert m.transduce("".join(expression))[::2] == expected


@pytest.mark.parametrize("M", range(2, 8))
def test_mod_arith_has_the_sizes_stated(M):
    sizes = {c: zoo.mod_arith(M, c).minimise().n_states for c in COMPLETIONS}
    square = M * M
    assert sizes == {
        "sink": 2 * square + 1,
        "ignore": 2 * square,
        "running": 2 * square + 2 * M + 1 if M > 2 else 11,
        "operator": 3 * square if M > 2 else 8,
        "eager": 3 * square if M > 2 else 8,
        "register": square,
    }


def test_what_mod_arith_does_beyond_legal_expressions_and_on_none():
    beyond = {c: zoo.mod_arith(5, c).transduce("3++4*-22") for c in COMPLETIONS}
    assert beyond["sink"] == [3, None] + 6 * ["error"]
    assert beyond["ignore"] == [3, None, None, 2, None, None, 1, 1]  # 3+4*2
    assert beyond["running"] == [3, 3] + 6 * ["error"]
    assert beyond["operator"] == [3, 3, 3, 2, 2, 2, 0, 3]  # 3 + 4 − 2 − 2
    assert beyond["eager"] == [3, 1, 4, 0, 0, 4, 3, 3]  # s + t: 0+3, 3+3, 6+3, 6+4, 6+4, 10+4, 10−2, 10−2
    assert beyond["register"] == [3, 4, 0, 3, 3, 2, 1, 4]
    starts = [zoo.mod_arith(5, c).outputs[0] for c in COMPLETIONS]
    assert starts == [None, None, 0, 0, 0, 1]
    assert [zoo.sum_mod(5).outputs[0], zoo.even_pair(5).outputs[0], zoo.subtraction(5).outputs[0]] == [0, 0, None]
    m = zoo.mod_arith(5)
    assert m.transduce("1+2−3×4") == m.transduce("1 + 2 - 3 * 4") == m.transduce("1+2–3·4")


def test_labels_say_what_the_states_stand_for():
    labels = {c: zoo.mod_arith(5, c).labels for c in COMPLETIONS}
    assert labels["sink"][0] == ("operator", 0, 1, None)
    assert ("digit", 3, 4, 2) in labels["sink"]
    assert labels["operator"][0] == ("+", 0, 0)
    assert labels["eager"][0]._fields == ("operator", "term", "accumulator")
    assert labels["register"][0] == (0, 1)


@pytest.mark.parametrize("M", [2, 3, 5, 12])
def test_sum_mod_sums(M):
    rng, m = random.Random(M), zoo.sum_mod(M)
    ds = [rng.randrange(M) for _ in range(200)]
    assert m.transduce(map(str, ds)) == [sum(ds[: k + 1]) % M for k in range(200)]
    assert m.minimise() == m
    assert m.labels == tuple(range(M))


@pytest.mark.parametrize("M", [2, 3, 5, 11])
def test_even_pair_compares_the_ends(M):
    rng, m = random.Random(M), zoo.even_pair(M)
    ds = [str(rng.randrange(M)) for _ in range(300)]
    assert m.transduce(ds) == [int(d == ds[0]) for d in ds]
    assert m.minimise().n_states == m.n_states == 2 * M + 1


@pytest.mark.parametrize("M", range(2, 8))
def test_subtraction_subtracts(M):
    rng = random.Random(M)
    for completion, size in [("sink", 2 * M + 2), ("ignore", 2 * M + 1)]:
        m = zoo.subtraction(M, completion)
        expression = random_expression(rng, M, 60, operators="-")
        assert m.transduce(expression)[::2] == [value(expression[: k + 1], M) for k in range(0, 119, 2)]
        assert set(m.transduce(expression)[1::2]) == {None}
        assert m.minimise().n_states == size - (M == 2)


def test_subtraction_beyond_legal_chains_and_as_part_of_mod_arith():
    assert zoo.subtraction(5).transduce("11-1") == [1, "error", "error", "error"]
    assert zoo.subtraction(5).transduce("-") == ["error"]
    assert zoo.subtraction(5, "ignore").transduce("11--2") == [1, 1, None, None, 4]
    both = zoo.mod_arith(5)
    kept = [both.alphabet.index(letter) for letter in zoo.subtraction(5).alphabet]
    restricted = MooreMachine(both.delta[kept], both.outputs, both.start, zoo.subtraction(5).alphabet)
    assert equivalent(restricted, zoo.subtraction(5)) is None


@pytest.mark.parametrize("completion", ["sink", "ignore"])
def test_subtraction_has_the_four_words_of_the_propositions(completion):
    m = zoo.subtraction(5, completion).minimise()
    assert m.run("0-1") != m.run("1-0")
    assert m.run("0-0-1") == m.run("0-1-0")


@pytest.mark.parametrize("task", ["sum_mod", "even_pair", "mod_arith", "subtraction"])
@pytest.mark.parametrize("M", [1, 0, -3, 2.0, "5", True, None])
def test_a_modulus_below_two_is_refused(task, M):
    with pytest.raises(InvalidMachine, match=rf"{task}\(M={M!r}\): M must be a whole number of at least 2 \("):
        getattr(zoo, task)(M)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: zoo.sum_mod(0), r"sum_mod\(M=0\): M must be a whole number of at least 2 \(modulo 1 every sum is 0\)"),
        (lambda: zoo.mod_arith(5, "bin"), "completion must be one of sink, ignore, running, operator, eager, register"),
        (
            lambda: zoo.sum_mod(5_000),
            r"sum_mod\(5000\) has about 5e\+03 states and 5,000 letters, above the limit of 250,",
        ),
        (lambda: zoo.cycle_navigation(1), r"cycle_navigation\(n=1\): n must be a whole number of at least 2"),
    ],
)
def test_the_messages_name_value_invariant_and_remedy(build, message):
    with pytest.raises((InvalidMachine, UnsupportedFormat, BudgetExceeded), match=message):
        build()


@given(st.integers(1, 30), st.integers(2, 7), st.integers(0, 10_000))
def test_expressions_have_the_value_that_python_gives_them(n_digits, modulus, seed):
    expression = random_arithmetic(n_digits, modulus, np.random.default_rng(seed))
    assert len(expression) == 2 * n_digits - 1
    assert evaluate(expression) == eval(expression)


def binary_words(letters: str, longest: int) -> list[str]:
    return ["".join(w) for n in range(longest + 1) for w in product(letters, repeat=n)]


def test_parity_and_even_pairs_by_counting():
    m = zoo.parity()
    assert all(m.accepts(w) == (w.count("1") % 2 == 1) for w in binary_words("01", 10))
    assert equivalent(m, zoo.sum_mod(2)) is None
    assert m.is_acceptor
    m = zoo.even_pairs()
    for w in binary_words("ab", 10):
        switches = sum(w[k : k + 2] in ("ab", "ba") for k in range(len(w)))
        assert m.accepts(w) == (switches % 2 == 0), w


def test_relations_of_the_tasks():
    ours = zoo.even_pair(2)
    renamed = MooreMachine(ours.delta, [bool(y) for y in ours.outputs], ours.start, "ab")
    assert equivalent(zoo.even_pairs(), renamed) == ()
    as_there = [True, *map(bool, ours.outputs[1:])]
    assert equivalent(zoo.even_pairs(), MooreMachine(ours.delta, as_there, ours.start, "ab")) is None
    whole = zoo.sum_mod(5)
    part = MooreMachine(whole.delta[[0, 1, 4]], whole.outputs, alphabet="0+-")
    assert equivalent(part, zoo.cycle_navigation()) is None


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_cycle_navigation_walks_round(n):
    m = zoo.cycle_navigation(n)
    for w in map("".join, product("0+-", repeat=7)):
        assert m.outputs[m.run(w)] == (w.count("+") - w.count("-")) % n
    assert m.n_states == m.minimise().n_states == n
