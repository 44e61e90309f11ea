"""DeltaProduct by its recurrence: words of reflections, run in float32, whose matrices close up."""

import numpy as np
import pytest

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import NotExpressible, UnsupportedFormat
from fsa2lrnn.extra.huggingface import delta_product
from fsa2lrnn.extra.huggingface.export import export
from fsa2lrnn.extra.huggingface.refuse import answer


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
    ],
)
def test_states_close_up(task, steps, states):
    plan = delta_product.plan(zoo.from_task(task))
    assert (plan.n_factors, plan.closed()) == (steps, states)


@pytest.mark.parametrize("task", ["sum_mod(5)", "group(A5)", "resettable_counter(3)"])
def test_matrices_tell_outputs_for_ever(task):
    """After 3,000 letters S is one of those that short words reach, to the last bit, and stands for one output."""
    plan = delta_product.plan(zoo.from_task(task))
    machine, states, known = plan.machine, plan.start(), {}
    q = machine.start
    for i, a in enumerate(np.random.default_rng(0).integers(len(machine.alphabet), size=3_000)):
        states, q = plan.step(states, int(a)), int(machine.delta[a, q])
        key = b"".join(S.tobytes() for S in states)
        assert known.setdefault(key, machine.outputs[q]) == machine.outputs[q]
        if i == 2_000:
            most = len(known)
    assert len(known) == most


def test_steps_are_products_of_reflections_by_dyadic_unit_keys():
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


def test_a_changed_factor_is_noticed():
    plan = delta_product.plan(zoo.sum_mod(5))
    ((zero, one, *rest),) = plan.factors
    broken = delta_product.Product(plan.machine, plan.alphas, ((zero, one[::-1], *rest),), plan.how)
    with pytest.raises(NotExpressible, match="one state of the heads would need two outputs"):
        broken.closed()


def test_what_is_no_permutation_is_unknown():
    assert answer(zoo.even_pairs(), "delta-product").kind == "unknown"
    with pytest.raises(NotExpressible, match="not all resets, permutations of at most 8 points"):
        delta_product.plan(MooreMachine([[1, 2, 2], [0, 0, 1]], "xyz"))


def test_there_is_no_model_to_export(tmp_path):
    with pytest.raises(UnsupportedFormat, match="delta-product: its models run on GPUs alone"):
        export(zoo.parity(), "delta-product", tmp_path / "m")


@pytest.mark.parametrize(("task", "steps", "states"), [("ab_star", 7, 3), ("dyck(2, 2)", 23, 8)])
def test_one_to_one_but_for_a_sink(task, steps, states):
    plan = delta_product.plan(zoo.from_task(task))
    assert (plan.n_factors, plan.closed()) == (steps, states)
    assert "exchange or erase" in plan.how
