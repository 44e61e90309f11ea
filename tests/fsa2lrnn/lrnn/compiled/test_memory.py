"""A block is used again when it is free, never before."""

import pytest
import torch

from fsa2lrnn.lrnn import compiled as memory

LENGTH = memory.LARGE // 4


@pytest.fixture(autouse=True)
def _no_blocks(monkeypatch):
    monkeypatch.setattr(memory, "_blocks", [])


@pytest.mark.parametrize("length", [1, LENGTH, 3 * LENGTH + 5])
def test_a_tensor_is_aligned_and_writable(length):
    tensor = memory.empty((length, 2), torch.float64)
    assert (tensor.shape, tensor.dtype, tensor.is_contiguous()) == ((length, 2), torch.float64, True)
    assert tensor.data_ptr() % 64 == 0
    tensor.fill_(3)
    assert (tensor == 3).all()


def test_what_is_held_in_any_way_is_not_used_again():
    held = [memory.empty((LENGTH,), torch.float32) for _ in range(3)]
    held[1] = held[1][5:7]  # a view
    held[2] = held[2].detach().reshape(2, -1).T
    for i, tensor in enumerate(held):
        tensor.fill_(i)
    others = [memory.empty((LENGTH,), torch.float32).fill_(9) for _ in range(3)]
    assert len({tensor.untyped_storage().data_ptr() for tensor in held + others}) == 6
    assert all((tensor == i).all() for i, tensor in enumerate(held))


def test_what_is_free_is_used_again_for_something_of_like_size():
    tensor = memory.empty((LENGTH,), torch.float32)
    place = tensor.data_ptr()
    del tensor
    assert memory.empty((4 * LENGTH,), torch.float32).data_ptr() != place
    assert memory.empty((LENGTH // 2,), torch.float64).data_ptr() == place


def test_no_more_is_kept_than_the_limit(monkeypatch):
    monkeypatch.setattr(memory, "KEPT", 5 * memory.LARGE // 2)
    tensors = [memory.empty((LENGTH,), torch.float32) for _ in range(4)]
    assert len(memory._blocks) == 2
    large = memory.empty((3 * LENGTH,), torch.float32)
    assert len(memory._blocks) == 2
    for i, tensor in enumerate([*tensors, large]):
        tensor.fill_(i)
    assert all((tensor == i).all() for i, tensor in enumerate([*tensors, large]))


def test_no_more_blocks_are_kept_than_can_be_looked_through(monkeypatch):
    monkeypatch.setattr(memory, "MOST", 3)
    tensors = [memory.empty((LENGTH,), torch.float32) for _ in range(5)]
    assert len(memory._blocks) == 3
    assert len({tensor.data_ptr() for tensor in tensors}) == 5
