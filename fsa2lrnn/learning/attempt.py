"""One training start of the recipe: a hard layer, Adam, and words that grow once the short ones are learned."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.compile.heads import Heads, heads_of
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.learning.examples import Examples
from fsa2lrnn.learning.patching import PatchedTable, patch_table
from fsa2lrnn.learning.recipe import Recipe
from fsa2lrnn.nn.config import LRNNConfig
from fsa2lrnn.nn.layers import LAYERS, BlockLayerConfig, LayerConfig, Shape
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.training.data import Batch
from fsa2lrnn.training.trainer import Trainer

FAULTLESS = 20  # batches at full length without an error, after which a clean start has nothing left to learn
_DECAY = 0.98  # of the running error, per step
_FEWEST = 16  # words in a batch
_LEAST_DURING_GROWTH = 0.1  # of the rate
_RESTS, _GENTLE = 80, 0.3  # steps in which a single head's read-out is trained alone; then the factor of the rate
_READ_OUT = 1_000  # steps in which a read-out is trained alone before its rate falls
_WINDOW = 60  # steps over which an error has ceased to fall
_AT_THE_FLOOR = 1.25  # times the steps in which the rate falls, after which it changes nothing more
_WARMED = 4
_SLOW = 0.003  # times the rate, for a read-out in which each label has a state of its own
_CLEAR = 2.0  # weights of such a read-out
_LEARNING = 0.85  # of the error of the most frequent label: below it, something has been learned


@dataclass
class StartState:
    """The state of a start that changes from step to step, except the weights."""

    length: int
    step: int = 0
    grown: int = 0
    full: int | None = None  # the step at which words had their full length
    error: float = 1.0
    faultless: int = 0
    warmed: int = 0
    base: float | None = None  # the error that is left on short words if the share of wrong labels is unknown
    window: float = 0.0
    window_before: float = 1.0
    guess: float = 0.0  # the running error of predicting the most frequent label
    rests: int = 0  # steps in which only the read-out of a single head is trained, before its table


class LearningStart:
    """One start: `heads` automata of `block` states. Seed, number and heads determine the initial weights."""

    def __init__(self, recipe: Recipe, examples: Examples, number: int, block: int, heads: int) -> None:
        self.recipe, self.examples, self.number, self.block, self.n_heads = recipe, examples, number, block, heads
        with torch.random.fork_rng(devices=[]):
            # Seeds of different recipes do not meet as long as a run has fewer than 2¹⁶ starts.
            torch.manual_seed((recipe.seed << 16) + number)
            self.model = LRNN(network(recipe, heads, block, examples.alphabet, examples.outputs))
        if recipe.suffixes:
            _own_states(self.model, heads)
        parts = (self.model.layers, self.model.readout)
        groups = [{"params": [weight for weight in part.parameters() if weight.requires_grad]} for part in parts]
        self.trainer = Trainer(self.model, torch.optim.Adam(groups, recipe.rate, fused=True))
        self.full_length = examples.fit(recipe.length)
        self.at = StartState(examples.fit(recipe.first_length))

    def focused(self, head: int) -> LearningStart:
        """Return this start reduced to one head with a new read-out, at full length."""
        alone = LearningStart(self.recipe, self.examples, self.number, self.block, 1)
        source, target = (attempt.model.recurrences[0] for attempt in (self, alone))
        with torch.no_grad():
            table = source.get_parameter("transition.table").unflatten(0, (self.n_heads, -1))
            target.get_parameter("transition.table").copy_(table[head])
            target.get_parameter("x0").copy_(source.get_parameter("x0")[head : head + 1])
        alone.at.length, alone.at.rests = self.full_length, _RESTS
        return alone

    def reading_out(self, model: LRNN) -> LearningStart:
        """Return a start at full length with the layer of `model` and a new read-out, the only part to train."""
        start = LearningStart(self.recipe, self.examples, self.number, self.block, self.n_heads)
        start.model.layers.load_state_dict(model.layers.state_dict())
        start.at.length, start.at.rests, start.at.full = self.full_length, self.recipe.steps + 1, _READ_OUT
        return start

    def repair(self, batch: Batch, deadline: Deadline = NEVER) -> PatchedTable:
        """Repair the single head on these words, and let the next steps train its read-out alone; return the repair."""
        heads = self.heads
        patched = patch_table(
            heads.next_state[:, 0], int(heads.start[0]), batch.tokens.numpy(), batch.labels.numpy(),
            len(self.examples.outputs), deadline=deadline, completely=True,
        )  # fmt: skip
        if patched.changes or patched.merged:
            layer = self.model.recurrences[0]
            for cell, rows in enumerate(patched.next_state):
                layer.set_map(cell, 0, torch.from_numpy(rows))
            self.at.rests = self.at.step + _RESTS
        return patched

    @property
    def is_alone(self) -> bool:
        """Whether the start has a single head."""
        return self.n_heads == 1

    @property
    def heads(self) -> Heads:
        """The automata of the current weights."""
        return heads_of(self.model)

    @property
    def is_full(self) -> bool:
        """Whether words have their full length."""
        return self.at.length >= self.full_length

    @property
    def is_settled(self) -> bool:
        """Whether training cannot learn more from the labels."""
        if self.recipe.is_clean:
            return self.at.faultless >= FAULTLESS
        return self.at.full is not None and self.at.step - self.at.full >= self.recipe.settle

    @property
    def is_stuck(self) -> bool:
        """Whether words have not grown for too long, or errors are left although the learning rate has fallen."""
        if self.is_full and not self.recipe.is_clean:
            return False
        if self.at.full is not None:
            return self.at.step - self.at.full > _AT_THE_FLOOR * self.recipe.decay and not self.at.faultless
        return self.at.step - self.at.grown > self.recipe.patience

    def warm(self) -> None:
        """Restart the decay of the learning rate for a new counterexample, at most `_WARMED` times per start."""
        if self.at.full is not None and self.at.warmed < _WARMED:
            self.at.full, self.at.warmed, self.at.faultless = self.at.step, self.at.warmed + 1, 0

    def update(self, generator: torch.Generator) -> float:
        """Take one training step; return the loss."""
        at, recipe = self.at, self.recipe
        at.step += 1
        if self.is_full:
            at.full = at.full or at.step
        rate = recipe.rate * self._rate_factor()
        # During the rests only the read-out is trained: the table keeps what a repair or another start gave it.
        rate_of_tables = rate * (at.step > at.rests) * (_GENTLE if at.rests else 1)
        length = self._length(generator) if at.rests else at.length
        batch = self.examples.batch(max(_FEWEST, recipe.letters // length), length, generator)
        logits = self.model(batch.tokens, empty_word=True)
        is_wrong = (logits.detach().argmax(-1) != batch.labels) & (batch.labels != UNCOUNTED)
        labels = _until_first_error(batch.labels, is_wrong) if recipe.suffixes else batch.labels
        loss = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=UNCOUNTED)
        loss = self.trainer.backward(loss)
        rate_of_readout = rate * (_SLOW if recipe.suffixes else _GENTLE if at.rests > recipe.steps else 1)
        self.trainer.update((rate_of_tables, rate_of_readout))
        labels = batch.labels[batch.labels != UNCOUNTED]
        wrong = is_wrong.sum().item() / len(labels)
        self._note(wrong, 1 - labels.bincount().max().item() / len(labels))
        return float(loss)

    def _length(self, generator: torch.Generator) -> int:
        # With probability 1/2 the full length, else uniform.
        drawn = int(torch.randint(2 * self.full_length, (), generator=generator)) + 1
        return self.examples.fit(
            max(drawn, self.recipe.first_length) if drawn <= self.full_length else self.full_length
        )

    def _rate_factor(self) -> float:
        """Return the factor of the learning rate, which falls at full length, or after too long without growth."""
        at, recipe = self.at, self.recipe
        if at.full is not None:
            return min(1.0, max(recipe.floor, 1 - (at.step - at.full) / recipe.decay))
        return max(_LEAST_DURING_GROWTH, 1 - max(0, at.step - at.grown - recipe.ease) / recipe.decay)

    def _note(self, wrong: float, guess: float) -> None:
        """Update the running errors after a step; let words grow once errors are low enough or have ceased to fall."""
        at = self.at
        at.error = _DECAY * at.error + (1 - _DECAY) * wrong
        at.guess = _DECAY * at.guess + (1 - _DECAY) * guess
        at.window += wrong / _WINDOW
        at.faultless = at.faultless + 1 if self.is_full and wrong == 0 else 0
        if not self.is_full and at.step % 20 == 0 and self.recipe.noise is not None and at.error < self._threshold():
            self._grow()
        if at.step % _WINDOW == 0:
            if not self.is_full and self.recipe.noise is None and self._has_ceased():
                self._grow()
            at.window_before, at.window = at.window, 0.0

    def _threshold(self) -> float:
        """Return the error below which words grow; even a perfect network has errors on wrong labels."""
        return self.recipe.threshold + 1.15 * (self.recipe.noise or 0.0)

    def _has_ceased(self) -> bool:
        """Return whether the error has stopped falling at a level that is no worse than on shorter words."""
        at = self.at
        # While the error is close to that of guessing, or still falls, only a plainly low error counts as ceased.
        if at.window > _LEARNING * at.guess or at.window < 0.95 * at.window_before:
            return at.window < self.recipe.threshold
        if at.base is None or at.window < at.base:
            at.base = at.window
        return at.window <= 1.15 * at.base + self.recipe.threshold

    def _grow(self) -> None:
        at = self.at
        target = max(at.length + 1, math.ceil(at.length * self.recipe.growth))
        # A sampler may not have words of each length, as where only every second position counts.
        while (longer := self.examples.fit(min(target, self.full_length))) <= at.length:
            target += 1
        at.length, at.grown = longer, at.step
        # The running error is that of shorter words. It is raised, so that words grow again only after errors on the
        # longer ones have fallen.
        at.error = max(at.error, 1.2 * self._threshold())
        at.window_before = 1.0


def network(
    recipe: Recipe, heads: int, block: int, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...]
) -> LRNNConfig:
    """Return the configuration of a recipe's network: one layer with a table of logits per letter."""
    hidden = max(recipe.hidden, len(outputs)) if recipe.suffixes else recipe.hidden
    return LRNNConfig(
        alphabet, outputs, (layer_of(recipe, heads, block),), embedding_dim=len(alphabet), readout_hidden=hidden,
        normalisation="onehot",
    )  # fmt: skip


