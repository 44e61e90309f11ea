"""A user's file, read by a strict type checker in test_package.py: the public names have the types that it says.

A line that ends with `# refused` is one that the checker must refuse.
"""

from collections.abc import Hashable
from pathlib import Path
from typing import assert_type

import torch
from torch import Tensor, nn

import fsa2lrnn
from fsa2lrnn import (
    LRNN,
    MooreMachine,
    Recurrence,
    certify,
    check,
    compile_machine,
    compile_recurrence,
    equivalent,
    extract,
    extract_learned,
    falsify,
    load,
    prove_equivalent,
    repair,
    represent,
    save,
    wrap,
    zoo,
)
from fsa2lrnn.families import Impossibility
from fsa2lrnn.nn import scan
from fsa2lrnn.verification import Accepted, Proved, Refuted, Undecided
from fsa2lrnn.verification.certificate import Certificate
from fsa2lrnn.verification.falsify import Budget


def machines() -> MooreMachine:
    assert_type(zoo.sum_mod(5), MooreMachine)
    machine = MooreMachine.from_source("regex:(ab)*")
    assert_type(machine.alphabet, tuple[Hashable, ...])
    assert_type(machine.n_states, int)
    assert_type(machine.minimise(), MooreMachine)
    assert_type(equivalent(machine, machine), tuple[Hashable, ...] | None)
    MooreMachine([[0, 1]], [True, False], starting_state=0)  # refused
    return machine


def models(machine: MooreMachine, path: Path) -> LRNN:
    model = compile_machine(machine, form="cascade", max_block=8)
    assert_type(model, LRNN)
    assert_type(compile_recurrence(machine), Recurrence)
    logits, state = model.advance(torch.zeros(1, 3, dtype=torch.int64), model.initial_state(), method="pscan")
    assert_type(logits, Tensor)
    assert_type(model.advance(torch.zeros(1, 1, dtype=torch.int64), state)[0], Tensor)
    save(model, path)
    assert_type(load(path), LRNN)
    compile_machine(machine, form="one-hot")  # refused
    compile_machine("regex:(ab)*")  # refused
    return model


def judged(model: LRNN, machine: MooreMachine) -> str:
    verdict = prove_equivalent(model, machine)
    assert_type(verdict, Proved | Refuted | Undecided)
    certificate = certify(model, machine, memory=3)
    assert_type(certificate, Certificate)
    assert_type(check(certificate, model), Accepted)
    assert_type(repair(model, machine, mode="dyadic").model, LRNN)
    assert_type(extract(model), MooreMachine)
    prove_equivalent(machine, model)  # refused
    print(verdict.word)  # refused
    match verdict:
        case Proved():
            return f"{verdict.pairs} pairs, {verdict.covers}"
        case Refuted():
            return f"{verdict.word}"
        case Undecided():
            return f"{verdict.checked_length}"


def modules_of_ones_own(module: nn.Module, machine: MooreMachine) -> None:
    model = wrap(module, machine.alphabet, (False, True))
    assert_type(falsify(model, machine, Budget(seconds=1)), Refuted | Undecided)
    assert_type(extract_learned(model).machine, MooreMachine)
    prove_equivalent(model, machine)  # refused


def layers(machine: MooreMachine) -> None:
    answer = represent(machine, "lti")
    if isinstance(answer, Impossibility):
        assert_type(answer.family, str)
    states = scan(torch.zeros(2, 3, 1, 4, 4), torch.zeros(2, 3, 1, 4), torch.zeros(2, 1, 4), method="fused")
    assert_type(states, Tensor)
    fsa2lrnn.compile_automaton(machine)  # refused
