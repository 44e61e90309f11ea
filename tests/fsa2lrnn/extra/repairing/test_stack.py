"""Repairs of several layers."""

from pathlib import Path

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, Proved, compile_machine, load, prove_equivalent, repair
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.repairing.lookups import LookUp
from fsa2lrnn.extra.repairing.partition import close, held_partitions
from fsa2lrnn.extra.repairing.stack import lead


def cascade(source, noise, **options):
    """A compiled cascade of several layers, its layers disturbed."""
    machine = MooreMachine.from_source(source)
    model = compile_machine(machine, form="cascade", **options)
    drawn = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.startswith("layers"):
                weight += noise * weight.abs().max() * torch.randn(weight.shape, generator=drawn)
    return model, machine


@pytest.mark.slow
def test_the_kept_model_of_three_layers_is_repaired_and_proved():
    kept = Path(__file__).parents[4] / "experiments/models/arith5/seed-0.safetensors"
    model, machine = load(kept), MooreMachine.from_source("task:mod_arith(5)")
    repaired = repair(model, machine, mode="dyadic", ignore="lacked")
    assert isinstance(prove_equivalent(repaired.model, machine, empty_word=False, ignore="lacked"), Proved)
    assert [kind.block_sizes for kind in repaired.model.config.layers] == [(8,) * 8] * 3
    assert repaired.model.dtype == torch.float32
    counts = [[int(classes.max()) + 1 for classes in layer] for layer in repaired.layers]
    assert max(counts[0]) == max(counts[2]) == 5  # the product in the first layer, the value in the last


@pytest.mark.parametrize("noise", [1e-3, 1e-2])
def test_a_disturbed_cascade_is_proved(noise):
    model, machine = cascade("task:subtraction(3)", noise)
    assert len(model.layers) == 2
    assert not isinstance(prove_equivalent(model, machine, budget=300, empty_word=False), Proved)
    repaired = repair(model, machine, mode="dyadic")
    assert isinstance(prove_equivalent(repaired.model, machine, empty_word=False), Proved)
    assert [len(layer) for layer in repaired.layers] == [2, 1]
    assert repaired.to_json()["layers"][1][0] == repaired.layers[1][0].tolist()


def test_layers_that_carry_too_little_are_named_by_two_words():
    model, machine = cascade("task:even_pair(3)", 0.02, max_block=3)
    with pytest.raises(
        NotExpressible, match=r"carry too little: \('0',\) and \('0', '1'\) lead all of them to one state"
    ):
        repair(model, machine, mode="dyadic")


def test_partitions_are_closed_and_separated():
    cycle = np.array([[1, 2, 3, 0]])
    assert close(np.array([0, 1, 0, 2]), cycle).tolist() == [0, 1, 0, 1]
    rng = np.random.default_rng(0)
    state = rng.integers(0, 4, 400)
    x = np.array([1.0, -1.0])[state % 2][:, None] + 0.05 * rng.standard_normal((400, 1))
    (labels,) = held_partitions(x, state, cycle, [2], 3.0)
    assert labels.tolist() == [0, 1, 0, 1]
    assert held_partitions(rng.standard_normal((400, 1)), state, cycle, [2], 3.0) == []


def test_a_point_among_others_has_no_look_up():
    with pytest.raises(NotExpressible, match="1 of the 3 inputs"):
        LookUp.of(np.array([[0.0], [1.0], [2.0]]))


def test_the_read_out_changes_only_where_it_must():
    hidden, W, b = np.eye(3), np.array([[3.0, 0.0, 1.0], [0.0, 3.0, 2.0]]), np.zeros(2)
    same, bias = lead(hidden, np.array([0, 1, 1]), W, b)
    assert (same == W).all()
    assert (bias == b).all()
    new, bias = lead(hidden, np.array([0, 1, 0]), W, b)
    assert (hidden @ new.T + bias).argmax(1).tolist() == [0, 1, 0]
