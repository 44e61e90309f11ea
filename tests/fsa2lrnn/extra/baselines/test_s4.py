"""S4: by sequences, by steps, in models; what its kernel is, test_official says."""

import pytest
import torch

from fsa2lrnn.extra.baselines.s4 import S4Config, S4Layer


@pytest.mark.parametrize("n_ssm", [1, None])
def test_all_ways_agree(sequences, n_ssm):
    sequences(S4Config(8, d_state=8, n_ssm=n_ssm))


def test_few_inputs_are_read_by_their_responses(on_letters):
    on_letters(S4Config(8, d_state=8))


def test_models(model_of):
    model_of(S4Config(8, d_state=8), connection="full-residual", layer_norm=True)


def test_a_longer_word_changes_nothing():
    layer = S4Layer(4, S4Config(4, d_state=8))
    u, start = torch.randn(2, 40, 4), layer.initial_state(2)
    before, weights = layer(u, start)[0], [weight.clone() for weight in layer.parameters()]
    layer(torch.randn(2, 500, 4), start)
    assert torch.equal(layer(u, start)[0], before)
    assert all(torch.equal(*pair) for pair in zip(layer.parameters(), weights, strict=True))


def test_it_is_in_the_family_of_input_independent_layers():
    layer = S4Layer(4, S4Config(4, d_state=8))
    assert layer.family == "lti"
    assert "P" in layer.parameter_hints()
