"""No certificate is ever contradicted: by all words as floats compute them, by steps and logits of sampled states."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fsa2lrnn.automata import MooreMachine, zoo
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.lower import compile_machine
from fsa2lrnn.lrnn import LRNN, BlockLayerConfig, LRNNConfig
from fsa2lrnn.lrnn.scans import scan_tokens
from fsa2lrnn.lrnn.switched import Readout, SwitchedAffine, switched
from verify.certify import certify, closure, default_slack
from verify.check import check
from verify.check.replay import Replay
from verify.targets import DOES_NOT_COUNT, target

from .conftest import model_of, perturbed, perturbed_machines

SCANS = ("sequential", "fused", "letters")


def worst_margins(model, machine, length, method):
    """The least margin at each length, over all words, from logits as this scan and the read-out compute them."""
    goal = target(model, machine)
    words = np.array(list(itertools.product(range(len(model.alphabet)), repeat=length)))
    wanted = goal.wanted[goal.states(words)]
    tables = switched(model)
    x = scan_tokens(torch.from_numpy(words), tables.A, tables.v, tables.x0, method)
    logits = tables.logits(x).double().numpy()
    at = np.maximum(wanted, 0)[..., None]
    own = np.take_along_axis(logits, at, -1)[..., 0]
    np.put_along_axis(logits, at, -np.inf, -1)
    return np.where(wanted == DOES_NOT_COUNT, np.inf, own - logits.max(-1)).min(0)


def assert_uncontradicted(certificate, tables, machine):
    n = len(tables.alphabet)
    length = 12 if n == 1 else int(np.log(5_000) / np.log(n))
    length = min(length, 12 if certificate.horizon is None else certificate.horizon)
    if not length:
        return
    for method in SCANS:
        margins = worst_margins(model_of(tables), machine, length, method)
        claimed = certificate.margins[:length]
        assert (margins[: len(claimed)] >= claimed).all()
        assert (margins > 0).all()


@settings(max_examples=12)
@given(perturbed_machines())
def test_no_word_contradicts_a_certificate(drawn):
    machine, tables = drawn
    certificate = certify(tables, machine, memory=1)
    event(f"horizon {'for ever' if certificate.horizon is None else min(certificate.horizon, 20) // 5 * 5}")
    assert_uncontradicted(certificate, tables, machine)
    check(certificate, tables)


@pytest.mark.parametrize("memory", [1, 2, 3])
def test_drifting_tables(drifting, memory):
    machine, tables = drifting
    certificate = certify(tables, machine, memory)
    assert certificate.memory == memory
    assert 5 < certificate.horizon < 100
    assert_uncontradicted(certificate, tables, machine)
    check(certificate, tables)


def test_horizons_are_below_failures_that_are_known(drifting):
    machine, tables = drifting
    model, goal = model_of(tables), target(tables, machine)
    words = torch.from_numpy(np.random.default_rng(0).integers(0, 3, (200, 400)))
    words = torch.cat([words, torch.arange(3)[:, None].expand(3, 400)])
    wrong = model(words).argmax(-1).numpy() != goal.wanted[goal.states(words.numpy())]
    shortest = int(wrong.any(0).argmax()) + 1
    assert wrong.any()
    assert certify(tables, machine, 2).horizon < shortest


def test_contracting_tables_are_right_for_ever(forgetful):
    machine, tables = forgetful
    certificate = certify(tables, machine)
    assert certificate.horizon is None
    assert certificate.covers(10**9)
    assert_uncontradicted(certificate, tables, machine)
    check(certificate, tables)


def test_small_drift_carries_far():
    machine = zoo.parity()
    tables = perturbed(machine, noise=0, layer_norm=False, dtype=torch.float64)
    certificate = certify(tables, machine, 1)
    assert certificate.horizon > 10**6
    assert certificate.tube.tail
    check(certificate, tables)


def test_one_letter_one_block_of_size_one():
    tables = SwitchedAffine.of(
        torch.full((1, 1, 1, 1), -1.0), torch.zeros(1, 1, 1), torch.ones(1, 1),
        Readout.linear(torch.tensor([[1.0], [-1.0]]), torch.zeros(2)),
    )  # fmt: skip
    machine = MooreMachine([[1, 0]], [0, 1])
    certificate = certify(tables, machine)
    assert certificate.horizon > 10**4
    check(certificate, tables)


def test_outputs_that_the_model_lacks_do_not_count():
    machine = MooreMachine([[1, 1, 2], [2, 2, 2]], [0, 1, "dead"], 0, "ab")
    whole = perturbed(MooreMachine(machine.delta, [0, 1, 0], 0, "ab"), layer_norm=False)
    readout = replace(whole.readout)
    tables = SwitchedAffine(whole.A, whole.v, whole.x0, readout, whole.alphabet, (0, 1))
    certificate = certify(tables, machine, 1)
    assert certificate.horizon is None or certificate.horizon > 5
    check(certificate, tables)


def test_a_wrong_first_letter_gives_horizon_zero(drifting):
    machine, tables = drifting
    shifted = MooreMachine(machine.delta, [1, 2, 0], machine.start, machine.alphabet)
    certificate = certify(tables, shifted)
    assert certificate.horizon == 0
    check(certificate, tables)


def test_bad_requests_are_refused(drifting):
    machine, tables = drifting
    for memory in (0, "all", 12):
        with pytest.raises(UnsupportedFormat, match="memory = "):
            certify(tables, machine, memory)
    with pytest.raises(UnsupportedFormat, match=r"torch\.bfloat16"):
        certify(tables.to(torch.bfloat16), machine)
    with pytest.raises(InvalidMachine):
        certify(tables, zoo.parity())


@settings(max_examples=20)
@given(perturbed_machines(), st.integers(0, 9))
def test_computed_steps_stay_in_the_sets_and_margins_bound_their_logits(drawn, seed):
    """Corners and inner points of the sets, rounded to the dtype, are stepped by floats: the next sets hold them."""
    machine, tables = drawn
    rng = np.random.default_rng(seed)
    goal = target(tables, machine)
    tube = certify(tables, machine, memory=1).tube
    replay = Replay(tables, goal, replace(tube, stored=(), tail=()), 0.0)
    sets = next(found for _, found in itertools.islice(replay.lengths(), tube.start + 3) if found is not None)
    for _ in range(3):
        after = replay.steps.after(sets)
        for f, j in np.argwhere(sets.alive):
            x = sampled(sets, tube, f, j, replay.nodes.state[f], rng)
            states = torch.tensor(x).to(tables.dtype)
            if goal.wanted[replay.nodes.state[f]] != DOES_NOT_COUNT and len(tables.outputs) > 1:
                logits = tables.logits(states).double().numpy()
                own = logits[:, goal.wanted[replay.nodes.state[f]]]
                gap = (np.sort(logits)[:, -1] - own, own - np.sort(logits)[:, -2])
                margin = replay.margin(replace(sets, alive=only(sets.alive, f, j)))
                assert margin <= 0 or (np.where(gap[0] > 0, -gap[0], gap[1]) >= margin * (1 - 1e-3)).all()
            images = tables.step(states).double().numpy()
            for a, to in enumerate(replay.nodes.delta[:, f]):
                if to >= 0:
                    assert (inside(images[:, a], after, tube, to) < 1e-4).all()
        sets = after


def only(alive, f, j):
    result = np.zeros_like(alive)
    result[f, j] = True
    return result


def sampled(sets, tube, f, j, state, rng):
    """States of a set, some at its corners: (12, H, b). Directions leave out what they forbid."""
    H, b = tube.slow.shape[1:]
    weight = np.where(rng.random((12, 1, 1)) < 0.5, rng.choice([-1, 1], (12, H, b)), rng.uniform(-1, 1, (12, H, b)))
    slow = weight * sets.radius[f, :, :, j]
    fast = rng.normal(size=(12, H, b)) * ~tube.slow[f]
    fast = fast / np.maximum(np.linalg.norm(fast, axis=-1, keepdims=True), 1e-300) * sets.ball[f, :, j][:, None]
    w = sets.centre[f, :, :, j] + slow + fast * rng.random((12, 1, 1))
    directions = tube.directions[tube.part[state]] * tube.slow[f]
    along = np.einsum("dhb,whb->wd", directions, w)
    allowed = ((sets.lower[f, :, j] <= along) & (along <= sets.upper[f, :, j])).all(-1)
    w[~allowed] = sets.centre[f, :, :, j]
    return np.einsum("hij,whj->whi", tube.basis[f], w)


def inside(x, sets, tube, f):
    """By how much states are outside the set of (f, 0), relative to the size of its coordinates: (N,)."""
    w = np.einsum("hij,whj->whi", np.linalg.inv(tube.basis[f]), x) - sets.centre[f, :, :, 0]
    box = (np.abs(w) - sets.radius[f, :, :, 0])[:, tube.slow[f]].max(-1, initial=-1)
    ball = (np.linalg.norm(w * ~tube.slow[f], axis=-1) - sets.ball[f, :, 0]).max(-1)
    return np.maximum(box, ball)


def trained_like(seed, dtype=torch.float32):
    torch.manual_seed(seed)
    layers = (BlockLayerConfig((8,) * 8, 512, 64),)
    return LRNN(
        LRNNConfig(("a", "b", "c"), (0, 1), layers, 64, 64, "released", connection="residual", layer_norm=True)
    ).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(3))
def test_tables_made_by_other_products_lie_within_the_slack(seed, dtype):
    """A letter at a time, one position after the other as the naive path does, and in large batches."""
    model = trained_like(seed, dtype)
    tables, slack = switched(model), default_slack(model)
    u = model.first_inputs()
    with torch.no_grad():
        for rows in (u[:1], u[1:], u.repeat(50, 1), u.repeat(333, 1)[None], u.repeat(7, 1)[:, None]):
            A, v = model.layers[0].tables(rows)
            letters = torch.cdist(rows.flatten(0, -2), u).argmin(-1)
            for made, table in ((A, tables.A), (v, tables.v)):
                assert float((made.flatten(0, rows.ndim - 2) - table[letters]).abs().max()) <= slack / 2
    assert slack <= 1e-4 if dtype == torch.float32 else slack <= 1e-13


def test_look_ups_need_no_slack(drifting):
    _, tables = drifting
    assert default_slack(tables) == 0
    assert default_slack(model_of(tables)) == 0
    assert default_slack(trained_like(0)) > 0


def test_models_of_several_layers_are_enumerated(stack):
    recurrence, machine = stack
    from fsa2lrnn.lower import lower

    model = lower(recurrence)
    certificate = certify(model, machine)
    assert certificate.method == "enumeration"
    assert certificate.horizon is None
    check(certificate, model)
    verdict = closure(model, machine)
    assert verdict.pairs == verdict.transitions / len(model.alphabet)


def test_an_enumeration_ends_before_the_first_wrong_word():
    machine = zoo.sum_mod(3)
    config = LRNNConfig(machine.alphabet, (0, 1, 2), (BlockLayerConfig((2,), 4, 4),) * 2, embedding_dim=2)
    torch.manual_seed(0)
    model = LRNN(config)
    certificate = certify(model, machine)
    words = torch.tensor(list(itertools.product(range(3), repeat=certificate.horizon + 1)))
    goal = target(model, machine)
    wrong = model(words, "sequential").argmax(-1).numpy() != goal.wanted[goal.states(words.numpy())]
    assert wrong[:, -1].any()
    assert not wrong[:, :-1].any()
    check(certificate, model)


def test_closure():
    machine = zoo.sum_mod(5)
    closed = closure(compile_machine(machine), machine)
    assert (closed.pairs, closed.transitions, "pscan" in closed.scans) == (5, 25, True)
    other = MooreMachine(machine.delta, [0, 1, 2, 3, 3], 0, machine.alphabet)
    wrong = closure(compile_machine(machine), other)
    assert (wrong.checked_length, wrong.is_wrong) == (0, True)
    short = closure(compile_machine(machine), machine, budget=5)
    assert (short.is_wrong, short.checked_length) == (False, 1)
    with pytest.raises(TypeError, match="no truth value"):
        bool(closed)
