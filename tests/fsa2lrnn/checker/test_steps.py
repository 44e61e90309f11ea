"""What floats compute from any state of a set lies in the sets of the next length."""

import itertools

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fsa2lrnn.checker.replay import TubeReplay
from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.verification.plain import plain

from .conftest import outside, sampled, walks

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
