"""Which affine maps stay among finitely many states."""

import pytest
import torch

from fsa2lrnn.lrnn.layers.base import is_one_hot, maps_closed, starts_closed

MASK = torch.tensor([[True, True], [True, False]])  # a block of 2, a lane
EYE = torch.eye(2)
SWAP, ZERO = EYE.flip(0), torch.zeros(2, 2)


def transition(block, reset, a, c):
    """One transition: (1, 2, 2, 2) and (1, 2, 2)."""
    A = torch.stack([block, torch.tensor([[a, 0.0], [0.0, 0.0]])])[None]
    return A, torch.stack([torch.tensor(reset), torch.tensor([c, 0.0])])[None]


@pytest.mark.parametrize(("a", "c"), [(1.0, 0.0), (-1.0, 1.0), (0.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize(("block", "reset"), [(EYE, (0.0, 0.0)), (SWAP, (0.0, 0.0)), (ZERO, (0.0, 1.0))])
def test_maps_resets_and_the_four_maps_of_a_lane(block, reset, a, c):
    assert maps_closed(*transition(block, reset, a, c), MASK)


@pytest.mark.parametrize(
    "broken",
    [
        transition(EYE, (0.0, 1.0), 1.0, 0.0),  # a map that writes too
        transition(ZERO, (0.0, 0.0), 1.0, 0.0),  # forgets, and writes nothing
        transition(0.5 * EYE, (0.0, 0.0), 1.0, 0.0),
        transition(torch.ones(2, 2), (0.0, 0.0), 1.0, 0.0),
        transition(-SWAP, (0.0, 0.0), 1.0, 0.0),
        transition(EYE, (0.0, 0.0), -1.0, 0.0),  # a lane that leaves {0, 1}
        transition(EYE, (0.0, 0.0), 1.0, 1.0),
        transition(EYE, (0.0, 0.0), 0.0, 0.5),
    ],
)
def test_whatever_else_is_none(broken):
    assert not maps_closed(*broken, MASK)


def test_where_they_start():
    assert starts_closed(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), MASK)
    assert starts_closed(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), MASK)
    assert not starts_closed(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), MASK)  # a block that is nowhere
    assert not starts_closed(torch.tensor([[1.0, 0.0], [0.5, 0.0]]), MASK)


def test_one_hot():
    assert is_one_hot(torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 2.0]])).tolist() == [True] + [False] * 3
