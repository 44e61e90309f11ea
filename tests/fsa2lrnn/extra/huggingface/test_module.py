"""Models of others before the judges of modules: search, extraction, comparison."""

import pytest
import torch

pytest.importorskip("transformers")

import fsa2lrnn
from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.extra.huggingface.module import SteppedModule
from fsa2lrnn.verdicts import Refuted
from fsa2lrnn.verification.falsify import Budget


@pytest.fixture
def wrapped(exported):
    model = load(exported("ab_star", "mamba-2")[0])
    return fsa2lrnn.wrap(SteppedModule(model), model.machine.alphabet, model.outputs)


def test_letters_one_by_one_are_the_word(wrapped):
    tokens = torch.tensor([[0, 1, 0, 1, 1], [0, 1, 0, 1, 0]])
    logits, _ = wrapped.advance(tokens, wrapped.initial_state(2))
    assert torch.equal(logits, wrapped(tokens))
    wanted = [zoo.ab_star().transduce(["ab"[a] for a in word]) for word in tokens.tolist()]
    assert [[wrapped.outputs[j] for j in row] for row in logits.argmax(-1).tolist()] == wanted


@pytest.mark.slow
def test_falsify_finds_a_word_for_another_machine_and_none_for_its_own(wrapped):
    machine = zoo.ab_star()
    assert not isinstance(fsa2lrnn.falsify(wrapped, machine, Budget(seconds=5)), Refuted)
    other = MooreMachine(machine.delta, [not output for output in machine.outputs], 0, machine.alphabet)
    assert isinstance(fsa2lrnn.falsify(wrapped, other, Budget(seconds=5)), Refuted)


@pytest.mark.slow
def test_the_automaton_is_extracted_again(wrapped):
    found = fsa2lrnn.extract_learned(wrapped)
    assert fsa2lrnn.equivalent(found.machine, zoo.ab_star())


def test_a_letter_put_out_is_no_number(exported):
    model = load(exported("ab_star", "mamba-2")[0])
    with torch.no_grad():
        model.model.lm_head.weight[0] = 1e6
    assert SteppedModule(model)(torch.tensor([[0, 1]])).isnan().all()
