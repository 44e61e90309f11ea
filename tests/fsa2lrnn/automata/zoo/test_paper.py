"""The paper's tasks against evaluators that know nothing of automata."""

import random
from itertools import product

import pytest

from fsa2lrnn import MooreMachine
from fsa2lrnn.automata import zoo
from fsa2lrnn.automata.language import equivalent
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, UnsupportedFormat

COMPLETIONS = ["sink", "ignore", "running", "operator", "eager", "register"]


def value(expression: list[str], M: int) -> int:
    """By schoolbook: products between the signs, then the signed sum, in Python's unbounded integers."""
    total, sign, term = 0, 1, int(expression[0])
    for operator, digit in zip(expression[1::2], expression[2::2], strict=True):
        if operator == "*":
            term *= int(digit)
        else:
            total += sign * term
            sign, term = (1 if operator == "+" else -1), int(digit)
    return (total + sign * term) % M


def random_expression(rng: random.Random, M: int, operands: int, operators: str = "+-*") -> list[str]:
    expression = [str(rng.randrange(M))]
    for _ in range(operands - 1):
        expression += [rng.choice(operators), str(rng.randrange(M))]
    return expression


def test_the_evaluator_agrees_with_python():
    rng = random.Random(0)
    for _ in range(300):
        expression = random_expression(rng, 7, rng.randint(1, 12))
        assert value(expression, 7) == eval("".join(expression)) % 7


@pytest.mark.parametrize("M", range(2, 8))
@pytest.mark.parametrize("completion", COMPLETIONS)
def test_mod_arith_on_every_expression_of_up_to_three_operands(M, completion):
    m = zoo.mod_arith(M, completion)
    for operands in (1, 2, 3):
        for ds in product(map(str, range(M)), repeat=operands):
            for ops in product("+-*", repeat=operands - 1):
                expression = [ds[0]]
                for operator, digit in zip(ops, ds[1:], strict=True):
                    expression += [operator, digit]
                assert m.outputs[m.run(expression)] == value(expression, M), expression


@pytest.mark.parametrize("M", range(2, 8))
@pytest.mark.parametrize("completion", COMPLETIONS)
def test_mod_arith_on_long_expressions_at_every_digit(M, completion):
    m, rng = zoo.mod_arith(M, completion), random.Random(M)
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


def test_mod_arith_5_has_the_sizes_of_the_table():
    assert [zoo.mod_arith(5, c).minimise().n_states for c in COMPLETIONS] == [51, 50, 61, 75, 75, 25]


def test_the_completions_beyond_legal_expressions():
    beyond = {c: zoo.mod_arith(5, c).transduce("3++4*-22") for c in COMPLETIONS}
    assert beyond["sink"] == [3, None] + 6 * ["error"]
    assert beyond["ignore"] == [3, None, None, 2, None, None, 1, 1]  # 3+4*2
    assert beyond["running"] == [3, 3] + 6 * ["error"]
    assert beyond["operator"] == [3, 3, 3, 2, 2, 2, 0, 3]  # 3 + 4 − 2 − 2
    assert beyond["eager"] == [3, 1, 4, 0, 0, 4, 3, 3]  # s + t: 0+3, 3+3, 6+3, 6+4, 6+4, 10+4, 10−2, 10−2
    assert beyond["register"] == [3, 4, 0, 3, 3, 2, 1, 4]


def test_outputs_of_the_empty_word():
    starts = [zoo.mod_arith(5, c).outputs[0] for c in COMPLETIONS]
    assert starts == [None, None, 0, 0, 0, 1]
    assert [zoo.sum_mod(5).outputs[0], zoo.even_pair(5).outputs[0], zoo.subtraction(5).outputs[0]] == [0, 0, None]


def test_mod_arith_reads_typographic_signs():
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


def test_the_examples_of_the_paper():
    assert zoo.sum_mod(5).transduce("0324")[-1] == 4
    assert zoo.even_pair(5).transduce("0320")[-1] == 1
    assert zoo.mod_arith(5).transduce("1+2-3×4")[-1] == 1


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


def test_subtraction_beyond_legal_chains():
    assert zoo.subtraction(5).transduce("11-1") == [1, "error", "error", "error"]
    assert zoo.subtraction(5).transduce("-") == ["error"]
    assert zoo.subtraction(5, "ignore").transduce("11--2") == [1, 1, None, None, 4]


def test_subtraction_is_mod_arith_without_its_other_operators():
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


def test_the_messages_name_value_invariant_and_remedy():
    with pytest.raises(InvalidMachine) as bad:
        zoo.sum_mod(0)
    assert str(bad.value) == "sum_mod(M=0): M must be a whole number of at least 2 (modulo 1 every sum is 0)"
    with pytest.raises(UnsupportedFormat) as unknown:
        zoo.mod_arith(5, "bin")
    assert str(unknown.value) == (
        "mod_arith(completion='bin'): completion must be one of sink, ignore, running, operator, eager, register"
    )
    with pytest.raises(BudgetExceeded) as large:
        zoo.sum_mod(5_000)
    assert str(large.value) == (
        "sum_mod(5000) has about 5e+03 states and 5,000 letters, above the limit of 250,000 transitions: "
        "choose smaller parameters, or give MooreMachine a table of your own"
    )
