"""Alignment of learned states with automata."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from fsa2lrnn import LRNN, MooreMachine, compile_machine, zoo
from fsa2lrnn.errors import InvalidMachine, NotExact, UnsupportedFormat
from fsa2lrnn.extra.report import learned as joint
from fsa2lrnn.extra.report.align import align, cycles
from fsa2lrnn.extra.report.learned import heads_by_layer
from fsa2lrnn.lrnn import BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.switched import Readout, SwitchedAffine
from fsa2lrnn.testing import strategies
from fsa2lrnn.training.data import make_sampler, words


def check_exact(found):
    for head in found.heads:
        assert max(head.closure, head.residual, head.step_error) < 1e-9
        assert all(r2 > 1 - 1e-9 for r2 in head.r2)
    assert found.changed_without_rest == 0


@given(strategies.machines(max_states=5))
@settings(max_examples=25)
def test_constructed_models_have_no_residue(machine):
    found = align(compile_machine(machine, layout="dense"), machine, n_words=60, length=12)
    check_exact(found)
    assert found.n_states == machine.minimise().n_states
    assert found.probe.r2 == pytest.approx(1)
    assert found.probe.worst_error < 1e-9
    assert found.probe.accuracy == 1


def rotations(n, ks, reads=()):
    """Sum(n) by turning the plane of head h by 2π·ks[h]·a/n at letter a, and heads that hold the last letter."""
    heads = len(ks) + len(reads)
    A, v = torch.zeros(n, heads, 2, 2).double(), torch.zeros(n, heads, 2).double()
    for a in range(n):
        for h, k in enumerate(ks):
            t = 2 * np.pi * k * a / n
            A[a, h] = torch.tensor([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
        for h, size in enumerate(reads, len(ks)):
            v[a, h] = torch.tensor([size * a, size])
    x0 = torch.tensor([[1.0, 0.0]] * heads).double()
    angles = 2 * np.pi * ks[0] * torch.arange(n).double() / n
    W = torch.zeros(n, 2 * heads).double()
    W[:, 0], W[:, 1] = angles.cos(), angles.sin()
    return SwitchedAffine.of(A, v, x0, Readout.linear(W, torch.zeros(n).double()), [str(a) for a in range(n)])


def test_frequencies_are_found():
    machine = zoo.sum_mod(5)
    found = align(rotations(5, (2, 1), reads=(0.1,)), machine, n_words=100)
    check_exact(found)
    assert (found.carrying, found.needed) == ([0, 1], [0])
    assert [head.kind for head in found.heads] == ["cyclic", "cyclic", "unused"]
    assert [(head.cycle.letter, head.cycle.length, head.cycle.frequency) for head in found.heads[:2]] == [
        (1, 5, 2),
        (1, 5, 1),
    ]
    assert all(head.cycle.share == pytest.approx(1) for head in found.heads[:2])
    first = found.heads[0]
    assert np.abs(np.fft.fft(np.array(first.functions), axis=1)).sum(0)[[1, 4]] == pytest.approx(0, abs=1e-9)
    assert first.beyond_circle == pytest.approx(0)
    assert first.eigenvalues[1][0] == pytest.approx([np.cos(4 * np.pi / 5), np.sin(4 * np.pi / 5)])
    assert found.heads[2].beyond_circle == -1
    assert sum(head.variance for head in found.heads) == pytest.approx(1)
    assert first.changed > 0.5
    assert found.heads[1].changed == 0


@pytest.mark.parametrize("noise", [1e-3, 1e-2])
def test_a_disturbed_block_leaves_a_residue_of_its_size(noise):
    tables = rotations(5, (1, 2))
    torch.manual_seed(0)
    A = tables.A.clone()
    A[3, 1] += noise * torch.randn(2, 2)
    found = align(replace(tables, A=A), zoo.sum_mod(5), n_words=200, length=10)
    assert found.heads[0].residual < 1e-9
    assert noise / 5 < found.heads[1].residual < noise * 5
    assert noise / 5 < found.heads[1].step_error < noise * 5


def test_outputs_that_do_not_count_and_columns():
    tables = rotations(4, (1,))
    model = compile_machine(zoo.sum_mod(4), p=1.5, normalisation="none")
    assert align(model, zoo.sum_mod(4), n_words=20).p == 1.5
    diagonal = (0.5**0.6 * 2) ** (1 / 1.2)  # columns of an eighth of a turn
    turned = align(rotations(8, (1,)), zoo.sum_mod(8), n_words=20)
    assert turned.heads[0].columns == pytest.approx([1, 1, (1 + diagonal) / 2, diagonal, diagonal])
    assert align(tables, zoo.sum_mod(4), n_words=20).heads[0].columns == pytest.approx([1] * 5)
    found = align(compile_machine(zoo.sum_mod(3)), zoo.sum_mod(3), n_words=20)
    value = json.loads(json.dumps(found.to_json()))
    assert value["heads"][0]["cycle"] == {"letter": 1, "length": 3, "frequency": 1, "share": pytest.approx(1)}
    assert (value["carrying"], value["needed"], value["n_states"]) == ([0], [0], 3)
    assert cycles(np.array([1, 0, 3, 4, 2, 5, 0])) == [[0, 1], [2, 3, 4]]
    with pytest.raises(InvalidMachine, match="the alphabets differ"):
        align(compile_machine(zoo.sum_mod(3)), zoo.sum_mod(4))
    with pytest.raises(UnsupportedFormat, match="only one layer with tables"):
        align(compile_machine(zoo.mod_arith(5), form="cascade"), zoo.mod_arith(5))
    machine = MooreMachine([[0, 0], [0, 0]], ["other", "x"], 1)
    model = compile_machine(MooreMachine(machine.delta, ["y", "x"], 1))
    found = align(model, machine, n_words=5, length=5)
    assert [head.changed for head in found.heads] == [0.0]


@pytest.mark.parametrize("factor", [1e30, float("nan")])
def test_states_that_overflow_are_refused(factor):
    tables = rotations(5, (1,))
    with pytest.raises(NotExact, match="not finite along words of 40 letters"):
        align(replace(tables, A=factor * tables.A), zoo.sum_mod(5), n_words=3)


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
                seen.add((machine.alphabet[a], str(before[i]), str(then[i])))
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
