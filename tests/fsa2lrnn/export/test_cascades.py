"""Cascades, counters, duals and products of reflections, followed by hand in exact numbers."""

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, decompose, zoo
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.export import cascade_plan
from fsa2lrnn.export.cascade_plan import cascaded
from fsa2lrnn.export.slice_and_dual import ONE, ZERO, dual
from fsa2lrnn.export.transpositions import with_transpositions


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


def check(machine, plan, seed):
    word = np.random.default_rng(seed).integers(len(machine.alphabet), size=60).tolist()
    assert followed(plan, word) == machine.transduce([machine.alphabet[a] for a in word])


WITHOUT_GROUPS = ("dyck(1, 2)", "dyck(2, 2)", "tomita(7)", "contains(abaab)")


@pytest.mark.long_cases("group(A5)-2")
@pytest.mark.parametrize(("source", "n_layers"), [
    ("sum_mod(4)", 2), ("tomita(3)", 7), ("group(D4)", 2), ("resettable_counter(4)", 2), ("sum_mod(3)", 2),
    ("group(S3)", 2), ("group(S4)", 2), ("group(A5)", 2), ("group(D5)", 3), ("all_maps(3)", 4),
    ("resettable_counter(5)", 3), ("cerny(4)", 8), *((source, None) for source in WITHOUT_GROUPS),
])  # fmt: skip
def test_transpositions_above_counters_follow_groups_and_resets_do_without(source, n_layers):
    machine = zoo.from_task(source).minimise()
    plan = cascaded(machine, has_reflections=n_layers is not None)
    if n_layers is None:
        assert not any((orbit.head.betas == 2).any() for stage in plan.stages for orbit in stage.orbits)
    else:
        assert plan.n_layers == n_layers
        assert cascaded(machine, has_reflections=False) is None
    for seed in range(5):
        check(machine, plan, seed)


def test_a_move_from_one_state_alone_is_a_reset():
    """A component of two states moves in one context from one state only, which an exchange would do as well."""
    delta = [[1, 3, 2, 4, 4, 4, 4, 4], [2, 2, 2, 2, 5, 6, 7, 7], [2, 2, 2, 2, 4, 4, 4, 4], range(8)]
    machine = MooreMachine([[*row] for row in delta], range(8))
    plan = cascaded(machine, has_reflections=False)
    assert plan.n_layers == 7
    for seed in range(5):
        check(machine, plan, seed)


def test_cascades_that_do_not_exist():
    assert cascaded(zoo.length_mod(29), has_reflections=True) is None
    plan = cascaded(MooreMachine([[0], [0]], ["x"]), has_reflections=False)
    assert followed(plan, [0, 1, 1]) == ["x"] * 3
    cascade = decompose(zoo.length_mod(29), max_block=29).cascade
    assert with_transpositions(cascade) is None


def test_too_many_units(monkeypatch):
    monkeypatch.setattr(cascade_plan, "MAX_UNITS", 3)
    with pytest.raises(BudgetExceeded, match=r"needs .* units, and 3 are written at most"):
        cascaded(zoo.dyck(1, 2).minimise(), has_reflections=False)


SOURCES = (
    "parity", "sum_mod(5)", "flip_flop", "ab_star", "mod_arith(5)", "group(S4, transpositions)", "even_pair(5)",
    "tomita(7)", "dyck(2, 3)", "cerny(4)", "all_maps(3)", "contains(abaab)",
)  # fmt: skip


def follows(plan):
    """How many states and h any word reaches, 0 where the dual does not show the machine's output at one."""
    start = (plan.machine.start, tuple(plan.start()))
    seen, queue = {start}, [start]
    for q, h in queue:  # grows
        if plan.output(np.array(h)) != plan.machine.outputs[q]:
            return 0
        for a, row in enumerate(plan.machine.delta):
            after = int(row[q]), tuple(plan.step(np.array(h), a))
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return len(seen)


@pytest.mark.parametrize("source", [*SOURCES, *(f"random_dfa(5, 2, seed={i}, minimal=true)" for i in range(20))])
def test_it_follows_the_machine_for_words_of_every_length(source):
    plan = dual(zoo.from_task(source))
    assert follows(plan) == plan.machine.n_states  # h is a function of the state


def test_duals_take_few_coordinates_and_wrong_numbers_show():
    plan = dual(zoo.sum_mod(5))
    for part in (plan.sources, plan.added):
        part[1, 3] += 1
        assert not follows(plan)
        part[1, 3] -= 1
    plan = dual(zoo.flip_flop())
    assert plan.n_coordinates == 3
    assert (plan.sources[:2, 2] == ZERO).all()
    assert (plan.sources[:, ONE] == ONE).all()
    with pytest.raises(BudgetExceeded, match="the dual of these 51 states has more than 40 coordinates"):
        dual(zoo.mod_arith(5), limit=40)
