"""Cascades that are taught, component by component."""

import pytest
import torch

from fsa2lrnn.automata import zoo
from fsa2lrnn.decomposition.search import Search
from fsa2lrnn.errors import BudgetExceeded, InvalidMachine, NotExpressible, UnsupportedFormat
from fsa2lrnn.judge import prove_equivalent
from fsa2lrnn.training.learning import cascades
from fsa2lrnn.training.learning.cascades import distil_cascade, placed
from fsa2lrnn.verdicts import Proved, Refuted


def cascade_of(machine, largest=8):
    return Search(machine, largest, token_shift=True).cheapest(counted=False).cascade


def test_every_component_stands_above_those_it_reads():
    for machine in (zoo.mod_arith(5), zoo.mod_arith(5, "eager"), zoo.even_pair(5), zoo.group("S4")):
        cascade = cascade_of(machine)
        places = placed(cascade, 3, (8, 8))
        layer_of = {i: number for number, heads in enumerate(places) for i in heads if i is not None}
        assert sorted(layer_of) == list(range(len(cascade.components)))
        for i, component in enumerate(cascade.components):
            assert all(layer_of[j] < layer_of[i] for j in component.reads)
    assert [len([i for i in heads if i is not None]) for heads in placed(cascade_of(zoo.mod_arith(5)), 3, (8, 8))] == [
        1, 1, 1,
    ]  # fmt: skip


def test_what_does_not_fit_is_said():
    with pytest.raises(NotExpressible, match=r"components of \[3, 5, 5\] states, .* do not fit into 1 layers"):
        placed(cascade_of(zoo.mod_arith(5)), 1, (8, 8))
    with pytest.raises(NotExpressible, match=r"do not fit into 3 layers of blocks \(4, 4\)"):
        placed(cascade_of(zoo.mod_arith(5)), 3, (4, 4))


def test_a_cascade_of_two_is_taught_and_proved():
    found = distil_cascade("task:sum_mod(4)", layers=2, blocks=(2, 2))
    assert found.is_proved
    assert [layer.block_sizes for layer in found.model.recurrences] == [(2, 2), (2, 2)]
    assert isinstance(prove_equivalent(found.model, zoo.sum_mod(4)), Proved)
    with torch.no_grad():  # a network in which a layer is another's mirror is refuted
        found.model.recurrences[1].transition.weights.b2.neg_()
        found.model.recurrences[1].transition.weights.W2.neg_()
    assert isinstance(prove_equivalent(found.model, zoo.sum_mod(4)), Refuted)


@pytest.mark.slow
def test_what_was_taught_in_part_is_trained_on_as_a_whole(monkeypatch):
    monkeypatch.setattr(cascades, "_SURE", 0)
    monkeypatch.setattr(cascades, "_until_sure", lambda optimiser, step, _: [_once(optimiser, step) for _ in range(25)])
    found = distil_cascade("task:sum_mod(4)", layers=2, blocks=(2, 2), recipe=cascades.Recipe(rate=0.01, steps=3_000))
    assert found.steps > 0
    assert found.is_proved


def _once(optimiser, step):
    loss, _ = step()
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()


def test_what_can_not_be_taught_is_said(monkeypatch):
    monkeypatch.setattr(cascades, "_STEPS", 3)
    with pytest.raises(BudgetExceeded, match="layer 0 could not be taught in 3 batches: give gates more units"):
        distil_cascade("task:sum_mod(4)", layers=2, blocks=(2, 2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_mod_arith_in_three_layers_of_two_blocks_of_eight(seed):
    recipe = cascades.Recipe(rate=0.003, steps=2_000, seed=seed)
    found = distil_cascade("task:mod_arith(5)", 3, (8, 8), recipe=recipe)
    assert found.is_proved
    assert found.scope == "every legal word, at the positions that count"
    assert [layer.block_sizes for layer in found.model.recurrences] == [(8, 8)] * 3


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"layers": 1}, "layers = 1: a cascade is taught to two or more"),
        ({"blocks": ()}, "all of one size"),
        ({"blocks": (4, 2)}, r"blocks = \(4, 2\): a layer's heads are one or more, all of one size"),
    ],
)
def test_layers_that_are_not_built_so_are_refused(shape, message):
    with pytest.raises(UnsupportedFormat, match=message):
        distil_cascade("task:sum_mod(4)", **{"layers": 2, "blocks": (4, 4), **shape})


def test_a_teacher_over_other_letters_is_refused():
    with pytest.raises(InvalidMachine):
        distil_cascade("task:parity", layers=2, blocks=(2, 2), teacher=zoo.ab_star())
