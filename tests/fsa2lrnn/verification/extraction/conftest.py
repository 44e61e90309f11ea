"""Models of several layers whose states close."""

import pytest
import torch

from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig


@pytest.fixture
def forgetful():
    """A function that makes a model of two layers with A = 0, of options of its own: a layer's state is v of the last
    letter and, under token shift, of the one before."""

    def make(**options):
        torch.manual_seed(0)
        layers = (BlockLayerConfig((2, 2), 4, 4), BlockLayerConfig((2, 2), 4, 4))
        model = LRNN(LRNNConfig(("a", "b"), (0, 1), layers, embedding_dim=4, readout_hidden=16, **options))
        with torch.no_grad():
            for layer in model.layers:
                layer.transition[2].weight.zero_()
                layer.transition[2].bias.zero_()
        return model

    return make
