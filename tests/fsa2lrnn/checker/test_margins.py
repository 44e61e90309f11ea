"""Bounds on margins, against the logits of states in the sets, in the model's dtype and in exact arithmetic."""

from dataclasses import replace

import numpy as np
import torch
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fsa2lrnn.checker.margins import Margins, ScaledReadout
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
