"""Numbers around the heads: the stream's coordinates, the units, gates that saturate."""

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.released.construct import construct
from fsa2lrnn.released.gated_delta import layout, mixer, units


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


def test_a_narrower_layer_is_asked_for_no_more_than_it_reaches():
    plan = construct(zoo.parity(), True)
    with pytest.raises(NotExpressible, match="β = 2 is asked for, and this layer reaches 1"):
        mixer(plan, 0, largest_beta=1, kernel=4)


@pytest.mark.parametrize("task", ["S4", "S5"])
def test_one_unit_fires_at_every_mark_and_no_other(task):
    plan = construct(zoo.group(task, "transpositions"), True)
    where = layout(plan)
    gate, _, down = units(plan, 0)
    for unit in plan.stages[0].units:
        x = np.zeros(where.width)
        x[0], mark = 1, plan.stages[0].orbits[0].marks[unit.marks[0]]
        x[where.marks[0] : where.marks[0] + len(mark)] = mark
        fires = np.flatnonzero(gate @ x > -89)
        assert down[:, fires].argmax(axis=0).tolist() == [where.symbols[0] + unit.target]
        assert (gate @ x)[fires[0]] > 89
