"""Representations of learned models."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from fsa2lrnn import MooreMachine, compile_machine, zoo
from fsa2lrnn.errors import NotExact
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.repairing import repair
from fsa2lrnn.repairing.observed import BlockObservations, RepairStates, is_right, observe
from fsa2lrnn.repairing.probe import Block, ReadoutProbe, explained_share, fit, least_change
from fsa2lrnn.repairing.representation import (
    Representation,
    canonical_functions,
    learned_representation,
    mark_of_start,
    nearest_invariant,
    with_constant,
)
from fsa2lrnn.verification.specification import specification_of


def fourier(n, k):
    angles = 2 * np.pi * k * np.arange(n) / n
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def cycle(n):
    return (np.arange(n) + 1)[None] % n


def look(functions, states, noise, seed=0):
    """States of a block that holds the functions, mixed into six numbers, with noise."""
    rng = np.random.default_rng(seed)
    state = np.arange(6_000) % states.initial
    mix = rng.standard_normal((functions.shape[1], 6))
    x = functions[state] @ mix + noise * rng.standard_normal((len(state), 6))
    return BlockObservations(x, state, np.full(len(state), 1 / len(state))), functions[-1] @ mix


def states_of(machine):
    return RepairStates.of(specification_of(compile_machine(machine), machine))


def test_what_blocks_hold_alone_and_in_registers():
    for seed in range(5):
        f = np.random.default_rng(seed).standard_normal((5, 1))
        _, angle, leaving = nearest_invariant(cycle(5), f - f.mean())
        assert leaving > 1e-6 or angle > 0.3
    states = states_of(zoo.sum_mod(5))
    functions = np.vstack([fourier(5, 2), fourier(5, 2)[:1]])
    seen, _ = look(functions, states, 0.01)
    found, told = canonical_functions(seen)
    assert (told[:2] > 0.99).all()
    assert (told[2:] < 0.05).all()
    exact = np.linalg.qr(fourier(5, 2))[0]
    assert np.allclose(found[:, :2] @ found[:, :2].T, exact @ exact.T, atol=0.01)
    assert learned_representation(*look(np.zeros((6, 1)), states, 1.0), states, 0.5) is None
    machine = zoo.even_pair(3)
    states = states_of(machine)
    first = {q: machine.alphabet[word[0]] for q, word in enumerate(states.access_words())}
    values = np.array([[{0: -1.0, 1: 0.3, 2: 1.1}[int(first[q])]] for q in range(states.initial)] + [[0.0]])
    found = learned_representation(*look(values, states, 0.02), states, 0.8)
    assert (found.rank, found.classes) == (2, 3)
    assert (found.phi[:-1, 1] == 0).all()
    assert found.phi[-1, 1] == 1


@pytest.mark.parametrize(("machine", "functions", "rank", "classes"), [
    (zoo.sum_mod(5), fourier(5, 1), 2, 5),
    (zoo.sum_mod(6), fourier(6, 3)[:, :1], 1, 2),
    (zoo.sum_mod(6), np.hstack([fourier(6, 1), fourier(6, 3)[:, :1]]), 3, 6),
])  # fmt: skip
def test_images_of_cycles(machine, functions, rank, classes):
    states = states_of(machine)
    order = np.argsort([machine.outputs.index(output) for output in machine.outputs])
    functions = functions[order[states.numbers]]
    found = learned_representation(*look(functions, states, 0.02), states, 0.8)
    assert (found.rank, found.classes) == (rank, classes)
    assert np.allclose(found.phi[-1], found.phi[list(states.numbers[:-1]).index(states.numbers[-1])])


def test_misses_are_refused_and_the_initial_state_is_marked():
    states = states_of(zoo.sum_mod(5))
    phi = fourier(5, 1)[[*states.numbers[:-1], 0]]
    found = learned_representation(*look(phi, states, 0.02), states, 0.8)
    with pytest.raises(NotExact, match="no affine image"):
        replace(found, B=found.B + 1e-6)
    assert isinstance(replace(found, phi=found.phi), Representation)
    mark = mark_of_start(states_of(zoo.tomita(4)))
    assert mark.phi[:, 0].tolist() == [0, 0, 0, 0, 1]
    assert not mark.is_linear


def test_a_constant_form_is_found_where_a_block_keeps_one(disturbed, work):
    machine = zoo.tomita(4)
    block, image, seen = work(disturbed(machine), machine)[0]
    wider = with_constant(image, seen, block.A, block.v)
    assert wider.is_linear
    assert wider.rank == image.rank + 1
    assert not wider.u.any()
    assert with_constant(image, seen, 0.5 * block.A, block.v) is image


def tables_and_states(model, machine):
    return switched(model).to(torch.float64), RepairStates.of(specification_of(model, machine))


def test_states_of_models_that_are_right_and_of_those_that_are_not():
    machine = zoo.tomita(4)
    tables, states = tables_and_states(compile_machine(machine), machine)
    seen = observe(tables, states)
    assert np.array_equal(seen.head(0).x.argmax(1), states.numbers[seen.state])
    shares = np.bincount(seen.state, seen.weights)
    assert np.allclose(shares, 1 / states.initial)
    machine = zoo.length_mod(3)
    outputs = [machine.outputs[machine.run(machine.alphabet[:1] * k)] for k in range(6)]
    other = MooreMachine([[1, 2, 3, 4, 5, 5]] * 2, outputs, 0, machine.alphabet)  # right on five letters
    tables, states = tables_and_states(compile_machine(other), machine)
    seen = observe(tables, states)
    assert len(seen.state) == 1_200 * 5
    assert len(np.unique(seen.head(0).x, axis=0)) == 5
    machine = zoo.parity()
    wrong = MooreMachine(machine.delta, [not output for output in machine.outputs], machine.start, machine.alphabet)
    tables, states = tables_and_states(compile_machine(wrong), machine)
    with pytest.raises(NotExact, match="train it first"):
        observe(tables, states)
    tables, states = tables_and_states(compile_machine(machine), machine)
    x = torch.full((1, 1, *tables.x0.shape), torch.nan, dtype=torch.float64)
    assert not is_right(tables, states, x, np.array([[0]])).any()


@pytest.fixture(scope="module")
def cycle_of_probe(disturbed, work):
    machine = zoo.sum_mod(5)
    block, image, seen = work(disturbed(machine), machine)[0]
    return block, image, seen, fit(block, image, seen, 1.0)


def test_the_probe_tells_the_image_and_makes_the_equations_exact(cycle_of_probe):
    block, image, seen, probe = cycle_of_probe
    assert image.rank == 4
    assert explained_share(probe, image, seen) > 0.99
    assert explained_share(ReadoutProbe(0 * probe.U, image.phi[seen.state].mean(0)), image, seen) < 0.01
    assert probe.residual(block, image) < 0.05
    assert probe.residual(block, image) > 1e-4
    assert probe.residual(least_change(block, image, probe), image) < 1e-14
    soft, stiff = (fit(block, image, seen, stiffness) for stiffness in (0.01, 30.0))
    assert stiff.residual(block, image) < soft.residual(block, image)
    assert explained_share(stiff, image, seen) < explained_share(soft, image, seen)
    n = len(image.phi)
    mark = Representation(np.eye(n)[:, -1:], np.zeros((5, 1, 1)), np.zeros((5, 1)), image.delta)
    assert explained_share(fit(block, mark, seen, 1.0), mark, seen) == 1.0


def test_changes_are_the_smallest_and_faults_are_found(cycle_of_probe):
    block, image, _, probe = cycle_of_probe
    changed = least_change(block, image, probe)
    unread = np.eye(block.A.shape[1]) - np.linalg.pinv(probe.U) @ probe.U
    rng = np.random.default_rng(0)
    for _ in range(5):
        free = unread @ rng.standard_normal(block.A.shape)
        assert probe.residual(Block(changed.A + free, changed.v, changed.x0), image) < 1e-13
        assert abs((free * (changed.A - block.A)).sum()) < 1e-12
    exact = least_change(block, image, probe)
    for name in ("A", "v", "x0"):
        parts = {part: getattr(exact, part).copy() for part in ("A", "v", "x0")}
        parts[name].flat[0] += 1e-3
        assert probe.residual(Block(**parts), image) > 1e-6
    assert ReadoutProbe(probe.U, probe.c + 1e-3).residual(exact, image) > 1e-6


def test_live_words_and_repairs_in_json():
    states = states_of(zoo.tomita(4))
    sink = next(q for q in range(states.initial) if (states.delta[:, q] == q).all())
    rng = np.random.default_rng(0)
    assert (states.path(states.draw(rng, 50, 30, is_live=True)) != sink).all()
    assert (states.path(states.draw(rng, 50, 30)) == sink).any()
    machine = zoo.sum_mod(3)
    found = repair(compile_machine(machine), machine, mode="dyadic")
    written = json.loads(json.dumps(found.to_json()))
    assert (written["mode"], set(written["places"])) == ("dyadic", {"U", "W", "phi"})
    assert [head["rank"] for head in written["heads"]] == [2]
    assert len(written["heads"][0]["phi"]) == len(written["states"]) == 4
    assert set(written["change"]) == {"A", "v", "x0"}
