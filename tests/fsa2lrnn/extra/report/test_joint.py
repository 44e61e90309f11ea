"""Heads of several layers, told from the states that words lead to, against the cascade that was compiled."""

import numpy as np
import pytest
import torch

from fsa2lrnn import LRNN, MooreMachine, compile_machine, zoo
from fsa2lrnn.extra.report import learned as joint
from fsa2lrnn.extra.report.learned import heads_by_layer
from fsa2lrnn.lrnn import BlockLayerConfig, LRNNConfig
from fsa2lrnn.training.data import make_sampler, words


@pytest.fixture(scope="module")
def network():
    return compile_machine(zoo.mod_arith(5), form="cascade", max_block=5)


def test_heads_do_along_words_what_the_network_does(network):
    """Each drawn transition was taken, and each that a random word takes is drawn."""
    machine = zoo.mod_arith(5)
    heads = heads_by_layer(network, machine)
    assert [(head.layer, head.head, head.block, head.states, head.reads, head.reads_last) for head in heads] == [
        (0, 0, 3, 3, [], False), (0, 1, 5, 5, [], False), (1, 0, 5, 5, [1], False),
    ]  # fmt: skip
    drawn = [words(machine, make_sampler(name, machine)) for name in ("live", "uniform")]
    tokens = torch.cat([some.batch(80, 100, some.generator(0)).tokens for some in drawn])
    taken = [set() for _ in heads]
    state = network.initial_state(len(tokens))
    for letters in tokens.unbind(1):
        _, after = network.advance(letters[:, None], state)
        ends = [torch.cat([part.x.argmax(-1) for part in parts], 1).tolist() for parts in (state, after)]
        for before, then, a in zip(*ends, letters.tolist(), strict=True):
            for i, seen in enumerate(taken):
                seen.add((machine.alphabet[a], str(before[i] + 1), str(then[i] + 1)))
        state = after
    for head, seen in zip(heads, taken, strict=True):
        drawn = {
            (letter.rstrip("?"), head.machine.states[q], head.machine.states[row[q]])
            for letter, row in zip(head.machine.alphabet, head.machine.delta, strict=True)
            for q in range(head.states)
            if row[q] >= 0
        }
        assert seen == drawn
    assert not any("?" in letter for head in heads[:2] for letter in head.machine.alphabet)
    assert {letter for letter in heads[2].machine.alphabet if letter.endswith("?")} == {"+?", "-?"}


def test_the_letter_before_is_read_where_it_is_needed():
    steps = joint._Steps(
        before=np.array([[0, 0], [0, 0], [0, 1], [0, 1]]),
        after=np.array([[0, 0], [0, 1], [0, 0], [0, 1]]),
        last=np.array([0, 1, 0, 1]),
        letters=np.zeros(4, np.int64),
    )
    assert joint._reads(steps, 1, 1) == ([], True)
    assert joint._reads(steps, 0, 0) == ([], False)
    machine = joint._machine_of_head(steps, 1, [0, 1], 0, ["a"])
    assert (machine.alphabet, machine.delta) == (["a?", "a?"], [[0, 0], [1, 1]])


def test_the_letter_before_has_one_number_wherever_it_is_met(network):
    steps = joint._steps(network, zoo.mod_arith(5), ())
    assert np.unique(steps.last).tolist() == list(range(9))  # none, and eight letters


def test_large_heads_are_not_drawn_and_other_states_not_read(monkeypatch, network):
    machine = zoo.mod_arith(5)
    assert [head.machine is None for head in heads_by_layer(network, machine, most=4)] == [False, True, True]
    monkeypatch.setattr(joint, "_PAIRS", 1)
    assert [head.states for head in heads_by_layer(network, machine)] == [3, 5, 2]
    assert heads_by_layer(compile_machine(machine), machine) == []
    torch.manual_seed(0)
    layer = BlockLayerConfig((2,), 4, 4)
    drifting = LRNN(LRNNConfig(("0", "1"), (0, 1), (layer, layer), embedding_dim=2, connection="residual"))
    assert heads_by_layer(drifting, MooreMachine([[0, 1], [1, 0]], [0, 1], alphabet="01")) == []
