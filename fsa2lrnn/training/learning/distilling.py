"""A trained model as the teacher: a layer of one-hot columns learns its answers on short words, and that is proved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.lrnn.model import LRNN
from fsa2lrnn.symbols import align
from fsa2lrnn.training.data import Batch
from fsa2lrnn.training.learning.ending import learned_of
from fsa2lrnn.training.learning.examples import FreshWords
from fsa2lrnn.training.learning.judging import LearningTarget
from fsa2lrnn.training.learning.recipe import recipe_for
from fsa2lrnn.training.learning.result import Learned
from fsa2lrnn.training.learning.run import LearningRun
from fsa2lrnn.training.train import use_threads


class DistillationWords(FreshWords):
    """Fresh words as a task draws them, with the answers of a model wherever the task asks for one.

    The output on the empty word is the task's: models are seldom trained on it.
    """

    def __init__(self, model: LRNN, machine: MooreMachine, sampler: str = "task", source: str = "") -> None:
        super().__init__(machine, sampler, source)
        number = {output: j for j, output in enumerate(self.outputs)}
        self._model = model
        self._tokens = torch.tensor(align(self.alphabet, model.alphabet))
        self._numbers = torch.tensor([number.get(output, UNCOUNTED) for output in model.outputs])

    def batch(self, size: int, length: int, generator: torch.Generator) -> Batch:
        """As `FreshWords.batch`, answered by the model."""
        return self._answered(super().batch(size, length, generator))

    def labelled(self, word: Sequence[Any]) -> Batch:
        """One word with the model's answers."""
        return self._answered(super().labelled(word))

    def _answered(self, asked: Batch) -> Batch:
        with torch.no_grad():
            given = self._numbers[self._model(self._tokens[asked.tokens]).argmax(-1)]
        labels = asked.labels.clone()
        labels[:, 1:] = torch.where(labels[:, 1:] == UNCOUNTED, UNCOUNTED, given)
        return Batch(asked.tokens, labels)


def distil(model: LRNN, machine: MooreMachine, source: str = "", sampler: str = "task", **changes: Any) -> Learned:
    """Learn what `model` answers on words of up to `length` letters (a setting of the recipe), and prove it.

    The machine says how large a block to take, draws the words, and judges what was learned; it gives no answers but
    that on the empty word. A word on which the learned machine fails joins the data with the model's answer, so that
    nothing is proved where the model itself is wrong on short words.

    Raises:
        InvalidMachine: if model and machine have unlike alphabets.
        BudgetExceeded: if not even one head had a machine of a sensible size when the steps ran out.

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
        found = run.go()
    if found is None:
        raise BudgetExceeded(f"after {run.steps:,} steps there is no machine to show: give more steps")
    judged = target.judge(found.candidate.machine)
    return learned_of(run, found.candidate, judged.machine, judged.model, judged.verdict, judged.scope)
