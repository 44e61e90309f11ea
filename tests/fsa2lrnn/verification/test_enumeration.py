"""Enumeration, against all words."""

import itertools

import torch

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.deadline import Deadline
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.check import check
from fsa2lrnn.verification.enumeration import explore
from fsa2lrnn.verification.specification import specification_of


def test_an_enumeration_ends_before_the_first_wrong_word():
    machine = zoo.sum_mod(3)
    config = LRNNConfig(machine.alphabet, (0, 1, 2), (BlockLayerConfig((2,), 4, 4),) * 2, embedding_dim=2)
    torch.manual_seed(0)
    model = LRNN(config)
    certificate = certify(model, machine)
    words = torch.tensor(list(itertools.product(range(3), repeat=certificate.horizon + 1)))
    goal = specification_of(model, machine)
    wrong = model(words, "sequential").argmax(-1).numpy() != goal.wanted[goal.path(words.numpy())]
    assert wrong[:, -1].any()
    assert not wrong[:, :-1].any()
    check(certificate, model)


def test_budget_and_length_end_it_and_states_after_which_nothing_counts_are_left_out():
    machine = zoo.sum_mod(5)
    model = compile_machine(machine)
    goal = specification_of(model, machine)
    assert explore(model, goal, lambda steps: steps <= 4).length == 0
    assert explore(model, goal, lambda _: True, longest=1).is_closed is False
    whole = explore(model, goal, lambda _: True)
    assert (whole.is_closed, whole.pairs, whole.steps) == (True, 5, 25)
    trap = MooreMachine([[1, 1], [1, 1]], [0, "?"], 0, "ab")
    small = compile_machine(MooreMachine([[1, 1], [1, 1]], [0, 1], 0, "ab"))
    left_out = explore(small, specification_of(small, trap, "lacked"), lambda _: True)
    assert (left_out.pairs, left_out.steps) == (1, 0)


def test_a_deadline_ends_it_after_a_whole_length(monkeypatch):
    machine = zoo.sum_mod(5)
    model, left = compile_machine(machine), iter([1.0])
    monkeypatch.setattr(Deadline, "left", lambda _: next(left, 0.0))
    found = explore(model, specification_of(model, machine), lambda _: True, deadline=Deadline(1.0))
    assert (found.length, found.is_closed, found.is_wrong) == (1, False, False)
