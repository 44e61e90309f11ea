"""Cascades through layers: followed by hand, from the symbols that units write to the outputs of the last."""

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.extra.huggingface import cascades
from fsa2lrnn.extra.huggingface.cascades import cascaded


def followed(plan, word):
    """What the plan puts out along a word, head by head in exact numbers and unit by unit."""
    held = [[np.zeros_like(orbit.states[0]) for orbit in stage.orbits] for stage in plan.stages]
    ago, outputs = dict[int, int](), list[object]()
    for a in word:
        symbol, marks = a, list[int]()
        for number, stage in enumerate(plan.stages):
            for i, orbit in enumerate(stage.orbits):
                if orbit.head.lags is not None:
                    marks.append(1 + ago[number] if number in ago else 0)
                    continue
                S = held[number][i] = orbit.head.step(held[number][i], symbol)
                (mark,) = (j for j, known in enumerate(orbit.marks) if np.allclose(orbit.head.mark(S), known))
                marks.append(mark)
            ago[number] = symbol
            fired = [
                unit.target
                for unit in stage.units
                if unit.letter in (None, a)
                and all(want in (None, mark) for want, mark in zip(unit.marks, marks, strict=True))
            ]
            assert len(fired) == 1
            (symbol,) = fired
        outputs.append(plan.outputs[symbol])
    return outputs


@pytest.mark.parametrize("source", ["dyck(1, 2)", "dyck(2, 2)", "tomita(7)", "contains(abaab)"])
def test_resets_follow_a_machine_without_groups(source):
    machine = zoo.from_task(source).minimise()
    plan = cascaded(machine, has_reflections=False)
    assert {2.0} & {beta for stage in plan.stages for orbit in stage.orbits for beta in orbit.head.betas} == set()
    rng = np.random.default_rng(0)
    for _ in range(5):
        word = rng.integers(len(machine.alphabet), size=40).tolist()
        assert followed(plan, word) == machine.transduce([machine.alphabet[a] for a in word])


@pytest.mark.parametrize("source", ["sum_mod(4)", "tomita(3)", "group(D4)", "resettable_counter(4)"])
def test_exchanges_follow_groups_made_of_two(source):
    machine = zoo.from_task(source).minimise()
    plan = cascaded(machine, has_reflections=True)
    assert cascaded(machine, has_reflections=False) is None
    word = np.random.default_rng(1).integers(len(machine.alphabet), size=60).tolist()
    assert followed(plan, word) == machine.transduce([machine.alphabet[a] for a in word])


@pytest.mark.parametrize("seed", range(10))
def test_drawn_machines(seed):
    machine = zoo.random_dfa(4, 2, seed, minimal=True)
    plan = cascaded(machine, has_reflections=True)
    word = np.random.default_rng(seed).integers(2, size=40).tolist()
    assert plan is None or followed(plan, word) == machine.transduce([machine.alphabet[a] for a in word])


@pytest.mark.parametrize(
    ("source", "n_layers"),
    [
        ("sum_mod(3)", 3),
        ("group(S3)", 3),
        ("group(S4)", 3),
        ("group(A5)", 3),
        ("group(D5)", 5),
        ("all_maps(3)", 5),
        ("resettable_counter(5)", 5),
        ("cerny(4)", 9),
    ],
)
def test_transpositions_above_counters_follow_other_groups(source, n_layers):
    machine = zoo.from_task(source).minimise()
    plan = cascaded(machine, has_reflections=True)
    assert plan.n_layers == n_layers
    assert cascaded(machine, has_reflections=False) is None
    word = np.random.default_rng(2).integers(len(machine.alphabet), size=60).tolist()
    assert followed(plan, word) == machine.transduce([machine.alphabet[a] for a in word])


def test_too_many_points():
    assert cascaded(zoo.length_mod(29), has_reflections=True) is None


def test_too_many_units(monkeypatch):
    monkeypatch.setattr(cascades, "MAX_UNITS", 3)
    with pytest.raises(BudgetExceeded, match=r"needs .* units, and 3 are written at most"):
        cascaded(zoo.dyck(1, 2).minimise(), has_reflections=False)


def test_one_state():
    plan = cascaded(MooreMachine([[0], [0]], ["x"]), has_reflections=False)
    assert followed(plan, [0, 1, 1]) == ["x"] * 3
