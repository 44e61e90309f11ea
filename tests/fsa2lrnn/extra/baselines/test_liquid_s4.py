"""Liquid-S4: the recurrence by sequences and steps, and what is refused of the code released in its place."""

from dataclasses import replace

import pytest
import torch

from fsa2lrnn.errors import InvalidWord, UnsupportedFormat
from fsa2lrnn.extra.baselines.liquid_s4 import LiquidS4Config, LiquidS4Layer, _subsets
from fsa2lrnn.lrnn import LRNN, LRNNConfig, load, save

SMALL = LiquidS4Config(8, d_state=8)
RELEASED = ("polyb", "kb")


def test_the_recurrence_by_all_ways(sequences):
    sequences(SMALL, (1, 2, 39, 40))


def test_models_of_the_recurrence(model_of):
    model_of(SMALL, connection="full-residual", layer_norm=True)


@pytest.mark.parametrize("kernel", RELEASED)
def test_the_released_code_looks_ahead(kernel):
    torch.manual_seed(0)
    layer = LiquidS4Layer(8, replace(SMALL, kernel=kernel)).double()
    u = torch.randn(2, 40, 8, dtype=torch.float64)
    moved = u.clone()
    moved[:, -1] += 1
    start = layer.initial_state(2)
    assert not torch.allclose(layer(u, start)[0][:, 0], layer(moved, start)[0][:, 0], atol=1e-9)
    assert not layer.is_causal
    assert layer.family is None


def test_the_recurrence_does_not():
    layer = LiquidS4Layer(8, SMALL).double()
    u = torch.randn(2, 40, 8, dtype=torch.float64)
    moved = u.clone()
    moved[:, -1] += 1
    start = layer.initial_state(2)
    assert torch.equal(layer(u, start)[0][:, :-1], layer(moved, start)[0][:, :-1])
    assert layer.family == "liquid-s4"


@pytest.mark.parametrize("kernel", RELEASED)
def test_without_a_state_there_are_no_steps_and_no_pieces(kernel):
    layer, u = LiquidS4Layer(8, replace(SMALL, kernel=kernel)), torch.randn(2, 40, 8)
    wording = f"Liquid-S4 with kernel '{kernel}' is not causal: its outputs depend on later letters, so it "
    with pytest.raises(UnsupportedFormat, match=wording + "can't be run step by step; give whole words"):
        layer.step(u[:, 0], layer.initial_state(2))
    _, after = layer(u, layer.initial_state(2))
    with pytest.raises(UnsupportedFormat, match=wording + "can't read a word in pieces"):
        layer(u, after)
    with pytest.raises(InvalidWord, match="a word of 4 letters: Liquid-S4's released code needs as many products of 2"):
        layer(u[:, :4], layer.initial_state(2))


@pytest.mark.parametrize("kernel", RELEASED)
def test_frozen_constants_are_saved_with_the_model_and_do_not_learn(kernel, tmp_path):
    torch.manual_seed(0)
    config = LRNNConfig("abc", (0, 1), (replace(SMALL, kernel=kernel),), embedding_dim=8, connection="full-residual")
    model, tokens = LRNN(config), torch.randint(3, (2, 20))
    model(tokens).sum().backward()
    assert not [name for name, _ in model.named_parameters() if "frozen" in name]
    save(model, tmp_path / "model.safetensors")
    torch.manual_seed(1)
    assert torch.equal(load(tmp_path / "model.safetensors")(tokens), model(tokens))


def test_products_are_of_the_last_letters_that_have_enough_pairs():
    pairs = _subsets(40, 2, torch.device("cpu")).flip(0)
    assert pairs.shape == (40, 2)
    assert pairs[0].tolist() == [30, 36]
    assert pairs[-1].tolist() == [38, 39]
    assert int(pairs.min()) == 30


def test_misfits_are_refused():
    with pytest.raises(UnsupportedFormat, match="kernel 'polya' is not known: choose one of exact, polyb, kb"):
        replace(SMALL, kernel="polya")
    with pytest.raises(UnsupportedFormat, match="degree = 1: products have at least two factors"):
        replace(SMALL, degree=1)
    with pytest.raises(UnsupportedFormat, match="l_max = 40: Liquid-S4 has no limit to words; leave it None"):
        replace(SMALL, l_max=40)
