"""Layers trained on words with one label at the end, in the protocol of the leaderboard except for the data.

The loss is that of the label at the end of each word. Batches are drawn from the given words with replacement.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from experiments.studies.mlregtest.leaderboard import ARMS, PROTOCOL
from fsa2lrnn.extra.learning import Data
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.training.settings import OPTIMISERS, preset
from fsa2lrnn.training.train import mean_loss, parameter_groups

LAYERS = ("released", "s4d", "lru")
_AT_ONCE = 1000  # words of an evaluation


@dataclass(frozen=True)
class Network:
    """A trained network, which predicts the label of a word from its last letter on."""

    model: LRNN

    def wrong(self, words: Data) -> torch.Tensor:
        """Return which words get another label than they have at their end, bool (N,)."""
        order = torch.tensor([self.model.alphabet.index(letter) for letter in words.alphabet])
        outputs = torch.tensor([self.model.outputs.index(output) for output in words.outputs])
        wrong = list[torch.Tensor]()
        with torch.inference_mode():
            for first in range(0, len(words.tokens), _AT_ONCE):
                at = slice(first, first + _AT_ONCE)
                end = words.lengths[at, None]
                predicted = self.model(order[words.tokens[at]]).argmax(-1).gather(1, end - 1)
                wrong.append((predicted != outputs[words.labels[at].gather(1, end)])[:, 0])
        return torch.cat(wrong)


def by_layer(words: Data, arm: str, steps: int = PROTOCOL["steps"], seed: int = 0) -> Network:
    """Return the network of a layer of the leaderboard after so many steps of training."""
    changes = ARMS[arm].changes
    assert changes is not None
    settings = preset("quick", "task:parity", seed=seed, **PROTOCOL | {"steps": steps}, **changes)
    torch.manual_seed(seed)
    model = LRNN(settings.network(words.alphabet, words.outputs))
    groups = parameter_groups(model, settings)
    optimiser = OPTIMISERS[settings.optimiser](list(groups.values()), settings.learning_rate, (0.9, settings.beta2))
    for step in range(settings.steps):
        chosen = torch.randint(len(words.tokens), (settings.batch,))
        for group, hint in zip(optimiser.param_groups, groups, strict=True):
            group["lr"] = settings.rate(step, hint)
        optimiser.zero_grad()
        mean_loss(model(words.tokens[chosen]), words.labels[chosen, 1:]).backward()
        optimiser.step()
    return Network(model)
