"""Index tables against the dense layer that they stand for."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn.layers.index import METHODS, IndexReadout, choose_method
from fsa2lrnn.testing.strategies import machines


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


@pytest.mark.parametrize("shape", [(0, 3), (1, 0), (2, 1), (8, 5), (11, 130), (2, 5_000)], ids=str)  # (B, T)
@pytest.mark.parametrize(("n_states", "n_maps"), [(1, 1), (1, 3), (6, 1), (5, 5), (400, 3)])
def test_every_method_is_as_sequential_on_odd_shapes(shape, n_states, n_maps):
    generator = torch.Generator().manual_seed(0)
    table = torch.randint(n_states, (n_maps, n_states), generator=generator)
    cells = torch.randint(n_maps, shape[::-1], generator=generator).T  # not contiguous
    starts = torch.randint(n_states, (), generator=generator).expand(shape[0])
    expected = METHODS["sequential"](table, cells, starts)
    for method in METHODS:
        assert torch.equal(METHODS[method](table, cells, starts), expected)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(
    ("n_states", "shape", "method"),
    [
        (8, (1, 1 << 20), "compose"),
        (8, (7, 1 << 20), "compose"),
        (8, (8, 1 << 20), "walk"),
        (9, (1, 1 << 20), "walk"),
        (8, (1, (1 << 20) - 1), "walk"),
        (8, (1_000, 1), "walk"),
    ],
)
def test_what_auto_chooses(n_states, shape, method):
    table, cells = torch.empty(5, n_states), torch.empty(1).expand(shape)
    assert choose_method(table, cells) == method
    assert choose_method(table, cells.to("meta")) == "sequential"
    torch.set_num_threads(1)
    assert choose_method(table, cells) == "walk"


@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads_compose_the_same_states(n_threads, monkeypatch):
    monkeypatch.setattr("fsa2lrnn.multi_step.LONG", 1_000)
    generator, before = torch.Generator().manual_seed(0), torch.get_num_threads()
    table, cells = torch.randint(5, (3, 5), generator=generator), torch.randint(3, (2, 3_001), generator=generator)
    starts = torch.tensor([0, 4])
    torch.set_num_threads(n_threads)
    try:
        assert torch.equal(METHODS["compose"](table, cells, starts), METHODS["sequential"](table, cells, starts))
    finally:
        torch.set_num_threads(before)


def test_logits_are_one_hot_in_the_output():
    readout = IndexReadout(3, 2)
    readout.output.copy_(torch.tensor([1, 0, 1]))
    states = torch.tensor([[0, 1], [2, 2]])
    assert readout(states).tolist() == [[[0, 1], [1, 0]], [[0, 1], [0, 1]]]
    assert torch.equal(readout.numbers(states), readout(states).argmax(-1))
    assert readout(torch.empty(2, 0, dtype=torch.int64)).shape == (2, 0, 2)


def compile_machine_of_two_states(dtype=torch.float32):
    from fsa2lrnn.automata import MooreMachine

    return compile_machine(MooreMachine([[1, 0]], [False, True]), layout="index", dtype=dtype)


def test_an_index_model_has_a_dtype_and_nothing_to_train():
    for dtype in (torch.float64, torch.bfloat16):
        model = compile_machine_of_two_states(dtype)
        assert model(torch.zeros(1, 1, dtype=torch.int64)).dtype == model.dtype == dtype
        assert not list(model.parameters())
    with pytest.raises(UnsupportedFormat, match="scan method 'fused' is not known"):
        model(torch.zeros(1, 1, dtype=torch.int64), "fused")
