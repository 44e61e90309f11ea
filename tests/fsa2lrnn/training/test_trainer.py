import pytest
import torch
from torch import nn

from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.training.trainer import Trainer


def trainer():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    model.bias.requires_grad_(False)
    return Trainer(model, torch.optim.Adam([model.weight], fused=True))


def step(trainer, words):
    trainer.backward(trainer.model(torch.randn(4, 3, generator=words)).square().sum())
    trainer.update([0.1])


def test_a_restored_trainer_continues_to_the_same_bits():
    one, words = trainer(), torch.Generator().manual_seed(1)
    shapes = one.shapes(words=words)
    step(one, words)
    saved = {name: tensor.clone() for name, tensor in one.tensors(words=words).items()}
    assert {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in saved.items()} == shapes
    step(one, words)
    other, again = trainer(), torch.Generator()
    other.restore(saved, words=again)
    step(other, again)
    assert torch.equal(other.model.weight, one.model.weight)
    assert torch.equal(words.get_state(), again.get_state())


def test_invalid_random_numbers_are_refused():
    saved = trainer().tensors(words=torch.Generator())
    saved["words"] = torch.zeros(3, dtype=torch.uint8)
    with pytest.raises(CheckpointError, match=r"its random numbers cannot be resumed .*: start afresh"):
        trainer().restore(saved, words=torch.Generator())


def test_gradients_are_clipped_and_their_norm_before_is_returned():
    one = trainer()
    one.backward(100 * one.model(torch.ones(1, 3)).square().sum())
    before = one.model.weight.grad.norm()
    assert torch.equal(one.clip(None), before)
    assert torch.equal(one.clip(0.5), before)
    assert one.model.weight.grad.norm() <= 0.5
