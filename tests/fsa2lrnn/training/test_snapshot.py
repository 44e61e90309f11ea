import pytest
import torch
from torch import nn

from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.training.snapshot import put_back, shapes_of, tensors_of


def parts():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    model.bias.requires_grad_(False)
    return model, torch.optim.Adam([model.weight], fused=True)


def step(model, optimiser, drawn):
    optimiser.zero_grad()
    model(torch.randn(4, 3, generator=drawn)).square().sum().backward()
    optimiser.step()


def test_what_was_put_back_goes_on_to_the_same_bits():
    model, optimiser = parts()
    drawn = torch.Generator().manual_seed(1)
    wanted = shapes_of(model, optimiser, words=drawn)
    step(model, optimiser, drawn)
    kept = {name: tensor.clone() for name, tensor in tensors_of(model, optimiser, words=drawn).items()}
    assert {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in kept.items()} == wanted
    step(model, optimiser, drawn)
    (other, its), again = parts(), torch.Generator()
    put_back(kept, other, its, words=again)
    step(other, its, again)
    assert torch.equal(other.weight, model.weight)
    assert torch.equal(drawn.get_state(), again.get_state())


def test_random_numbers_that_are_none_are_refused():
    model, optimiser = parts()
    kept = tensors_of(model, optimiser, words=torch.Generator())
    kept["words"] = torch.zeros(3, dtype=torch.uint8)
    with pytest.raises(CheckpointError, match=r"its random numbers can't be resumed .*: start afresh"):
        put_back(kept, model, optimiser, words=torch.Generator())
