"""Dead-beat blocks: a step depends only on the functions φ of the state that the block represents.

With φ(q) = U x + c exact (L6), let x₁ + R φ be the mean state for given functions, U R = 1, U x₁ + c = 0. Replacing the
state by this mean gives tables A_a R U: a state is then W_a φ(q') + w_a, with the last letter a and the machine's state
q' before it, so that only finitely many states are reachable.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.repairing.observed import BlockObservations
from fsa2lrnn.repairing.probe import Block, ReadoutProbe
from fsa2lrnn.repairing.representation import Representation

_OF_INITIAL = 1e-4  # weight of x₀ in the mean: it matters only where states after letters leave the mean open


@dataclass(frozen=True, eq=False)
class DeadbeatBlock:
    """The block x ↦ W_a (U x + c) + w_a.

    Args:
        W, w: (|Σ|, b, r), (|Σ|, b).
        x0: (b,).
        probe: U (r, b) and c (r,).
    """

    W: np.ndarray
    w: np.ndarray
    x0: np.ndarray
    probe: ReadoutProbe

    @property
    def block(self) -> Block:
        """The block as tables A_a = W_a U, v_a = W_a c + w_a."""
        return Block(self.W @ self.probe.U, self.W @ self.probe.c + self.w, self.x0)

    def states(self, image: Representation) -> np.ndarray:
        """Return the states after each letter and each machine state before it: (|Σ|, n + 1, b)."""
        return image.phi @ self.W.swapaxes(1, 2) + self.w[:, None]


def dead_beat(block: Block, image: Representation, probe: ReadoutProbe, observed: BlockObservations) -> DeadbeatBlock:
    """Return the dead-beat version of a repaired block; `observed` are states of the repaired block."""
    phi = np.vstack([image.phi[observed.state], image.phi[-1]])
    x = np.vstack([observed.x, block.x0])
    weights = np.append(observed.weights, _OF_INITIAL)
    extended = BlockObservations(x, np.append(observed.state, len(image.phi) - 1), weights)
    mean = extended.solve(np.hstack([phi, np.ones((len(phi), 1))]), x)
    R, x1 = mean[:-1].T, mean[-1]
    back = np.linalg.pinv(probe.U)
    R = R + back @ (np.eye(image.rank) - probe.U @ R)
    x1 = x1 - back @ (probe.U @ x1 + probe.c)
    return DeadbeatBlock(block.A @ R, block.A @ x1 + block.v, block.x0, probe)


def forget(block: Block, observed: BlockObservations) -> Block:
    """Return a block without an image, whose state depends only on the last letter."""
    return Block(np.zeros_like(block.A), block.v + block.A @ observed.mean, block.x0)
