"""Weighted automata: values, operations, files, and bad input."""

import json
import re
import time
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn import MooreMachine, WeightedAutomaton, zoo
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, NotExact, UnsupportedFormat
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.weighted import compare
from fsa2lrnn.weighted.approximate import approximate
from fsa2lrnn.weighted.pautomac import read_model, read_solution, read_words

NUMBERS = st.fractions(-2, 2, max_denominator=3)
HALF = WeightedAutomaton("ab", ["1/2"], [[[1]], [[0.5]]], [1])
MODEL = """I: (state)
\t(0) 1.0
F: (state)
\t(1) 0.25
S: (state,symbol)
\t(0,0) 0.5
\t(0,1) 0.5
\t(1,0) 1.0
T: (state,symbol,state)
\t(0,0,1) 1.0
\t(0,1,0) 0.5
\t(0,1,1) 0.5
\t(1,0,0) 1.0
"""


@st.composite
def automata(draw, most=3, outputs=None):
    n = draw(st.integers(0, most))
    row = st.lists(NUMBERS, min_size=n, max_size=n)
    matrix = st.lists(row, min_size=n, max_size=n)
    final = draw(row) if outputs is None else [draw(row) for _ in outputs]
    return WeightedAutomaton("ab", draw(row), [draw(matrix), draw(matrix)], final, outputs)


def words(length):
    return ["".join(word) for k in range(length + 1) for word in product("ab", repeat=k)]


@given(automata(2), automata(2), NUMBERS)
def test_operations_act_on_the_values(f, g, number):
    for word in words(3):
        assert (f + g)(word) == f(word) + g(word)
        assert (f - g)(word) == f(word) - g(word)
        assert (f * g)(word) == f(word) * g(word)
        assert (number * f)(word) == (f * number)(word) == number * f(word)
        assert f.reversed()(word[::-1]) == f(word)


@given(automata(2, ("x", "y")), automata(2, ("y", "x")))
def test_outputs_are_functions_of_their_own(f, g):
    for word in words(2):
        assert f(word) == (f.output("x")(word), f.output("y")(word))
        assert (f * g)(word) == tuple(f.output(y)(word) * g.output(y)(word) for y in "xy")
        assert (f + g).output("x")(word) == f(word)[0] + g(word)[1]


@given(machines(4, 2))
def test_the_indicators_of_a_machine(machine):
    every, one = WeightedAutomaton.from_machine(machine), WeightedAutomaton.from_machine(machine, machine.outputs[0])
    for word in product(machine.alphabet, repeat=3):
        expected = machine.outputs[machine.run(word)]
        assert every(word) == tuple(int(output == expected) for output in every.outputs)
        assert one(word) == (expected == machine.outputs[0])
    with pytest.raises(InvalidMachine, match="is not one of the machine's"):
        WeightedAutomaton.from_machine(machine, "other")


def test_a_hidden_markov_model_gives_the_probabilities_of_prefixes():
    moves, emissions = np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([[1, 0], [0.5, 0.5]])
    w = WeightedAutomaton.from_hmm("ab", [0.5, 0.5], moves, emissions)
    x, expected = np.array([0.5, 0.5]), []
    for a in "abb":
        x = (x * emissions[:, "ab".index(a)]) @ moves
        expected.append(x.sum())
    assert [float(w("abb"[:k])) for k in (1, 2, 3)] == expected
    assert sum(w(word) for word in product("ab", repeat=4)) == 1


@given(automata(2), automata(2, (True, None)))
def test_json_gives_the_automaton_back(one, several):
    for w in (one, several):
        again = WeightedAutomaton.from_json(w.to_json())
        assert (again, hash(again)) == (w, hash(w))
        assert again != w + w or not w.n_states


def test_long_numbers_are_not_written():
    """What `to_json` writes is read back, so that numbers that operations made too long are refused."""
    long = WeightedAutomaton("a", [2**8_191], [[[Fraction(1, 3**5_000)]]], [1])
    assert WeightedAutomaton.from_json(long.to_json()) == long
    with pytest.raises(UnsupportedFormat, match="16,383 bits, and files hold up to 8,192"):
        (long * long).to_json()
    with pytest.raises(NotExact, match="beyond the largest float"):
        approximate(long, 1)
    verdict = compare(long, 2 * long)
    assert str(verdict.in_words()[-1][1]) == "a number of 8,192 bits and a number of 8,193 bits"


