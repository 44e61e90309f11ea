"""Mixers of others as layers: read in pieces as whole, trained, saved; states that can't be gone on from."""

import pytest
import torch

from experiments.studies.released_layers import MIXERS, MixerConfig
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn import LRNN, LRNNConfig, layer_named, load, save
from fsa2lrnn.optional import is_installed

pytest.importorskip("transformers")
OF_TRANSFORMERS = [name for name in MIXERS if name != "pd-ssm"]
has_pdssm = pytest.mark.skipif(not (is_installed("pdssm") and is_installed("einops")), reason="pdssm.py is not here")


def model(name, **shape):
    kind = MIXERS[name]
    layer_named(f"{kind.__module__}:{kind.__name__}")
    torch.manual_seed(0)
    config = kind.Config(**{"heads": 2, "block": 4, **shape})
    return LRNN(LRNNConfig(("a", "b"), (0, 1), (config,), embedding_dim=8, normalisation="none"))


@pytest.mark.parametrize("name", OF_TRANSFORMERS)
def test_pieces_and_steps_are_the_whole(name):
    made, tokens = model(name).eval(), torch.randint(2, (3, 75))
    with torch.no_grad():
        whole = made(tokens)
        state, parts = made.initial_state(3), []
        for piece in tokens.split([1, 1, 66, 1, 6], dim=1):
            logits, state = made.advance(piece, state)
            parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)
    assert not torch.equal(whole[0, -1], whole[1, -1])


@pytest.mark.parametrize("name", OF_TRANSFORMERS)
def test_a_gradient_reaches_all_of_a_mixer(name):
    made = model(name)
    made(torch.randint(2, (4, 9))).square().sum().backward()
    lacking = [key for key, weight in made.layers[0].named_parameters() if weight.grad is None or not weight.grad.any()]
    assert lacking == []


@pytest.mark.parametrize("name", OF_TRANSFORMERS)
def test_a_saved_model_is_of_the_same_layer(name, tmp_path):
    made, tokens = model(name).eval(), torch.randint(2, (2, 5))
    save(made, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors").eval()
    assert type(again.layers[0]) is MIXERS[name]
    assert torch.equal(again(tokens), made(tokens))


def test_words_that_have_begun_are_read_apart_from_others():
    layer = model("olmo-hybrid").layers[0]
    _, after = layer(torch.randn(2, 3, 8), layer.initial_state(2))
    with pytest.raises(UnsupportedFormat, match="some words have begun and some have not"):
        layer(torch.randn(2, 3, 8), torch.stack([after[0], layer.initial_state(1)[0]]))
    u = torch.zeros(2, 0, 8)
    assert layer(u, after)[1] is after


def test_a_width_that_is_not_the_streams():
    with pytest.raises(UnsupportedFormat):
        model("mamba-2", block=5)
    assert MixerConfig(2, 4).width == 8


@has_pdssm
def test_pd_ssm_reads_words_whole():
    made, tokens = model("pd-ssm").eval(), torch.randint(2, (3, 9))
    assert made.not_causal is not None
    assert made(tokens).shape == (3, 9, 2)
    made.train()(tokens).square().sum().backward()
    assert made.layers[0].block.A_dict.grad.any()