def _until_first_error(labels: Tensor, is_wrong: Tensor) -> Tensor:
    """Return labels (B, T+1) without those after the first error of each word.

    After its first error a head is in the state of another word, and the labels would train the transitions of that
    word.
    """
    # The first error itself keeps its label: there the sum is 1 and the position is wrong.
    return labels.masked_fill(is_wrong.cumsum(1) > is_wrong.long(), UNCOUNTED)


@torch.no_grad()
def _own_states(model: LRNN, heads: int) -> None:
    """Initialise the read-out with one state per label: hidden unit c reads state c of each head, for label c only."""
    W1, b1, W2 = (model.readout.get_parameter(name) for name in ("0.weight", "0.bias", "2.weight"))
    by_head = W1.view(len(W1), heads, -1)
    n = min(len(W2), by_head.shape[2])
    by_head[:n], by_head[:, :, :n], W2[:, :n] = 0, 0, 0
    c = torch.arange(n)
    by_head[c, :, c] = W2[c, c] = _CLEAR
    b1[:n] = 1  # above 0, so that the gradient reaches the states that a word is not in


def layer_of(recipe: Recipe, heads: int, block: int) -> LayerConfig:
    """Return the configuration of a recipe's layer with tables of logits: `heads` blocks of `block` states."""
    if recipe.layer == "block":
        return BlockLayerConfig((block,) * heads, 1, 1, gate="table", temperature=recipe.temperature)
    config = LAYERS[recipe.layer].Config
    options = {"gate": "table", "temperature": recipe.temperature, "factors": recipe.factors or 1}
    return config.of_shape(Shape(heads, block), {name: options[name] for name in config.options() if name in options})