def test_it_is_printed_and_does_not_change():
    assert str(HALF) == (
        "WeightedAutomaton(1 state, 2 letters, 1 output)\ninitial  1/2\nfinal    1\n0 → 0  a: 1\n0 → 0  b: 1/2"
    )
    for change in (lambda: setattr(HALF, "alphabet", "ab"), lambda: HALF.initial.append(1)):
        with pytest.raises(AttributeError):
            change()
    assert HALF.transitions == (((1,),), ((Fraction(1, 2),),))


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("ab", [1], [[[1]]], [1]), "2 letters, but 1 transition matrices"),
        (("a", [1], [[[1, 2]]], [1]), r"transitions\[0\] does not have 1 × 1"),
        (("a", [1, 2], [[[1, 2], [3]]], [1, 1]), r"transitions\[0\] does not have 2 × 2"),
        (("a", [float("nan")], [[[1]]], [1]), r"initial\[0\]\[0\] = nan: a weight is a finite number"),
        (("a", [1], [[[float("inf")]]], [1]), "inf: a weight is a finite number"),
        (("a", [1], [[[1]]], [True]), "True of type bool: a weight is a whole number, a fraction"),
        (("a", [1], [[[1j]]], [1]), "1j of type complex: a weight is a whole number"),
        (("a", ["1e9"], [[[1]]], [1]), "'1e9' of type str: a weight is"),
        (("a", [1], [[[1]]], [2**20_000]), "more than 8,192 bits"),
        (("aa", [1], [[[1]], [[1]]], [1]), "letters and outputs must be distinct"),
        (("a", [1], [[[1]]], [[1], [1]], "xx"), "must be distinct"),
        (("a", [1], [[[1]]], [[1]], "xy"), "final does not have 2 × 1"),
        (([0, False], [1], [[[1]], [[1]]], [1]), "are equal in Python"),
        (("", [], [], []), "0 letters"),
        (([([],)], [1], [[[1]]], [1]), "is not hashable: use text"),
        (("a", [1], [[[1]]], [], ()), "no outputs: give at least one"),
        (("a", [1], [{1}], [1]), r"transitions\[0\] = \{1\}: give 1 lists of 1 numbers"),
        (("a", [Decimal(1)], [[[1]]], [1]), "of type Decimal: a weight is a whole number"),
    ],
)
def test_wrong_parts_are_named(arguments, fault):
    with pytest.raises(InvalidMachine, match=fault):
        WeightedAutomaton(*arguments)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"initial": ["1/2", "1/4"]}, "initial probabilities sum to 0.75, not to 1"),
        ({"final": ["1/4", "1/2"]}, "state 0 sum to 0.75, not to 1"),
        ({"initial": [2, -1]}, "-1 is negative"),
        ({"transitions": [[["1/2", "nan"], [0, "1/2"]]]}, "'nan' of type str: a weight is"),
    ],
)
def test_probabilities_that_are_none_are_named(change, fault):
    parts = {"alphabet": "a", "initial": [1, 0], "transitions": [[["1/2", 0], [0, "1/2"]]], "final": ["1/2", "1/2"]}
    assert WeightedAutomaton.from_probabilities(**parts)("aa") == Fraction(1, 8)
    with pytest.raises(InvalidMachine, match=fault):
        WeightedAutomaton.from_probabilities(**parts | change)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "not JSON"),
        ("[]", "not a weighted automaton"),
        ('{"format": "fsa2lrnn-weighted", "version": 2}', "not a weighted automaton"),
        ('{"format": "fsa2lrnn-weighted", "version": 1, "n_states": 1000000000}', "is missing or not known"),
        (json.dumps(json.loads(HALF.to_json()) | {"final": 10**9}), "are lists"),
        (json.dumps(json.loads(HALF.to_json()) | {"initial": [[[]]]}), "a weight is a whole number"),
        (json.dumps(json.loads(HALF.to_json()) | {"initial": ["9" * 4_301]}), "a weight is a whole number"),
        (HALF.to_json().replace('"1/2"', "NaN"), "NaN"),
    ],
)
def test_wrong_files_are_named(text, fault):
    with pytest.raises((UnsupportedFormat, InvalidMachine), match=fault):
        WeightedAutomaton.from_json(text)


