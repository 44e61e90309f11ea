"""Sets, step by step and along directions, the balls of short words, and bounds on margins, against computed ones."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import event, given, settings
from hypothesis import strategies as st

from fsa2lrnn.checker.claims import CountedAutomaton, nodes
from fsa2lrnn.checker.margins import Margins, ScaledReadout
from fsa2lrnn.checker.replay import TubeReplay, all_words, grown, least_margin
from fsa2lrnn.checker.rounding import FloatFormat, Slack, StepError
from fsa2lrnn.nn.scans import scan_tokens
from fsa2lrnn.testing.strategies import machines
from fsa2lrnn.verification import Specification, specification_of
from fsa2lrnn.verification.certificate import Sets, plain
from fsa2lrnn.verification.certify import certify

from .conftest import counts, outside, sampled, walks


@st.composite
def goals(draw):
    """A machine of up to 5 states and 3 letters, some of whose outputs may not count."""
    machine = draw(machines(max_states=5, outputs=(0, 1, 2)))
    wanted = np.array(machine.outputs)
    return Specification(machine.delta, wanted < 2, machine.start, wanted, machine.alphabet, (0, 1, 2), 3, False)


@given(goals(), st.integers(1, 3), st.data())
def test_nodes_are_where_words_lead(goal, memory, data):
    frame_memory = data.draw(st.integers(1, memory))
    found = nodes(goal.target, memory, frame_memory)
    k, coaccessible = len(goal.delta), goal.coaccessible
    reached = set()
    for word in itertools.product(range(k), repeat=memory + 1):
        states = [goal.start]
        for a in word:
            states.append(int(goal.delta[a, states[-1]]))
        number = lambda letters: sum(a * k**i for i, a in enumerate(reversed(letters)))  # noqa: E731
        before, j0 = found.numbers(np.array([states[-2]]), np.array([number(word[:memory])]))
        f, j = found.numbers(np.array([states[-1]]), np.array([number(word[1:])]))
        assert (f[0] >= 0) == coaccessible[states[-1]]
        if f[0] < 0:
            continue
        reached.add(int(f[0]))
        assert found.state[f[0]] == states[-1]
        assert found.oldest[f[0]] == word[-frame_memory]
        assert before[0] >= 0
        assert found.delta[word[-1], before[0]] == f[0]
        if found.older > 1:  # the oldest letter goes, the frame's oldest joins
            assert j[0] == j0[0] * k % found.older + found.oldest[before[0]]
    assert set(range(len(found.state))) >= reached
    assert len(set(found.codes.tolist())) == len(found.state)


def test_an_output_can_be_given_if_it_counts_and_the_model_has_it():
    delta, counts, expected = np.zeros((1, 4), np.int64), np.array([True, False, True, False]), np.array([1, 1, 2, 2])
    assert CountedAutomaton(delta, 0, expected, counts, 2).answerable.tolist() == [True, False, False, False]


ROUNDED = 1e-9  # what numpy's own inverse and sums may be off by


@settings(max_examples=25)
@given(walks(), st.integers(0, 9), st.sampled_from([0.0, 1e-4]))
def test_computed_steps_stay_in_the_sets(walk, seed, slack):
    """Tables within the slack of those given are stepped, in their dtype, from states that float64 samples."""
    _, tables, goal, tube = walk
    rng = np.random.default_rng(seed)
    replay = TubeReplay(plain(tables), goal.target, tube, Slack(slack, slack))
    nodes, k = replay.nodes, len(tables.alphabet)
    sets = next(found for _, found in replay.lengths() if found is not None)
    off = lambda t: torch.tensor(rng.choice([-1, 0, 1], t.shape) * slack * 0.999, dtype=t.dtype)  # noqa: E731
    A, v = tables.A + off(tables.A), tables.v + off(tables.v)
    for centre in (None, None, sets.centre):
        after = replay.steps.after(sets, centre)
        for f, j in np.argwhere(sets.alive)[:40]:
            x = torch.tensor(sampled(sets, tube, f, j, nodes.state[f], rng)).to(tables.dtype)
            images = (torch.einsum("ahij,nhj->nahi", A, x) + v).double().numpy()
            for a, to in enumerate(nodes.delta[:, f]):
                if to >= 0:
                    there = j * k % nodes.older + nodes.oldest[f] if nodes.older > 1 else 0
                    assert after.alive[to, there]
                    # The samples themselves were rounded, by far less than a set is wide unless it is a point.
                    assert (outside(images[:, a], after, tube, to, there, nodes.state[to]) < 1e-5).all()
        sets = after


@pytest.mark.long
@settings(max_examples=15)
@given(walks())
def test_states_of_all_words_lie_in_their_sets(walk):
    """Words in the model's dtype, by the reference scan: no sample, no tolerance but for the inverse of the basis."""
    _, tables, goal, tube = walk
    replay = TubeReplay(plain(tables), goal.target, tube, Slack())
    k, length = len(tables.alphabet), tube.start + 3
    words = np.array(list(itertools.product(range(k), repeat=length)))
    x = tables.run(torch.from_numpy(words)).double().numpy()
    states = goal.path(words)
    for at, (_, sets) in enumerate(itertools.islice(replay.lengths(), length)):
        if sets is None:
            continue
        last = words[:, at + 1 - tube.memory : at + 1] @ k ** np.arange(tube.memory)[::-1]
        for state, f, j in {*zip(states[:, at], *replay.nodes.numbers(states[:, at], last), strict=True)}:
            if f >= 0:
                here = (states[:, at] == state) & (np.array(replay.nodes.numbers(states[:, at], last)[1]) == j)
                here &= replay.nodes.numbers(states[:, at], last)[0] == f
                assert sets.alive[f, j]
                assert (outside(x[here, at], sets, tube, f, j, state) <= ROUNDED).all()


