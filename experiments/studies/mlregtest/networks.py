"""Networks trained on words with one label at the end.

`by_layer` trains a layer of the leaderboard in its protocol except for the data: batches are drawn from the words with
replacement. `by_gru` trains the GRU of the benchmark's authors in theirs. The loss is that of the label at the end.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from experiments.studies.mlregtest.leaderboard import ARMS, PROTOCOL
from fsa2lrnn.learning import Data
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.training.settings import OPTIMISERS, preset
from fsa2lrnn.training.train import mean_loss, parameter_groups

LAYERS = ("released", "s4d", "lru")
_AT_ONCE = 1000  # words of an evaluation
_EPOCHS, _BATCH, _WIDTH, _HIDDEN, _DROPOUT = 64, 64, 32, 64, 0.1  # of the authors' GRU


class Gru(nn.Module):
    """The GRU of the benchmark, github.com/heinz-jeffrey/subregular-learning, src/neural_net/tensorflow/model.py.

    An embedding, a GRU, two hidden layers, dropout, LayerNorm and two logits. Inputs of the GRU are dropped, too, the
    same ones at all positions of a word. Here the last letter's state is read; there, the state after padding.
    """

    def __init__(self, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...]) -> None:
        super().__init__()
        self.alphabet, self.outputs = alphabet, outputs
        self.embedding, self.gru = nn.Embedding(len(alphabet), _WIDTH), nn.GRU(_WIDTH, _WIDTH, batch_first=True)
        hidden = nn.Linear(_WIDTH, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, _HIDDEN), nn.ReLU()
        self.head = nn.Sequential(*hidden, nn.Dropout(_DROPOUT), nn.LayerNorm(_HIDDEN, 1e-6), nn.Linear(_HIDDEN, 2))
        # The initial values of Keras.
        nn.init.uniform_(self.embedding.weight, -0.05, 0.05)
        for name, weight in [*self.gru.named_parameters(), *self.head.named_parameters()]:
            if "weight_hh" in name:
                for gate in weight.data.chunk(3):
                    nn.init.orthogonal_(gate)
            elif weight.ndim == 2:
                nn.init.xavier_uniform_(weight)
            elif "bias" in name:
                nn.init.zeros_(weight)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits after each letter: int64 (B, T) -> float32 (B, T, 2)."""
        return self.head(self.states(tokens))

    def states(self, tokens: Tensor) -> Tensor:
        """Return the states after each letter: int64 (B, T) -> float32 (B, T, width)."""
        x = self.embedding(tokens)
        return self.gru(x * nn.functional.dropout(torch.ones_like(x[:, :1]), _DROPOUT, self.training))[0]


@dataclass(frozen=True)
class Network:
    """A trained network, which predicts the label of a word from its last letter on."""

    model: LRNN | Gru

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


def by_gru(words: Data, epochs: int = _EPOCHS, seed: int = 0) -> Network:
    """Return the benchmark's GRU after so many epochs of RMSprop, whose step size of 0.01 is the authors'."""
    torch.manual_seed(seed)
    model = Gru(words.alphabet, words.outputs)
    optimiser = torch.optim.RMSprop(model.parameters(), 0.01, alpha=0.9, eps=1e-7)
    for _ in range(epochs):
        for chosen in torch.randperm(len(words.tokens)).split(_BATCH):
            end, row = words.lengths[chosen], torch.arange(len(chosen))
            logits = model.head(model.states(words.tokens[chosen])[row, end - 1])
            optimiser.zero_grad()
            nn.functional.cross_entropy(logits, words.labels[chosen, end]).backward()
            optimiser.step()
    return Network(model.eval())
