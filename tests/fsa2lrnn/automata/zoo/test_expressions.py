"""Python's arithmetic, which judges the networks of ModArith, judged by Python itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata.zoo.paper import evaluate, random_expression


@given(st.integers(1, 30), st.integers(2, 7), st.integers(0, 10_000))
def test_expressions_have_the_value_that_python_gives_them(n_digits, modulus, seed):
    expression = random_expression(n_digits, modulus, np.random.default_rng(seed))
    assert len(expression) == 2 * n_digits - 1
    assert evaluate(expression) == eval(expression)


@pytest.mark.parametrize(("expression", "value"), [("7", 7), ("1+2-3*4", -9), ("2*3*4-0*9+1", 25)])
def test_examples(expression, value):
    assert evaluate(expression) == value
