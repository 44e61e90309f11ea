"""Distillation of a trained model: a layer of one-hot columns learns its outputs on short words and is verified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.extra.learning.ending import learned_of
from fsa2lrnn.extra.learning.examples import FreshWords
from fsa2lrnn.extra.learning.judging import LearningTarget
from fsa2lrnn.extra.learning.recipe import recipe_for
from fsa2lrnn.extra.learning.result import Learned
from fsa2lrnn.extra.learning.run import LearningRun
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.symbols import align
from fsa2lrnn.training.data import Batch
from fsa2lrnn.training.train import use_threads


class DistillationWords(FreshWords):
    """Fresh words of a task, labelled with the outputs of a model at the counted positions.

    The output on the empty word is that of the task, because models are seldom trained on it.
    """

    def __init__(self, model: LRNN, machine: MooreMachine, sampler: str = "task", source: str = "") -> None:
        super().__init__(machine, sampler, source)
        number = {output: j for j, output in enumerate(self.outputs)}
        self._model = model
        self._tokens = torch.tensor(align(self.alphabet, model.alphabet))
        self._numbers = torch.tensor([number.get(output, UNCOUNTED) for output in model.outputs])

    def batch(self, size: int, length: int, generator: torch.Generator) -> Batch:
        """Return a batch of `FreshWords.batch` with the model's outputs."""
        return self._answered(super().batch(size, length, generator))

    def labelled(self, word: Sequence[Any]) -> Batch:
        """Return a batch of one word with the model's outputs."""
        return self._answered(super().labelled(word))

    def _answered(self, batch: Batch) -> Batch:
        with torch.no_grad():
            predicted = self._numbers[self._model(self._tokens[batch.tokens]).argmax(-1)]
        labels = batch.labels.clone()
        labels[:, 1:] = torch.where(labels[:, 1:] == UNCOUNTED, UNCOUNTED, predicted)
        return Batch(batch.tokens, labels)


def distil(model: LRNN, machine: MooreMachine, source: str = "", sampler: str = "task", **changes: Any) -> Learned:
    """Return a machine learned from the outputs of `model` on words of up to `length` letters, with the verdict on it.

    `length` is a setting of the recipe. `machine` determines the block size, draws the words and is the target of the
    proof; of its outputs only that on the empty word is used for training. A counterexample joins the data with the
    model's output, so that no proof results from a model that is wrong on short words.

    Raises:
        InvalidMachine: if model and machine have different alphabets.
        BudgetExceeded: if no head has a machine of a manageable size when the steps end.

    >>> from fsa2lrnn import compile_machine, zoo
    >>> found = distil(compile_machine(zoo.parity()), zoo.parity(), length=12)
    >>> found.is_proved, found.model.config.normalisation
    (True, 'onehot')
    """
    examples = DistillationWords(model, machine, sampler, source)
    recipe = recipe_for(examples.machine.n_states, **changes)
    target = LearningTarget(examples.machine, examples.sampler, examples.outputs)
    run = LearningRun(recipe, examples, target, examples.machine.n_states)
    with use_threads(recipe.threads):
        learned = run.go()
    if learned is None:
        raise BudgetExceeded(f"after {run.steps:,} steps there is no machine to show: give more steps")
    verified = target.judge(learned.candidate.machine)
    return learned_of(run, learned.candidate, verified.machine, verified.model, verified.verdict, verified.scope)
