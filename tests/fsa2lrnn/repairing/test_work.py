"""Repairs at work, and forgetting in finitely many steps."""

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, Proved, compile_machine, prove_equivalent, zoo
from fsa2lrnn.errors import NotExact, NotExpressible, UnsupportedFormat
from fsa2lrnn.nn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.nn.switched import Readout, switched
from fsa2lrnn.repairing import evaluate_repair, long_accuracy, repair
from fsa2lrnn.training.data import make_sampler, words
from fsa2lrnn.training.evaluate import count

MACHINES = {
    "sum": zoo.sum_mod(5), "pair": zoo.even_pair(3), "tomita": zoo.tomita(4), "group": zoo.group("S3"),
    "flip-flop": zoo.flip_flop(), "dyck": zoo.dyck(1, 3),
}  # fmt: skip


def long_words(model, machine):
    """How many of 4 words of 25,000 letters are right at every position, half of them kept out of sinks."""
    total = 0
    for sampler in ("uniform", "live"):
        drawn = words(machine, make_sampler(sampler, machine), model.outputs)
        total += count(model, drawn, 25_000, 2, drawn.generator(7)).whole
    return total


@pytest.mark.parametrize("name", MACHINES)
def test_a_disturbed_model_is_right_for_ever(name, disturbed):
    machine = MACHINES[name]
    model = disturbed(machine)
    found = repair(model, machine)
    assert long_words(found.model, machine) == 4
    (head,) = found.heads
    assert head.image.rank == machine.minimise().n_states  # faithful, and the sum of the one-hot entries beside it
    assert head.image.classes == len(np.unique(machine.minimise().delta))
    assert head.residual_after < 1e-12 < head.residual_before
    assert found.change.A < 0.05
    assert type(found.model) is type(model)


@pytest.mark.long_cases("pair")
@pytest.mark.parametrize("name", ["sum", "tomita", "pair", "group", "flip-flop"])
def test_a_dyadic_model_is_proved_in_float32(name, disturbed):
    machine = MACHINES[name]
    found = repair(disturbed(machine, dtype=torch.float32), machine, mode="dyadic")
    verdict = prove_equivalent(found.model, machine, empty_word=False)
    assert isinstance(verdict, Proved)
    assert verdict.arithmetic == "float32"
    assert all(head.residual_after == 0 for head in found.heads)


def test_dead_beat_models_are_right(disturbed):
    machine = MACHINES["sum"]
    found = repair(disturbed(machine), machine, mode="deadbeat")
    assert long_words(found.model, machine) == 4
    assert np.linalg.matrix_rank(switched(found.model).A[0, 0].numpy(), 1e-9) == 4


def test_constructed_models_stay_and_options_are_checked(disturbed):
    machine = zoo.cycle_navigation(5)
    found = repair(compile_machine(machine).double(), machine)
    assert found.change.A < 1e-12
    assert found.change.x0 < 1e-12
    torch.manual_seed(0)
    untrained = LRNN(LRNNConfig(tuple("01234"), tuple(range(5)), (BlockLayerConfig((2, 2), 4, 4),)))
    machine = zoo.sum_mod(5)
    with pytest.raises(NotExact, match="nothing to repair from"):
        repair(untrained, MooreMachine(machine.delta, range(5), machine.start, "01234"))
    machine = zoo.parity()
    model = disturbed(machine)
    with pytest.raises(UnsupportedFormat, match="mode 'best' is not known"):
        repair(model, machine, mode="best")
    with pytest.raises(UnsupportedFormat, match="2 layers"):
        repair(compile_machine(zoo.even_pair(5), form="cascade", max_block=5), zoo.even_pair(5))


def test_a_model_that_carries_nothing_is_refused():
    """Parity of the last three letters, read off a number of which each is a digit."""
    letters = np.array(np.meshgrid([1, 2], [0, 1, 2], [0, 1, 2], indexing="ij")).reshape(3, -1).T  # 0: none yet
    code = letters @ np.array([1.0, 0.1, 0.01])
    odd = np.where((letters == 2).sum(1) % 2, 1.0, -1.0)
    order = np.argsort(code)
    knots, slopes = code[order], np.diff(odd[order]) / np.diff(code[order])
    bends = np.diff(np.concatenate([[0.0], slopes, [0.0]]))  # f(x) = f(first knot) + Σ bend·relu(x − knot)
    W2 = torch.tensor(np.stack([-bends, bends]))
    b2 = torch.tensor([-odd[order][0], odd[order][0]])
    readout = Readout(torch.ones(len(knots), 1).double(), torch.tensor(-knots), W2, b2)
    A, v, x0 = torch.full((2, 1, 1, 1), 0.1), torch.tensor([1.0, 2.0]).reshape(2, 1, 1), torch.zeros(1, 1)
    model = LRNN.from_tables(A.double(), v.double(), x0.double(), readout, outputs=(False, True))
    with pytest.raises(NotExpressible, match="no block carries"):
        repair(model, MooreMachine([[0, 1], [1, 0]], [False, True]))


def test_accuracy_counts_outputs_that_the_model_has():
    parity = zoo.parity()
    model = compile_machine(parity)
    wrong = MooreMachine(parity.delta, [not output for output in parity.outputs], 0, parity.alphabet)
    assert (long_accuracy(model, parity, 40_000), long_accuracy(model, wrong, 500)) == (1.0, 0.0)
    broken = compile_machine(parity)
    with torch.no_grad():
        broken.readout[2].bias.fill_(torch.nan)
    assert long_accuracy(broken, parity, 100) == 0.0
    machine = zoo.mod_arith(2)
    model = compile_machine(machine)
    assert long_accuracy(model, machine, 300) == 1.0


def test_a_model_that_cannot_be_repaired_says_why():
    machine = zoo.parity()
    tables = switched(compile_machine(zoo.tomita(1)))
    still = LRNN.from_affine(type(tables)(0 * tables.A, 0 * tables.v, tables.x0, tables.readout, (0, 1), (False, True)))
    repair = evaluate_repair(still, MooreMachine(machine.delta, (False, True), 0, (0, 1)), "least")
    assert repair.repaired is None
    assert "train it first" in repair.refused
    assert repair.to_json() == {"mode": "least", "refused": repair.refused}