def test_a_tail_that_grows_holds_less_down_and_more_up(forgetful):
    machine, tables = forgetful
    (ramp,) = certify(tables, machine, 1).tube.tail
    ramp = replace(ramp, radius=0.1 * ramp.sets.radius, ball=0.1 * ramp.sets.ball, steps=10)
    exact = ramp.sets.ball + 3 * ramp.ball
    assert (grown(ramp, 3).ball > exact).all()
    assert (grown(ramp, 3, down=True).ball < exact).all()
    assert grown(ramp, 3).length == ramp.sets.length + 3
    assert grown(ramp, 0) is ramp.sets


SHORT_ROUNDED = 1e-15


@pytest.mark.long
@settings(max_examples=20)
@given(walks())
def test_every_scan_stays_in_the_balls_and_above_the_margin(walk):
    _, tables, goal, tube = walk
    named, kind, k, length = plain(tables).weights, plain(tables).format(), len(tables.alphabet), 4
    error = StepError(named["A"], named["v"], Slack(), kind)
    words = np.array(list(itertools.product(range(k), repeat=length)))
    states = goal.path(words)
    readout = ScaledReadout(named, kind)
    balls = all_words(named["A"], named["v"], named["x0"], goal.target, error, tube.memory)
    for method in ("sequential", "fused", "letters"):
        x = scan_tokens(torch.from_numpy(words), tables.A, tables.v, tables.x0, method)
        z = tables.logits(x).double().numpy()
        for at, found in zip(range(length), itertools.islice(balls, 1, None), strict=False):
            if len(found.state) < k ** (at + 1):
                continue  # words after which nothing counts were left out
            rows = np.repeat(np.arange(k ** (at + 1)), k ** (length - at - 1))
            assert (found.state[rows] == states[:, at]).all()
            off = np.abs(x[:, at].double().numpy() - found.x.mid[rows])
            assert (off <= found.x.rad[rows] + SHORT_ROUNDED).all()
            wanted = goal.wanted[states[:, at]]
            kept = goal.counts[states[:, at]]
            if kept.any() and z.shape[-1] > 1 and (bound := least_margin(found, readout, goal.target)) > 0:
                own = z[np.arange(len(z)), at, wanted][kept]
                rest = z[:, at].copy()
                rest[np.arange(len(z)), wanted] = -np.inf
                assert (own - rest.max(-1)[kept] >= bound * (1 - 1e-6)).all()
        balls = all_words(named["A"], named["v"], named["x0"], goal.target, error, tube.memory)


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


def test_a_direction_that_is_what_the_readout_reads_bounds_it_tightly():
    """The logits read w₁ + w₂ alone, which a direction bounds to [1, 2] in a box of a thousandfold."""
    weights = {"W1": np.ones((1, 2)), "b1": np.zeros(1), "W2": np.array([[1.0], [0.0]]), "b2": np.zeros(2)}
    readout = ScaledReadout(weights, FloatFormat.of("float64"))
    direction = np.ones((1, 1, 1, 2))
    box = Margins(readout, np.eye(2)[None, None], np.ones((1, 1, 2), bool), direction, np.array([0]))
    centre, radius = np.zeros((1, 1, 2, 1)), np.full((1, 1, 2, 1), 1e3)
    sets = Sets(
        1, np.ones((1, 1), bool), centre, radius, np.zeros((1, 1, 1)), np.ones((1, 1, 1)), np.full((1, 1, 1), 2.0)
    )
    assert 1 - 1e-6 < box.least(replace(sets, centre=centre + 0.75)).item() < 1


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
