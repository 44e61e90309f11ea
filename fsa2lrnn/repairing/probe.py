"""Affine probes U x + c ≈ φ(q) of a block that nearly commute with the letters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.repairing.observed import BlockObservations
from fsa2lrnn.repairing.representation import Representation


@dataclass(frozen=True, eq=False)
class Block:
    """The tables of one head: A (|Σ|, b, b), v (|Σ|, b), x₀ (b,), in float64."""

    A: np.ndarray
    v: np.ndarray
    x0: np.ndarray


@dataclass(frozen=True, eq=False)
class ReadoutProbe:
    """An affine probe U x + c of a block's states, with U (r, b) and c (r,)."""

    U: np.ndarray
    c: np.ndarray

    def faults(self, block: Block, image: Representation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the residuals of L6: B_a U − U A_a, B_a c + u_a − c − U v_a and φ(q₀) − c − U x₀."""
        U, c, B = self.U, self.c, image.B
        return B @ U - U @ block.A, B @ c + image.u - c - block.v @ U.T, image.phi[-1] - c - U @ block.x0

    def residual(self, block: Block, image: Representation) -> float:
        """Return the largest residual entry, relative to the spectral norm of U."""
        largest = max(float(np.abs(fault).max()) for fault in self.faults(block, image))
        return largest / max(float(np.linalg.norm(self.U, 2)), 1e-300)


def fit(block: Block, image: Representation, observed: BlockObservations, stiffness: float) -> ReadoutProbe:
    """Return the probe with the least sum of squares of U x + c − φ(q) at observed states and of L6's residuals.

    `stiffness`: the weight of the equations relative to the observations.
    """
    n_letters, b, r = len(block.A), block.A.shape[1], image.rank
    root = np.sqrt(observed.weights)[:, None]
    Q, R = np.linalg.qr(np.hstack([observed.x, np.ones((len(root), 1))]) * root)  # (N, b + 1), (b + 1, b + 1)
    projected = Q.T @ (image.phi[observed.state] * root)  # (b + 1, r)
    # The unknown is [U c], row by row: r·(b + 1) numbers. The joint maps [[A_a, v_a], [0, 1]] act on it from the right.
    joint = np.zeros((n_letters, b + 1, b + 1))
    joint[:, :b, :b], joint[:, :b, b], joint[:, b, b] = block.A, block.v, 1
    eye = np.eye(r)
    rows = [np.kron(eye, R)]
    right = [projected.T.ravel()]
    for a in range(n_letters):
        rows.append(stiffness * (np.kron(eye, joint[a].T) - np.kron(image.B[a], np.eye(b + 1))))
        right.append(stiffness * np.hstack([np.zeros((r, b)), image.u[a][:, None]]).ravel())
    rows.append(stiffness * np.kron(eye, np.append(block.x0, 1)))
    right.append(stiffness * image.phi[-1])
    free = np.ones((r, b + 1), bool)
    free[:, b] = not image.is_linear
    solution = np.zeros((r, b + 1))
    solution[free] = np.linalg.lstsq(np.concatenate(rows)[:, free.ravel()], np.concatenate(right), rcond=None)[0]
    return ReadoutProbe(solution[:, :b], solution[:, b])


def explained_share(probe: ReadoutProbe, image: Representation, observed: BlockObservations) -> float:
    """Return R², the share of φ's variance that the probe explains; 1 if φ does not vary after letters."""
    phi = image.phi[observed.state]
    missed, spread = phi - observed.x @ probe.U.T - probe.c, phi - observed.weights @ phi
    variance = (observed.weights @ spread**2).sum()
    return float(1 - (observed.weights @ missed**2).sum() / variance) if variance else 1.0


def least_change(block: Block, image: Representation, probe: ReadoutProbe) -> Block:
    """Return the nearest tables (Frobenius) that satisfy L6: each residual times the pseudoinverse U⁺ is added."""
    back = np.linalg.pinv(probe.U)
    for _ in range(2):  # the second pass removes the rounding error of the first
        A, v, x0 = probe.faults(block, image)
        block = Block(block.A + back @ A, block.v + v @ back.T, block.x0 + back @ x0)
    return block
