"""The affine read-out U x + c ≈ φ(q) of a block that is nearly carried along by the letters."""

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
    """U (r, b) and c (r,)."""

    U: np.ndarray
    c: np.ndarray

    def faults(self, block: Block, image: Representation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """B_a U − U A_a, B_a c + u_a − c − U v_a and φ(q₀) − c − U x₀: what L6 asks to be zero."""
        U, c, B = self.U, self.c, image.B
        return B @ U - U @ block.A, B @ c + image.u - c - block.v @ U.T, image.phi[-1] - c - U @ block.x0

    def residual(self, block: Block, image: Representation) -> float:
        """The largest fault, the entries of U taken to be of size 1."""
        largest = max(float(np.abs(fault).max()) for fault in self.faults(block, image))
        return largest / max(float(np.linalg.norm(self.U, 2)), 1e-300)


def fit(block: Block, image: Representation, seen: BlockObservations, stiffness: float) -> ReadoutProbe:
    """Least squares for both wishes at once: U x + c = φ(q) where it was observed, and the equations of L6.

    Args:
        stiffness: the weight of the equations against that of what was observed.
    """
    n_letters, b, r = len(block.A), block.A.shape[1], image.rank
    root = np.sqrt(seen.weights)[:, None]
    observed, told = np.linalg.qr(np.hstack([seen.x, np.ones((len(root), 1))]) * root)  # (N, b + 1), (b + 1, b + 1)
    wanted = observed.T @ (image.phi[seen.state] * root)  # (b + 1, r)
    # Unknown is [U c], row by row: r·(b + 1) numbers. On it stand the joint maps [[A_a, v_a], [0, 1]] from the right.
    joint = np.zeros((n_letters, b + 1, b + 1))
    joint[:, :b, :b], joint[:, :b, b], joint[:, b, b] = block.A, block.v, 1
    eye = np.eye(r)
    rows = [np.kron(eye, told)]
    right = [wanted.T.ravel()]
    for a in range(n_letters):
        rows.append(stiffness * (np.kron(eye, joint[a].T) - np.kron(image.B[a], np.eye(b + 1))))
        right.append(stiffness * np.hstack([np.zeros((r, b)), image.u[a][:, None]]).ravel())
    rows.append(stiffness * np.kron(eye, np.append(block.x0, 1)))
    right.append(stiffness * image.phi[-1])
    free = np.ones((r, b + 1), bool)
    free[:, b] = not image.is_linear
    found = np.zeros((r, b + 1))
    found[free] = np.linalg.lstsq(np.concatenate(rows)[:, free.ravel()], np.concatenate(right), rcond=None)[0]
    return ReadoutProbe(found[:, :b], found[:, b])


def told_share(probe: ReadoutProbe, image: Representation, seen: BlockObservations) -> float:
    """R²: the share of φ's variance that the probe tells, 1 where φ does not vary after letters."""
    wanted = image.phi[seen.state]
    missed, spread = wanted - seen.x @ probe.U.T - probe.c, wanted - seen.weights @ wanted
    variance = (seen.weights @ spread**2).sum()
    return float(1 - (seen.weights @ missed**2).sum() / variance) if variance else 1.0


def least_change(block: Block, image: Representation, probe: ReadoutProbe) -> Block:
    """The nearest tables (Frobenius) that satisfy the equations of L6: each fault, carried back by U⁺."""
    back = np.linalg.pinv(probe.U)
    for _ in range(2):  # the second time takes away what rounding has left
        A, v, x0 = probe.faults(block, image)
        block = Block(block.A + back @ A, block.v + v @ back.T, block.x0 + back @ x0)
    return block
