"""The stream's coordinates, and gates that saturate."""

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.stream import layout


def test_places_do_not_overlap():
    plan = construct(zoo.ab_star(), True)
    where = layout(plan)
    assert where.marks == (2, 7, 8)
    assert where.symbols == (4, 9)
    assert where.width == 64


def test_letters_beyond_the_width_are_refused_in_words():
    machine = MooreMachine(np.arange(5_000)[:, None] % 2 * np.ones((1, 2), int), [False, True])
    with pytest.raises(NotExpressible, match=r"5,000 letters.* need a hidden size of 5,00.*smaller alphabet"):
        layout(construct(machine, True))


@pytest.mark.parametrize("number", [-512.0, 0.0, 512.0])
def test_gates_saturate_exactly(number):
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.tensor(number, dtype=dtype)
        assert float(2 * x.sigmoid()) == {-512.0: 0, 0.0: 1, 512.0: 2}[number]
        decay = (-torch.nn.functional.softplus(x.float())).exp()
        assert number == 0 or float(decay) == {-512.0: 1, 512.0: 0}[number]
