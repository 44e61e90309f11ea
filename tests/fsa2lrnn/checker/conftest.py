"""Tubes in coordinates that nobody chose well: what the judge encloses has to hold in any."""

import numpy as np
from hypothesis import strategies as st

from fsa2lrnn.checker.claims import nodes
from fsa2lrnn.verification.certificate import Tube
from fsa2lrnn.verification.specification import specification_of

from ..verification.certify.conftest import drifting, forgetful, perturbed_machines, short_searches  # noqa: F401 - fixtures


def any_tube(tables, goal, memory, frame_memory, seed):
    """Random bases, slow coordinates and directions."""
    rng = np.random.default_rng(seed)
    found = nodes(goal.target, memory, frame_memory)
    F, (H, b), Q = len(found.state), tables.x0.shape, goal.delta.shape[1]
    basis = np.eye(b) + 0.3 * rng.normal(size=(F, H, b, b))
    directions = np.concatenate([rng.normal(size=(2, 3, H, b)), fan(rng, H, b)], 1)
    slow = rng.random((F, H, b)) < rng.choice([0.5, 0.9])
    return Tube(memory, frame_memory, memory + 1, basis, slow, rng.integers(0, 2, Q), directions)


def fan(rng, H, b):
    """Directions in the plane of a head's first two coordinates, these among them; in one part some are other ones."""
    rows = np.zeros((2, 6, H, b))
    rows[:, :2, 0, :2] = np.eye(2)
    rows[:, 2:, 0, :2] = rng.normal(size=(2, 4, 2)) * rng.choice([0, 1], (2, 4, 1), p=[0.2, 0.8])
    return rows[:, rng.permutation(6)]


@st.composite
def walks(draw):
    """A machine, tables, a goal and a tube."""
    machine, tables = draw(perturbed_machines())
    memory = draw(st.integers(1, 3))
    goal = specification_of(tables, machine)
    tube = any_tube(tables, goal, memory, draw(st.integers(1, memory)), draw(st.integers(0, 99)))
    return machine, tables, goal, tube


def sampled(sets, tube, f, j, state, rng):
    """States of the set of a node, some at its corners, if they are within what directions allow: (N, H, b)."""
    H, b = tube.slow.shape[1:]
    weight = np.where(rng.random((16, 1, 1)) < 0.5, rng.choice([-1, 1], (16, H, b)), rng.uniform(-1, 1, (16, H, b)))
    fast = rng.normal(size=(16, H, b)) * ~tube.slow[f]
    fast = fast / np.maximum(np.linalg.norm(fast, axis=-1, keepdims=True), 1e-300) * sets.ball[f, :, j][:, None]
    w = sets.centre[f, :, :, j] + weight * sets.radius[f, :, :, j] + fast * rng.random((16, 1, 1))
    along = np.einsum("dhb,whb->wd", tube.directions[tube.part[state]] * tube.slow[f], w)
    w = w[((sets.lower[f, :, j] <= along) & (along <= sets.upper[f, :, j])).all(-1)]
    return np.einsum("hij,whj->whi", tube.basis[f], w)


def outside(x, sets, tube, f, j, state):
    """By how much states are outside the set of a node, in its coordinates: (N,)."""
    w = np.einsum("hij,whj->whi", np.linalg.inv(tube.basis[f]), x)
    off = w - sets.centre[f, :, :, j]
    box = (np.abs(off) - sets.radius[f, :, :, j])[:, tube.slow[f]].max(-1, initial=-1)
    ball = (np.linalg.norm(off * ~tube.slow[f], axis=-1) - sets.ball[f, :, j]).max(-1)
    along = np.einsum("dhb,whb->wd", tube.directions[tube.part[state]] * tube.slow[f], w)
    beyond = np.maximum(sets.lower[f, :, j] - along, along - sets.upper[f, :, j]).max(-1)
    return np.maximum(np.maximum(box, ball), beyond)


def counts(goal, state):
    return goal.counts[state]
