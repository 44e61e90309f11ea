"""Bounds on margins, against the logits of states in the sets, in the model's dtype and in exact arithmetic."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fsa2lrnn.checker.margins import Margins, ScaledReadout, _Box
from fsa2lrnn.checker.replay import TubeReplay
from fsa2lrnn.checker.rounding import FloatFormat, Slack
from fsa2lrnn.verification.certificate import Sets
from fsa2lrnn.verification.certify import certify
from fsa2lrnn.verification.plain import plain
from fsa2lrnn.verification.specification import specification_of

from .conftest import counts, sampled, walks


@settings(max_examples=25)
@given(walks(), st.integers(0, 9), st.sampled_from([1.0, 30.0]))
def test_no_state_of_a_set_has_a_smaller_margin(walk, seed, wider):
    _, tables, goal, tube = walk
    rng = np.random.default_rng(seed)
    replay = TubeReplay(plain(tables), goal.target, tube, Slack())
    sets = next(found for _, found in replay.lengths() if found is not None)
    sets = replace(sets, radius=wider * sets.radius, ball=wider * sets.ball)
    for f, j in np.argwhere(sets.alive):
        state = replay.nodes.state[f]
        if not counts(goal, state) or len(tables.outputs) == 1:
            continue
        x = torch.tensor(sampled(sets, tube, f, j, state, rng))
        alone = np.zeros_like(sets.alive)
        alone[f, j] = True
        bound = replay.margin(replace(sets, alive=alone))
        event(f"a margin is shown: {bound > 0}")
        if bound > 0 and len(x):
            for dtype in (tables.dtype, torch.float64):
                z = tables.to(dtype).logits(x.to(dtype)).double().numpy()
                own = z[:, goal.wanted[state]].copy()
                z[:, goal.wanted[state]] = -np.inf
                assert (own - z.max(-1) >= bound * (1 - 1e-6)).all()


def test_on_points_the_bound_is_the_margin_but_for_rounding(drifting):
    machine, tables = drifting
    tube = certify(tables, machine, 1).tube
    goal = specification_of(tables, machine)
    replay = TubeReplay(plain(tables), goal.target, replace(tube, stored=(), tail=()), Slack())
    sets = next(found for _, found in replay.lengths() if found is not None)
    f, j = np.argwhere(sets.alive)[0]
    alone = np.zeros_like(sets.alive)
    alone[f, j] = True
    point = replace(sets, alive=alone, radius=0 * sets.radius, ball=0 * sets.ball)
    x = torch.tensor(np.einsum("hij,hj->hi", tube.basis[f], sets.centre[f, :, :, j]))[None]
    z = tables.to(torch.float64).logits(x)[0].numpy()
    wanted = goal.wanted[replay.nodes.state[f]]
    exact = z[wanted] - np.delete(z, wanted).max()
    assert 0.99 * exact < replay.margin(point) < exact


@pytest.mark.parametrize("has_norm", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_directions_along_hidden_units_improve_the_bound_of_a_thin_set(seed, has_norm):
    rng = np.random.default_rng(seed)
    m, n = 6, 4
    weights = {
        "W1": rng.normal(size=(m, n)),
        "b1": rng.normal(size=m),
        "W2": rng.normal(size=(3, m)),
        "b2": np.zeros(3),
    }
    if has_norm:
        weights |= {"norm_weight": rng.normal(size=n), "norm_bias": rng.normal(size=n)}
    readout = ScaledReadout(weights, FloatFormat.of("float64"))
    T = rng.normal(size=(1, 2, 2, 2)) + 2 * np.eye(2)
    to_state = np.zeros((n, n))
    to_state[:2, :2], to_state[2:, 2:] = T[0]
    middle = rng.normal(size=n)
    w = middle + rng.uniform(-0.3, 0.3, size=(400, 1)) * rng.normal(size=n) + 1e-3 * rng.normal(size=(400, n))
    x = w @ to_state.T
    scaled = np.sqrt(x.var(1) + 1e-5)[:, None] if has_norm else np.ones((len(x), 1))
    logits = np.maximum(x @ readout.B.mid.T + readout.beta.mid * scaled, 0) @ weights["W2"].T / scaled + weights["b2"]
    expected = int(logits[0].argmax())
    least = (logits[:, [expected]] - np.delete(logits, expected, 1)).min()
    rows = np.concatenate([readout.B.mid @ to_state, rng.normal(size=(2, n))])
    bounds = []
    for directions in (rows[:0], rows):
        along = w @ directions.T
        low, high = w.min(0), w.max(0)
        parts = [(low + high) / 2, (high - low) / 2 * (1 + 1e-12), np.zeros(2), along.min(0), along.max(0)]
        shapes = [(1, 2, 2, 1), (1, 2, 2, 1), (1, 2, 1), (1, len(directions), 1), (1, len(directions), 1)]
        arrays = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        shaped = directions.reshape(1, -1, 2, 2)
        margins = Margins(readout, T, np.ones((1, 2, 2), bool), shaped, np.array([expected]))
        reach = np.full((1, 1, m), 1e3)
        box = _Box(*(np.ascontiguousarray(a.reshape(1, -1, 1).swapaxes(1, 2)) for a in arrays))
        fall, rise = margins._along_directions(reach, box)
        units = (w - parts[0]) @ (readout.B.mid @ to_state).T
        assert (units <= rise[0, 0]).all()
        assert (units >= -fall[0, 0]).all()
        bounds.append(float(margins.least(Sets(1, np.ones((1, 1), bool), *arrays))[0, 0]))
        assert (bounds[-1] if bounds[-1] > 0 else -np.inf) <= least
    assert bounds[1] >= bounds[0]
    assert (rise[0, 0] <= units.max(0) + 1e-6 * np.abs(units).max()).all()  # tight along a direction itself


def test_a_single_output_has_no_rival_but_the_variance_may_be_lost():
    """LayerNorm in one pass over large numbers may find a negative variance, and no number is its root."""
    weights = {"W1": np.ones((1, 2)), "b1": np.zeros(1), "W2": np.ones((1, 1)), "b2": np.zeros(1)}
    weights |= {"norm_weight": np.ones(2), "norm_bias": np.zeros(2)}
    readout = ScaledReadout(
        weights, FloatFormat(2.0**-24, float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max))
    )
    box = Margins(readout, np.eye(2)[None, None], np.ones((1, 1, 2), bool), np.zeros((1, 0, 1, 2)), np.array([0]))
    centre = np.array([[[[0.01, 1e6], [0.01, 1e6]]]])  # (1, 1, 2, 2): two sets, points both
    nothing = np.zeros((1, 0, 2))
    points = Sets(1, np.ones((1, 2), bool), centre, 0 * centre, np.zeros((1, 1, 2)), nothing, nothing)
    assert box.least(points).tolist() == [[np.inf, -np.inf]]