def test_sizes_are_bounded_before_anything_is_made(tmp_path):
    large = MooreMachine(np.zeros((2, 2_000), int), [0] * 2_000)
    begun = time.process_time()
    for make in (
        lambda: WeightedAutomaton("a", [0] * 10**5, [[]], []),
        lambda: WeightedAutomaton.from_machine(large),
        lambda: counter(600) + counter(600),
        lambda: counter(50) * counter(50),
        lambda: read_model(written(tmp_path, MODEL.replace("(1) 0.25", "(999999999) 0.25"))),
    ):
        with pytest.raises(BudgetExceeded, match="states"):
            make()
    assert time.process_time() - begun < 5


def counter(n):
    return WeightedAutomaton.from_machine(zoo.remainder(n), 0)


def written(folder, text):
    path = folder / "1.pautomac_model.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_model_of_the_competition(tmp_path):
    w = read_model(written(tmp_path, MODEL))
    assert (w.n_states, w.alphabet) == (2, (0, 1))
    # 0 in state 0, then stop: ½ · ¼. 1 stays with ½ · ½ or goes with ½ · ½, and so on.
    assert w([0]) == Fraction(1, 8)
    assert w([1, 0]) == Fraction(1, 4) * Fraction(1, 8)
    assert w([1]) == Fraction(1, 16)
    # As the generator of the competition writes a hidden Markov model: moves for letters that a state does not write.
    more = (
        MODEL.replace("(state,symbol)\n", "(state,symbol) \n").replace("1.0\n", "1.00000000000\n") + "\t(1,1,0) 1.0\n"
    )
    assert read_model(written(tmp_path, more)) == w


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("(1,0) 1.0", "(1,0) 0.9", "the probabilities of state 1 sum to 0.925"),
        ("(1,0) 1.0", "(1,0) nan", "line 8: 'nan' is not a probability"),
        ("(1,0) 1.0", "(1,0) 1e9999", "is not a probability"),
        ("(1,0) 1.0", "(1) 1.0", r"line 8: '\(1\) 1.0' is not an entry of section S"),
        ("(1,0) 1.0", "(0,0) 0.5", "or stands twice"),
        ("T: (state,symbol,state)", "", "line 10.* is not an entry of section S"),
        ("F: (state)", "I: (state)", "or stands twice"),
        ("(1) 0.25", "", "lacks section F, or it is 0"),
        ("I: (state)", "", "not an entry of section I"),
        ("(1,0) 1.0", "(1,0) -1.0", "is not a probability"),
    ],
)
def test_faults_of_a_model_are_named(tmp_path, old, new, fault):
    with pytest.raises((UnsupportedFormat, InvalidMachine), match=fault):
        read_model(written(tmp_path, MODEL.replace(old, new, 1)))


def test_words_and_solutions_of_the_competition(tmp_path):
    path = written(tmp_path, "3 2\n2 0 1\n0\n1 1\n")
    assert read_words(path) == (2, [(0, 1), (), (1,)])
    assert read_solution(written(tmp_path, "2\n0.5\n1.0E-2\n")) == [Fraction(1, 2), Fraction(1, 100)]
    for text, fault in [
        ("", "has 0 words"), ("1\n0\n", "first the numbers"), ("1 2\n1 2\n", "a length and letters"),
        ("1 2\n2 0\n", "a length"), ("2 2\n1 0\n", "has 1 words"), ("1 2\n1 x\n", "'1 x': first the numbers"),
    ]:  # fmt: skip
        with pytest.raises(UnsupportedFormat, match=fault):
            read_words(written(tmp_path, text))
    with pytest.raises(UnsupportedFormat, match=re.escape("the number of the probabilities")):
        read_solution(written(tmp_path, "3\n0.5\n"))
