"""Index tables against the dense layer that they stand for."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn.index import METHODS
from verify.strategies import machines


@given(machines(max_states=9, max_letters=4), st.data())
def test_every_method_computes_what_the_dense_layer_computes(machine, data):
    length, batch = data.draw(st.integers(0, 20)), data.draw(st.integers(0, 3))
    letter = st.integers(0, len(machine.alphabet) - 1)
    words = [data.draw(st.lists(letter, min_size=length, max_size=length)) for _ in range(batch)]
    tokens = torch.tensor(words, dtype=torch.int64).reshape(batch, length)
    dense = compile_machine(machine, layout="dense")(tokens)
    index = compile_machine(machine, layout="index")
    for method in METHODS:
        assert torch.equal(index(tokens, method), dense)


def test_an_unknown_method_is_named():
    model = compile_machine_of_two_states()
    with pytest.raises(UnsupportedFormat, match="scan method 'fused' is not known"):
        model(torch.zeros(1, 1, dtype=torch.int64), "fused")


def test_there_is_nothing_to_train():
    assert not list(compile_machine_of_two_states().parameters())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_logits_have_the_dtype_asked_for(dtype):
    model = compile_machine_of_two_states(dtype)
    assert model(torch.zeros(1, 1, dtype=torch.int64)).dtype == model.dtype == dtype


def compile_machine_of_two_states(dtype=torch.float32):
    from fsa2lrnn.automata import MooreMachine

    return compile_machine(MooreMachine([[1, 0]], [False, True]), layout="index", dtype=dtype)
