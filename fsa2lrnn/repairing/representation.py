"""Exact affine images of a machine, and the one nearest to what a block has learned (§8, L6 of docs/theory.md).

A function of states f is carried along by a letter to T_a f = f∘δ(·, a). Functions φ_1 … φ_r are an affine image,
φ(δ(q, a)) = B_a φ(q) + u_a, exactly if span(1, φ_1 … φ_r) is mapped into itself by every T_a. What a block has learned
spans nearly such a space; the nearest exact one is found by Gauss–Newton steps of least norm, damped as Levenberg and
Marquardt do, on the part of T_a φ that leaves the space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import NotExact
from fsa2lrnn.repairing.observed import BlockObservations
from fsa2lrnn.repairing.states import RepairStates

TOLERANCE = 1e-10  # by which an affine image may miss φ(δ(q, a)), entries of φ being about 1
_NEAR = 0.15  # the sine of the largest angle by which learned functions may be turned
_STEPS = 60
_CONSTANT = 0.05  # by which a linear form may vary, and change with a letter, and be meant to be constant
_INVARIANT = 1e-11  # by which functions may leave their space


@dataclass(frozen=True, eq=False)
class Representation:
    """φ(δ(q, a)) = B_a φ(q) + u_a for every state and letter.

    Args:
        phi: (n + 1, r), the last row the initial state's.
        B, u: (|Σ|, r, r), (|Σ|, r).
        delta: int64 (|Σ|, n + 1), as in `States`.

    Raises:
        NotExact: if the equation fails by more than `TOLERANCE`.
    """

    phi: np.ndarray
    B: np.ndarray
    u: np.ndarray
    delta: np.ndarray

    def __post_init__(self) -> None:
        missed = np.abs(self.phi[self.delta] - self.phi @ self.B.swapaxes(1, 2) - self.u[:, None])
        if missed.max() > TOLERANCE * max(1.0, np.abs(self.phi).max()):
            raise NotExact(
                f"the functions of states are no affine image of the machine: they miss by {missed.max():.2g}"
            )

    @property
    def rank(self) -> int:
        """r."""
        return self.phi.shape[1]

    @property
    def is_linear(self) -> bool:
        """Whether one of the functions is constant, so that U x = φ(q) needs no c."""
        return bool((np.ptp(self.phi, axis=0) == 0).any())

    @property
    def classes(self) -> int:
        """The number of different vectors φ(q) among the states that letters lead to."""
        return len(np.unique(self.phi[:-1].round(8), axis=0))


def canonical_functions(seen: BlockObservations) -> tuple[np.ndarray, np.ndarray]:
    """The functions of states that a block tells best, best first, and how well: canonical correlations of x and e_q.

    Returns:
        (n, k) orthonormal functions of mean 0, and (k,) the share of each one's variance that an affine read-out of x
        tells.
    """
    n = int(seen.state.max()) + 1
    centred = seen.x - seen.mean
    _, sizes, directions = np.linalg.svd(centred * np.sqrt(seen.weights)[:, None], full_matrices=False)
    kept = sizes > 1e-6 * sizes[0]
    white = centred @ (directions[kept].T / sizes[kept])
    means = np.zeros((n, white.shape[1]))
    np.add.at(means, seen.state, white * (seen.weights * n)[:, None])
    functions, correlations, _ = np.linalg.svd(means / np.sqrt(n), full_matrices=False)
    return functions[:, : n - 1], correlations[: n - 1] ** 2


def nearest_invariant(
    delta: np.ndarray, functions: np.ndarray, deadline: Deadline = NEVER
) -> tuple[np.ndarray, float, float]:
    """The space span(1, φ) near span(1, functions) that every T_a maps into itself.

    Args:
        delta: int64 (|Σ|, n), closed under itself.
        functions: (n, r).

    Returns:
        φ (n, r), orthonormal and of mean 0; the sine of the largest angle between the two spaces; and by how much T_a φ
        leaves its space, 0 where the search has succeeded.

    >>> cycle = np.array([[1, 2, 0]])
    >>> f = np.array([[1.0, 0.1], [-0.4, 0.9], [-0.6, -0.8]])       # two functions are all that three states have
    >>> [round(number, 6) for number in nearest_invariant(cycle, f)[1:]]
    [0.0, 0.0]
    """
    n, r = delta.shape[1], functions.shape[1]
    begun, phi = orthonormal(functions)[0], functions
    for _ in range(_STEPS):
        deadline.check("repair: looking for an affine image of the machine")
        phi, rest = orthonormal(phi)
        J, leaving = leaving_equations(delta, phi, rest)
        size = float(np.linalg.norm(leaving))
        if size < 1e-14 * np.sqrt(n):
            break
        left, sizes, right = np.linalg.svd(J, full_matrices=False)
        step = right.T @ (sizes / (sizes**2 + size**2) * (left.T @ -leaving.ravel()))
        phi = phi + rest @ step.reshape(n - r - 1, r)
    phi, rest = orthonormal(phi)
    leaving = np.abs(rest.T @ phi[delta]).max(initial=0.0)
    return phi, float(np.linalg.norm(begun - phi @ (phi.T @ begun), 2)), float(leaving)


def leaving_equations(delta: np.ndarray, phi: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By how much T_a φ leaves span(1, φ), and how that changes with Y in φ + rest @ Y, to first order.

    Args:
        delta: int64 (|Σ|, n).
        phi, rest: as `orthonormal` gives them, (n, r) and (n, m).

    Returns:
        J (|Σ|·m·r, m·r) and restᵀ T_a φ, (|Σ|, m, r).
    """
    m, r = rest.shape[1], phi.shape[1]
    J = [np.kron(rest.T @ rest[row], np.eye(r)) - np.kron(np.eye(m), (phi.T @ phi[row]).T) for row in delta]
    return np.concatenate(J), rest.T @ phi[delta]


