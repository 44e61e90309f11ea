"""Registers, alone and behind windows."""

import numpy as np
import pytest

from fsa2lrnn import zoo
from fsa2lrnn.extra.huggingface.registers import register, two_stages, windowed


def test_a_register_holds_what_was_written():
    found = register(zoo.flip_flop().delta)
    assert len(found.states) == 3
    assert register(zoo.parity().delta) is None


@pytest.mark.parametrize(
    ("machine", "length", "n_values"),
    [(zoo.ab_star(), 1, 2), (zoo.shift_register(2), 2, 1), (zoo.tomita(1), 1, 2)],
)
def test_windows(machine, length, n_values):
    found = windowed(machine.minimise(), length)
    assert found.n_values == n_values


@pytest.mark.parametrize("machine", [zoo.parity(), zoo.sum_mod(5), zoo.dyck(1, 3)])
def test_what_no_window_helps(machine):
    assert all(windowed(machine.minimise(), length) is None for length in (1, 2))


def test_two_stages_follow_the_machine():
    """The plan by itself: letters before, what they write, what the units of the second layer then say."""
    machine = zoo.ab_star().minimise()
    plan = two_stages(machine, windowed(machine, 1))
    write = {(unit.letter, unit.marks): unit.target for unit in plan.stages[0].units}
    read = {(unit.letter, unit.marks): unit.target for unit in plan.stages[1].units}
    rng = np.random.default_rng(0)
    for _ in range(20):
        held, before = None, 0
        word = rng.integers(2, size=12)
        for a, output in zip(word, machine.transduce([machine.alphabet[a] for a in word]), strict=True):
            wanted = write[a, (before,)]
            held = held if wanted == plan.stages[0].n_symbols - 1 else wanted
            marks = (before, *(int(i == held) for i in range(len(plan.stages[1].orbits))))
            assert plan.outputs[read[a, marks]] == output
            before = 1 + a
