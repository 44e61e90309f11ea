"""sLSTM as the package xlstm runs it, where that is installed; the threshold units that are written into it."""

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, zoo
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.extra.huggingface import slstm
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.extra.huggingface.refuse import answer
from fsa2lrnn.optional import is_installed
from fsa2lrnn.verdicts import Proved

has_it = pytest.mark.skipif(not is_installed("xlstm"), reason="xlstm is not installed")
MACHINES = ("parity", "flip_flop", "ab_star", "sum_mod(5)", "group(S3)", "mod_arith(2)")


@pytest.mark.parametrize("task", ["parity", "group(S5)", "mod_arith(5)"])
def test_it_holds_what_has_units_enough(task):
    said = answer(zoo.from_task(task), "slstm")
    assert (said.kind, said.refusal) == ("yes", None)
    assert said.plan.width == 2 * 4 ** round(np.log2(said.plan.width / 2) / 2)


@pytest.mark.parametrize("task", MACHINES)
def test_one_unit_fires_and_says_which_state_it_is(task):
    plan = slstm.plan(zoo.from_task(task))
    machine, q = plan.machine, plan.machine.start
    for a in np.random.default_rng(0).integers(len(machine.alphabet), size=50):
        comes = machine.delta[plan.letters, q] == plan.targets
        (fired,) = np.flatnonzero(comes & (plan.letters == a))
        q = int(machine.delta[a, q])
        assert plan.targets[fired] == q


def test_too_many_units_are_counted_out():
    many = MooreMachine([[*range(1, 700), 0]] * 3, range(700))
    with pytest.raises(BudgetExceeded, match=r"2,100 units, .* and 3 letters need an embedding of 8,192, and 2,048 is"):
        slstm.plan(many)


def test_one_precision():
    with pytest.raises(UnsupportedFormat, match="slstm adds up thousands of thresholds in float32"):
        slstm.build(slstm.plan(zoo.parity()), torch.bfloat16)


@has_it
@pytest.mark.parametrize("task", MACHINES)
def test_single_letters_and_their_whole_words_agree_with_the_machine(exported, agrees, task):
    folder, written = exported(task, "slstm")
    assert written.verdict.pairs == 1 + len(written.plan.letters)
    model = load(folder)
    word = np.random.default_rng(0).integers(len(model.machine.alphabet), size=60).tolist()
    assert agrees(model, word)
    with torch.no_grad():
        found = model.model(torch.tensor([word]))[0].argmax(dim=1)
    assert torch.equal(found, model.code.read(model.model, torch.tensor(word), None)[0])


@has_it
def test_what_it_puts_out_is_one_and_minus_one_exactly(exported):
    model = load(exported("sum_mod(5)", "slstm")[0])
    _, cache = model.code.read(model.model, torch.tensor([1, 4, 0, 2, 2, 3]), None)
    (state,) = model.code.state(model.model, cache)
    y, c, n, m = state[:, 0]
    assert set(y.tolist()) == {-1.0, 0.0, 1.0}
    assert torch.equal(y, c)
    assert set(n.tolist()) == {1.0}
    assert not m.any()


@has_it
@pytest.mark.parametrize("part", ["zgate.weight", "slstm_cell._recurrent_kernel_", "slstm_cell._bias_"])
def test_a_changed_weight_is_noticed(exported, part):
    model = load(exported("sum_mod(5)", "slstm")[0])
    with torch.no_grad():
        model.model.xlstm_block_stack.blocks[0].xlstm.get_parameter(part).neg_()
    assert not isinstance(prove(model, budget=200), Proved)


@has_it
@pytest.mark.slow
@pytest.mark.parametrize("task", [*MACHINES, "mod_arith(5)", "group(S5, transpositions)"])
def test_a_hundred_thousand_letters(exported, agrees, task):
    model = load(exported(task, "slstm")[0])
    word = np.random.default_rng(2).integers(len(model.machine.alphabet), size=100_000).tolist()
    assert agrees(model, word)
