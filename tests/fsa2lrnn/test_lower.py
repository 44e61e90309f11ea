"""From tables to weights."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.compile import compile_recurrence
from fsa2lrnn.errors import NotExpressible, UnsupportedFormat
from fsa2lrnn.lower import DTYPES, compile_machine
from fsa2lrnn.lrnn.normalise import released_scale
from verify.strategies import machines, words


@given(machines(), st.sampled_from(DTYPES), st.sampled_from(["sequential", "pscan"]), st.data())
def test_the_network_transduces_as_the_machine_does(machine, dtype, method, data):
    word = data.draw(words(machine))
    assert compile_machine(machine, dtype=dtype).transduce(word, method) == machine.transduce(word)


@given(machines(), st.sampled_from(DTYPES), st.sampled_from([1, 1.2, 2, 3.7]))
def test_the_tables_that_the_gates_compute_are_the_exact_ones(machine, dtype, p):
    recurrence = compile_recurrence(machine)
    model = compile_machine(machine, dtype=dtype, p=p)
    with torch.no_grad():
        A, v = model.layers[0].tables(model.embedding(torch.arange(len(machine.alphabet))))
    assert torch.equal(A, torch.tensor(recurrence.layer.A[recurrence.layer.cell]).to(dtype))
    assert torch.equal(v, torch.tensor(recurrence.layer.v[recurrence.layer.cell]).to(dtype))
    assert torch.equal(model.layers[0].x0, torch.tensor(recurrence.layer.x0).to(dtype))


@given(machines(), st.data())
def test_logits_are_one_hot(machine, data):
    word = data.draw(words(machine))
    model = compile_machine(machine)
    logits = model(torch.tensor([[machine.alphabet.index(letter) for letter in word]], dtype=torch.int64))
    assert ((logits == 0) | (logits == 1)).all()
    assert (logits.sum(-1) == 1).all()


def test_the_users_bill():
    model = compile_machine(zoo.group("Z5xZ4xZ3"))
    assert (model.layers[0].block_sizes, model.layers[0].n_heads) == ((5, 4, 3), 3)


@pytest.mark.parametrize(("machine", "scale"), [(zoo.sum_mod(5), "0.7812"), (zoo.parity(), "1.1225")])
def test_the_released_rule_is_refused_with_the_numbers(machine, scale):
    assert f"{released_scale(machine.n_states, 1.2):.4f}" == scale
    with pytest.raises(
        NotExpressible, match=rf"at block size {machine.n_states} a permutation is scaled by {scale} a step"
    ):
        compile_machine(machine, normalisation="released")


def test_the_released_rule_has_no_blocks_of_size_one():
    with pytest.raises(NotExpressible, match="centres a block of size 1 to 0 and divides 0 by 0"):
        compile_machine(MooreMachine([[0]], [True]), normalisation="released")


def test_the_released_rule_would_indeed_break_the_model():
    """The refusal is no formality: with one-hot tables under the released rule, Sum(5) fades."""
    model = compile_machine(zoo.sum_mod(5), normalisation="none")
    model.layers[0].rule = "released"
    x, _ = model.layers[0](model.embedding(torch.ones(1, 50, dtype=torch.int64)), model.layers[0].initial_state(1))
    assert x[0, -1].abs().max() < 1e-4


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn])
def test_other_dtypes_are_not_offered(dtype):
    with pytest.raises(UnsupportedFormat, match=r"is not offered: choose one of torch\.float64"):
        compile_machine(zoo.parity(), dtype=dtype)


def test_an_unknown_normalisation_is_named():
    with pytest.raises(UnsupportedFormat, match="normalisation 'batch' is not known"):
        compile_machine(zoo.parity(), normalisation="batch")
