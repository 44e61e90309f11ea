"""The demonstration's own arithmetic, which judges the network."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.cli import demo
from fsa2lrnn.cli.demo import by_fields, evaluate, random_expression
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.judge import Proved, Refuted


@given(st.integers(1, 30), st.integers(2, 7), st.integers(0, 10_000))
def test_expressions_have_the_value_that_python_gives_them(n_digits, modulus, seed):
    expression = random_expression(n_digits, modulus, np.random.default_rng(seed))
    assert len(expression) == 2 * n_digits - 1
    assert evaluate(expression) == eval(expression)


@pytest.mark.parametrize(("expression", "value"), [("7", 7), ("1+2-3*4", -9), ("2*3*4-0*9+1", 25)])
def test_examples(expression, value):
    assert evaluate(expression) == value


def test_the_three_rooms():
    rooms = demo.build_rooms()
    assert [component.name for component in rooms.cascade.components] == ["operator", "term", "accumulator"]
    assert rooms.cascade.block_sizes == ((1, 1), (5,), (5,))
    assert not rooms.model.config.token_shift
    assert list(rooms.verdicts) == ["float32", "bfloat16"]
    assert all(isinstance(verdict, Proved) for verdict in rooms.verdicts.values())
    assert rooms.given == 1


def test_labels_without_fields_have_no_rooms():
    with pytest.raises(NotExpressible, match="have no fields that stand in layers"):
        by_fields(zoo.parity())


def test_a_proof_of_the_rooms_that_fails_exits_with_one(monkeypatch, capsys):
    def prove(_model, machine):
        return Proved(1, 1, 1, "float32", ()) if machine.n_states == 51 else Refuted(("1",), (0,), (1,))

    monkeypatch.setattr(demo, "prove_equivalent", prove)
    with pytest.raises(SystemExit) as stop:
        demo.main(None, as_json=True)
    assert stop.value.code == 1
    assert json.loads(capsys.readouterr().out)["rooms"]["proofs"]["float32"]["verdict"] == "refuted"