def orthonormal(functions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bases of span(1, functions) without 1, and of what stands at right angles to it: (n, r), (n, n − r − 1)."""
    n, r = functions.shape
    full = np.linalg.qr(np.hstack([np.ones((n, 1)), functions]), mode="complete")[0]
    return full[:, 1 : r + 1], full[:, r + 1 :]


def learned_representation(
    seen: BlockObservations, x0: np.ndarray, states: RepairStates, told: float, deadline: Deadline = NEVER
) -> Representation | None:
    """The largest exact affine image of the machine that a block nearly holds, None where it holds none.

    Args:
        seen: the block's states after letters.
        x0: (b,), its initial state.
        told: the share of a function's variance that the block must tell, for the function to be looked at.
    """
    functions, shares = canonical_functions(seen)
    for r in range(int((shares > told).sum()), 0, -1):
        phi, angle, leaving = nearest_invariant(states.entered, functions[:, :r], deadline)
        if leaving < _INVARIANT and angle < _NEAR:
            return _with_initial(_in_scale(phi, seen), seen, x0, states)
    return None


def mark_of_start(states: RepairStates) -> Representation:
    """The function that is 1 on the initial state and 0 on all others: every letter makes it 0."""
    n_letters, n = states.delta.shape
    return Representation(np.eye(n)[:, -1:], np.zeros((n_letters, 1, 1)), np.zeros((n_letters, 1)), states.delta)


def with_constant(image: Representation, seen: BlockObservations, A: np.ndarray, v: np.ndarray) -> Representation:
    """The image with a constant function beside it, if the block keeps a linear form g x of its states constant.

    A one-hot block does, whose entries add up to 1. Left alone with its small errors the form would grow or fade. Where
    there is one, it takes the place of the numbers 1 in the affine maps: the image becomes linear, u = 0.

    Args:
        A, v: the block's tables, (|Σ|, b, b) and (|Σ|, b).
    """
    root, b = np.sqrt(seen.weights)[:, None], A.shape[1]
    told, wanted = np.linalg.qr(seen.x * root)[1], seen.mean  # least squares for g x = 1, g A_a = g and g v_a = 0
    turned = (A - np.eye(b)).swapaxes(1, 2).reshape(-1, b)
    gram = told.T @ told + turned.T @ turned + v.T @ v
    g = np.linalg.lstsq(gram, wanted, rcond=1e-9)[0]
    misses = float(seen.weights @ (seen.x @ g - 1) ** 2)
    drifts = float(np.abs(g @ A - g).max() / max(np.linalg.norm(g), 1e-300))
    if misses > _CONSTANT or drifts > _CONSTANT:
        return image
    r, value = image.rank, 1 / np.linalg.norm(g)
    B = np.zeros((len(A), r + 1, r + 1))
    B[:, :r, :r], B[:, :r, r], B[:, r, r] = image.B, image.u / value, 1
    phi = np.hstack([image.phi, np.full((len(image.phi), 1), value)])
    return Representation(phi, B, np.zeros((len(A), r + 1)), image.delta)


def _in_scale(phi: np.ndarray, seen: BlockObservations) -> np.ndarray:
    """The functions in the basis in which the mean state is an isometric image of φ(q): x ≈ m + W φ(q), WᵀW = 1."""
    W = seen.solve(phi[seen.state], seen.x - seen.mean)
    return phi @ np.linalg.qr(W.T)[1].T


def _with_initial(phi: np.ndarray, seen: BlockObservations, x0: np.ndarray, states: RepairStates) -> Representation:
    """The same with the initial state: it takes a vector of its own where one fits, else a function of its own."""
    n, r = phi.shape
    wide = np.hstack([phi, np.ones((n, 1))])
    maps = np.stack([np.linalg.lstsq(wide, phi[row], rcond=None)[0].T for row in states.entered])
    B, u = maps[:, :, :r], maps[:, :, r]
    read = seen.solve(np.hstack([seen.x, np.ones((len(seen.x), 1))]), phi[seen.state])
    z = np.append(x0, 1) @ read  # what the block seems to say at first
    targets = phi[states.delta[:, -1]]
    z = z + np.linalg.lstsq(np.concatenate(B), np.concatenate(targets - u - B @ z), rcond=1e-9)[0]
    missed = targets - u - B @ z  # (|Σ|, r)
    if np.abs(missed).max() < _INVARIANT * max(1.0, np.abs(phi).max()):
        return Representation(np.vstack([phi, z]), B, u, states.delta)
    flag = np.eye(n + 1)[:, -1:]
    wider = np.zeros((len(B), r + 1, r + 1))
    wider[:, :r, :r], wider[:, :r, r] = B, missed
    return Representation(np.hstack([np.vstack([phi, z]), flag]), wider, np.pad(u, ((0, 0), (0, 1))), states.delta)
