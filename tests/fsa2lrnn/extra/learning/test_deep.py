"""Networks of several layers of one-hot blocks, as they begin."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.learning import Recipe, learn
from fsa2lrnn.extra.learning.deep import begin, deep_network
from fsa2lrnn.lrnn.model import LRNN


def network(start):
    torch.manual_seed(0)
    recipe = Recipe(layers=3, gate_hidden=8)
    model = LRNN(deep_network((4, 4), 3, recipe, tuple("ab"), (False, True)))
    begin(model, start)
    return model


def test_layers_read_the_letter_and_what_is_below_now_and_before():
    model = network("random")
    assert [layer.transition.weights.W1.shape[1] for layer in model.recurrences] == [4, 20, 36]
    assert torch.equal(model.embedding.weight, torch.eye(2))
    assert not model.embedding.weight.requires_grad


def test_states_stay_one_hot_and_the_identity_start_mostly_stays():
    tokens = torch.randint(2, (50, 20), generator=torch.Generator().manual_seed(1))
    kept = {}
    for start in ("random", "identity", "permutations"):
        model = network(start)
        read = []
        model.readout.register_forward_pre_hook(lambda _, given, read=read: read.append(given[0]))
        model(tokens)
        x = read[0].unflatten(-1, (6, 4))  # equal rows are read once
        assert ((x == 1).sum(-1) == 1).all()
        assert ((x != 0).sum(-1) == 1).all()
        kept[start] = len(x.flatten(0, -3).unique(dim=0))
    assert kept["identity"] < min(kept["random"], kept["permutations"])


def test_a_permutation_start_permutes_by_the_letter():
    layer = network("permutations").recurrences[0]
    maps = layer.maps(torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]))  # (letters, H, b)
    assert (maps.sort(-1).values == torch.arange(4)).float().mean() > 0.5


@pytest.mark.slow
def test_two_layers_learn_what_one_block_is_too_small_for():
    found = learn("task:parity", layers=2, heads=1, block=2)
    assert found.is_proved
    assert [layer.block_sizes for layer in found.model.recurrences] == [(2,), (2,)]


def test_settings_that_do_not_fit():
    with pytest.raises(UnsupportedFormat, match="start = 'zero' must be one of random, identity, permutations"):
        Recipe(start="zero")
    with pytest.raises(UnsupportedFormat, match="layers = 2 of hard_lanes: several layers are of blocks"):
        Recipe(layers=2, layer="hard_lanes")
