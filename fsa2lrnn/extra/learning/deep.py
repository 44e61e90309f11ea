"""Stacked layers of one-hot blocks, which can learn a cascade.

The gates of each layer read the one-hot letter and the states of all layers below, current and previous; the read-out
reads all layers. T8 of docs/theory.md: such a network has finitely many states, so it is verified like any other.
"""

from __future__ import annotations

from collections.abc import Hashable

import torch

from fsa2lrnn.extra.learning.recipe import Recipe
from fsa2lrnn.lrnn.config import LRNNConfig
from fsa2lrnn.lrnn.layers import BlockLayerConfig
from fsa2lrnn.lrnn.model import LRNN

_LEAD = 1.0  # added to the logits that a start prefers


def deep_network(
    blocks: tuple[int, ...], layers: int, recipe: Recipe, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...]
) -> LRNNConfig:
    """Return the configuration of a network of `layers` layers, each with one-hot blocks of these sizes."""
    layer = BlockLayerConfig(blocks, recipe.gate_hidden, 1, temperature=recipe.temperature)
    return LRNNConfig(
        alphabet, outputs, (layer,) * layers, embedding_dim=len(alphabet), readout_hidden=recipe.hidden,
        normalisation="onehot", connection="concat", token_shift=True,
    )  # fmt: skip


@torch.no_grad()
def begin(model: LRNN, start: str) -> None:
    """Initialise a new network of several layers: one-hot letters, and maps of the kind `start`."""
    if len(model.layers) == 1:
        return
    n_letters = len(model.alphabet)
    model.embedding.get_parameter("weight").copy_(torch.eye(n_letters)).requires_grad_(False)
    for layer in model.recurrences:
        weights = dict(layer.gates)["transition"].weights
        n_heads, b = len(layer.block_sizes), max(layer.block_sizes)
        if start == "identity":
            weights.b2.view(n_heads, b, b).add_(_LEAD * torch.eye(b))
        elif start == "permutations":
            for a in range(min(n_letters, len(weights.b1))):
                weights.W1[a].zero_()[a] = 1  # this unit detects the letter
                weights.b1[a] = 0
                for table in weights.W2[:, a].view(n_heads, b, b):
                    table.copy_(_LEAD * torch.eye(b)[torch.randperm(b)])
