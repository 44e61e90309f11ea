"""ModArith(5) as cascades, against Python's integers: every short expression, and long random ones, digit by digit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.studies.cascades import MODULUS, REFERENCES, check_digits, every_expression, values_along
from fsa2lrnn.automata import zoo
from fsa2lrnn.extra.report.demonstration.compiled import evaluate, random_expression
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.symbols import encode
from fsa2lrnn.testing import mutants

FORMS = [reference for reference in REFERENCES if reference.source.startswith("mod_arith")]


@pytest.fixture(scope="module", params=FORMS, ids=lambda r: f"{r.source}, token_shift={r.token_shift}")
def model(request):
    machine = zoo.from_task(request.param.source)
    return compile_machine(machine, "cascade", request.param.max_block, request.param.token_shift)


def test_the_forms_are_those_of_the_issue():
    with_shift, without, eager = FORMS
    assert (with_shift.source, with_shift.token_shift) == ("mod_arith(5, completion=register)", True)
    assert (without.source, without.token_shift, without.max_block) == (with_shift.source, False, 8)
    assert (eager.source, eager.token_shift) == ("mod_arith(5, completion=eager)", False)


def test_layers_stay_within_the_papers_shape(model):
    assert len(model.layers) <= 3
    for layer in model.layers:
        assert len(layer.block_sizes) <= 8
        assert max(layer.block_sizes) <= 5


def test_values_are_those_of_python():
    generator = np.random.default_rng(0)
    for _ in range(50):
        text = random_expression(20, MODULUS, generator)
        prefixes = [text[: k + 1] for k in range(0, len(text), 2)]
        assert values_along(text) == [evaluate(prefix) for prefix in prefixes] == [eval(prefix) for prefix in prefixes]


def test_every_expression_of_at_most_four_operands(model):
    texts = [text for n in range(1, 5) for text in every_expression(n)]
    assert len(set(texts)) == 18_080
    digits = 5 + 2 * 75 + 3 * 1_125 + 4 * 16_875
    assert check_digits(model, texts) == f"{digits:,} of {digits:,}"


def test_random_expressions_of_499_letters_at_every_digit(model):
    generator = np.random.default_rng(0)
    texts = [random_expression(250, MODULUS, generator) for _ in range(64)]
    assert {len(text) for text in texts} == {499}
    assert check_digits(model, texts) == "16,000 of 16,000"


def test_99_999_letters_in_a_stream(model):
    text = random_expression(50_000, MODULUS, np.random.default_rng(0))
    tokens = encode(text, model.alphabet)
    numbers = np.concatenate(list(model.stream(tokens[k : k + 9_999] for k in range(0, len(tokens), 9_999))))
    given = [model.outputs[j] for j in numbers[::2]]
    assert given == [value % MODULUS for value in values_along(text)]
    assert given[-1] == evaluate(text) % MODULUS


def test_a_wrong_digit_is_seen(model):
    with pytest.raises(SystemExit, match=r"a digit of \S+ is evaluated wrongly"):
        check_digits(mutants.swap_outputs(model, 0, 1), every_expression(3))


@given(st.integers(1, 30), st.integers(2, 7), st.integers(0, 10_000))
def test_expressions_have_the_value_that_python_gives_them(n_digits, modulus, seed):
    expression = random_expression(n_digits, modulus, np.random.default_rng(seed))
    assert len(expression) == 2 * n_digits - 1
    assert evaluate(expression) == eval(expression)
