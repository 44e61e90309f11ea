"""Weights of gated delta layers: what a narrower one is not asked for, and units of which one fires."""

import numpy as np
import pytest

from fsa2lrnn import zoo
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.huggingface.construct import construct
from fsa2lrnn.extra.huggingface.gated_delta import SHOWN, mixer, units
from fsa2lrnn.extra.huggingface.stream import LETTER, layout


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
        x[where.marks[0] : where.marks[0] + len(mark)] = SHOWN / LETTER * mark
        x *= np.sqrt(where.width)
        fires = np.flatnonzero(gate @ x > -89)
        assert down[:, fires].argmax(axis=0).tolist() == [where.symbols[0] + unit.target]
        assert (gate @ x)[fires[0]] > 89
