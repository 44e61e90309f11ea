"""A repair with its measured accuracy."""

import torch

from fsa2lrnn import LRNN, MooreMachine, compile_machine, zoo
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.repairing.evaluation import evaluate_repair, long_accuracy


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
