"""Rows that repeat: numbered without a mistake, or not at all."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.automata import zoo
from fsa2lrnn.lower import DTYPES, compile_machine
from fsa2lrnn.lrnn import repeats
from fsa2lrnn.lrnn.scans import METHODS

LENGTH = 5_000  # letters, more than repeats._WORTH


def stream_of(n_rows, width, batch=2, length=LENGTH, dtype=torch.float32, seed=0):
    """Random places (B, T) of n random rows, most of them alike but for one column, as one-hot rows are."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.zeros(n_rows, width)
    rows[torch.arange(n_rows), torch.randint(width, (n_rows,), generator=generator)] = 1.0
    rows[:, 0] = torch.randint(3, (n_rows,), generator=generator)
    return rows.to(dtype)[torch.randint(n_rows, (batch, length), generator=generator)]


def numbered(stream):
    found = repeats.number(stream)
    assert found is not None
    return found


@given(st.integers(1, 40), st.integers(1, 9), st.sampled_from(DTYPES), st.integers(0, 2**32))
def test_each_place_has_the_number_of_its_row(n_rows, width, dtype, seed):
    stream = stream_of(n_rows, width, dtype=dtype, seed=seed)
    rows, index = numbered(stream)
    assert torch.equal(rows[index], stream)
    assert len(rows.unique(dim=0)) == len(rows) == int(index.max()) + 1
    assert index.shape == (2, LENGTH)


def test_rows_of_one_hash_are_told_apart_bit_by_bit(monkeypatch):
    values = torch.tensor([0.0, -0.0, float("nan"), 1.0])
    rows, index = numbered(values.repeat(LENGTH)[None, :, None])
    assert index[0, :8].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert rows.flatten().signbit().tolist() == values.signbit().tolist()
    monkeypatch.setattr(repeats, "_FACTORS", repeats._FACTORS * 0)
    stream = stream_of(30, 400)
    rows, index = numbered(stream)
    assert torch.equal(rows[index], stream)


def test_what_is_not_numbered_and_too_many_pairs(monkeypatch):
    stream = stream_of(10, 4, batch=1, length=repeats._WORTH)
    assert repeats.number(stream) is not None
    assert repeats.number(stream[:, 1:]) is None
    assert repeats.number(stream.clone().requires_grad_()) is None
    assert repeats.number(stream.to("meta")) is None
    assert repeats.number(torch.empty(0, LENGTH, 4)) is None
    many, before = numbered(stream_of(200, 50)), torch.zeros(2, 50)
    assert repeats.shifted(many, before) is None  # most of 200² pairs occur once
    few = numbered(stream_of(9, 5))
    assert len(few.rows) + 2 > 8
    monkeypatch.setattr(repeats, "_CODES", 63)
    assert repeats.shifted(few, before[:, :5]) is None


@pytest.mark.parametrize("n_rows", [625, 626])
def test_rows_must_occur_eight_times_on_average(n_rows):
    stream = torch.arange(LENGTH).remainder(n_rows).float()[None, :, None]
    assert (repeats.number(stream) is None) == (n_rows * 8 > LENGTH)


@pytest.mark.parametrize("batch", [1, 3])
def test_shifted_rows_are_those_beside_the_step_before(batch):
    stream, before = stream_of(9, 5, batch), torch.randn(batch, 5)
    found = repeats.shifted(numbered(stream), before)
    assert found is not None
    pairs, index = found
    earlier = torch.cat([before[:, None], stream[:, :-1]], dim=1)
    assert torch.equal(pairs[index], torch.cat([stream, earlier], dim=-1))
    assert len(pairs) == int(index.max()) + 1 == len(index.unique())


def step_by_step(_stream):
    """Stands for `repeats.number`: no row repeats."""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("token_shift", [False, True])
def test_numbering_changes_no_bit_of_a_compiled_cascade(dtype, token_shift, monkeypatch):
    model = compile_machine(zoo.mod_arith(5), form="cascade", token_shift=token_shift, dtype=dtype)
    tokens = torch.randint(len(model.alphabet), (5, 900), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        _, start = model.advance(tokens[:, :3], model.initial_state(5))
        found = {method: model.advance(tokens, start, method) for method in ("auto", *METHODS)}
        monkeypatch.setattr(repeats, "number", step_by_step)
        for method, (logits, after) in found.items():
            wanted, wanted_after = model.advance(tokens, start, method)
            assert torch.equal(logits, wanted)
            for layer, wanted_layer in zip(after, wanted_after, strict=True):
                assert torch.equal(layer.x, wanted_layer.x)
                if token_shift:
                    assert torch.equal(layer.u, wanted_layer.u)


@pytest.mark.parametrize("token_shift", [False, True])
def test_the_gates_of_deeper_layers_and_the_readout_run_once_an_input(token_shift):
    model = compile_machine(zoo.mod_arith(5), form="cascade", token_shift=token_shift)
    tokens, seen = torch.randint(8, (4, 2_000), generator=torch.Generator().manual_seed(0)), []
    for gate in (model.layers[1].transition, model.layers[1].value, model.readout):
        gate.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[:-1].numel()))
    model(tokens)
    assert seen == [8_000] * 3  # with gradients, each step's input has its own
    seen.clear()
    with torch.no_grad():
        model(tokens)
    assert max(seen) < 500


def test_above_frozen_layers_gradients_are_added_up(monkeypatch):
    """The stream asks for no gradient there, and the gates above it get theirs from every step."""
    gradients = []
    for patched in (False, True):
        if patched:
            monkeypatch.setattr(repeats, "number", step_by_step)
        model = compile_machine(zoo.mod_arith(5), form="cascade", dtype=torch.float64)
        model.requires_grad_(False)
        model.layers[1].requires_grad_(True)
        tokens = torch.randint(8, (3, 2_000), generator=torch.Generator().manual_seed(0))
        model(tokens).square().mean().backward()
        gradients.append([p.grad for p in model.layers[1].parameters()])
    for found, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
