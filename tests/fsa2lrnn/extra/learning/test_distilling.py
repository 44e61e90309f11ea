from pathlib import Path

import pytest
import torch

from fsa2lrnn import MooreMachine, compile_machine, load, prove_equivalent, zoo
from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.extra.learning.distilling import DistillationWords, distil
from fsa2lrnn.verdicts import Proved

MODELS = Path(__file__).parents[4] / "experiments" / "models"


def test_answers_are_the_models_in_its_own_order_of_letters_and_outputs():
    task = MooreMachine.from_source("task:mod_arith(2)")
    order = [4, 2, 0, 3, 1]
    shuffled = MooreMachine(task.delta[order], task.outputs, task.start, [task.alphabet[a] for a in order])
    examples = DistillationWords(compile_machine(shuffled), task, source="task:mod_arith(2)")
    batch = examples.batch(20, 9, torch.Generator().manual_seed(0))
    for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
        wanted = task.transduce([examples.alphabet[a] for a in tokens])
        given = [wanted[k] if j == UNCOUNTED else examples.outputs[j] for k, j in enumerate(labels[1:])]
        assert given == wanted
        assert labels[2::2] == [UNCOUNTED] * 4


def test_what_a_model_answers_is_learned_and_proved():
    learned = load(MODELS / "sum3" / "seed-0.safetensors")
    found = distil(learned, zoo.sum_mod(3), "task:sum_mod(3)")
    assert found.is_proved
    assert isinstance(prove_equivalent(found.model, zoo.sum_mod(3)), Proved)


def test_where_the_model_is_wrong_on_short_words_nothing_is_proved():
    found = distil(compile_machine(zoo.sum_mod(3)), MooreMachine.from_source("task:sum_mod(3)"), length=8, steps=100)
    assert found.is_proved
    other = MooreMachine(zoo.sum_mod(3).delta, ("0", "1", "1"), 0, ("0", "1", "2"))
    assert not distil(compile_machine(other), zoo.sum_mod(3), length=8, steps=100).is_proved


@pytest.mark.slow
def test_three_learned_layers_of_mod_arith_become_one_that_is_right_for_ever():
    learned = load(MODELS / "arith5" / "seed-0.safetensors")
    assert len(learned.layers) == 3
    found = distil(learned, zoo.mod_arith(5), "task:mod_arith(5)")
    assert found.is_proved
    assert found.scope == "every legal word, at the positions that count"
