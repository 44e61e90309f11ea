"""Cascades, counters, duals and products of reflections, followed by hand in exact numbers."""

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, decompose, zoo
from fsa2lrnn.errors import BudgetExceeded, NotExpressible, UnsupportedFormat
from fsa2lrnn.extra.huggingface import cascades, delta_product
from fsa2lrnn.extra.huggingface.cascades import cascaded
from fsa2lrnn.extra.huggingface.counters import with_transpositions
from fsa2lrnn.extra.huggingface.export import export
from fsa2lrnn.extra.huggingface.pd_ssm import ONE, ZERO, dual
from fsa2lrnn.extra.huggingface.refuse import answer


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


@pytest.mark.parametrize(
    ("source", "n_layers"),
    [
        ("sum_mod(4)", 3), ("tomita(3)", 7), ("group(D4)", 3), ("resettable_counter(4)", 3), ("sum_mod(3)", 3),
        ("group(S3)", 3), ("group(S4)", 3), ("group(A5)", 3), ("group(D5)", 5), ("all_maps(3)", 5),
        ("resettable_counter(5)", 5), ("cerny(4)", 9), *((source, None) for source in WITHOUT_GROUPS),
    ],
)  # fmt: skip
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


def test_cascades_that_do_not_exist():
    assert cascaded(zoo.length_mod(29), has_reflections=True) is None
    plan = cascaded(MooreMachine([[0], [0]], ["x"]), has_reflections=False)
    assert followed(plan, [0, 1, 1]) == ["x"] * 3
    cascade = decompose(zoo.length_mod(29), max_block=29).cascade
    assert with_transpositions(cascade) is None


def test_too_many_units(monkeypatch):
    monkeypatch.setattr(cascades, "MAX_UNITS", 3)
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


@pytest.mark.parametrize(
    ("task", "steps", "states"),
    [
        ("parity", 1, 2),
        ("flip_flop", 1, 3),
        ("sum_mod(3)", 2, 3),
        ("sum_mod(5)", 6, 5),
        ("group(S4)", 3, 24),
        ("group(A5)", 4, 60),
        ("group(S5, transpositions)", 1, 120),
        ("resettable_counter(3)", 2, 3),
        ("ab_star", 7, 3),
        ("dyck(2, 2)", 23, 8),
    ],
)
def test_states_close_up(task, steps, states):
    plan = delta_product.plan(zoo.from_task(task))
    assert (plan.n_factors, plan.closed()) == (steps, states)
    assert ("exchange or erase" in plan.how) == (task in ("ab_star", "dyck(2, 2)"))


def test_factors_are_reflections_and_a_changed_one_is_noticed():
    plan = delta_product.plan(zoo.sum_mod(5))
    for word in plan.factors[0]:
        for key, value, beta in word:
            assert key @ key == 1
            assert set(key.tolist()) <= {0.0, 0.5, 1.0}
            assert np.array_equal(value, 64 * key)
            assert beta in (0, 2)
    turn = np.eye(len(key))
    for key, _, beta in plan.factors[0][1]:
        turn = (np.eye(len(key)) - beta * np.outer(key, key)) @ turn
    assert np.array_equal(np.linalg.matrix_power(turn, 5), np.eye(len(key)))
    assert not np.array_equal(turn, turn.T)  # a rotation, which one step is not
    ((zero, one, *rest),) = plan.factors
    broken = delta_product.Product(plan.machine, plan.alphas, ((zero, one[::-1], *rest),), plan.how)
    with pytest.raises(NotExpressible, match="one state of the heads would need two outputs"):
        broken.closed()


def test_what_is_no_permutation_is_unknown_and_nothing_is_exported(tmp_path):
    assert answer(zoo.even_pairs(), "delta-product").kind == "unknown"
    with pytest.raises(NotExpressible, match="not all resets, permutations of at most 8 points"):
        delta_product.plan(MooreMachine([[1, 2, 2], [0, 0, 1]], "xyz"))
    with pytest.raises(UnsupportedFormat, match="delta-product: its models run on GPUs alone"):
        export(zoo.parity(), "delta-product", tmp_path / "m")
