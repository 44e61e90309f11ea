"""Exact affine images of a machine, and the one nearest to a learned block (§8, L6 of docs/theory.md).

A letter maps a function of states f to T_a f = f∘δ(·, a). Functions φ_1 … φ_r are an affine image, φ(δ(q, a)) =
B_a φ(q) + u_a, if and only if every T_a maps span(1, φ_1 … φ_r) into itself. The learned functions of a block nearly
span such a space; minimum-norm Gauss–Newton steps with Levenberg–Marquardt damping on the part of T_a φ outside the
space find the nearest exact one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import NotExact
from fsa2lrnn.repairing.observed import BlockObservations, RepairStates

TOLERANCE = 1e-10  # the largest error of an affine image at φ(δ(q, a)), for entries of φ of about 1
_NEAR = 0.15  # sine of the largest angle between learned and exact functions
_STEPS = 60
_CONSTANT = 0.05  # variation and change per letter up to which a linear form counts as constant
_INVARIANT = 1e-11  # the largest part of functions outside their invariant space


@dataclass(frozen=True, eq=False)
class Representation:
    """An exact affine image: φ(δ(q, a)) = B_a φ(q) + u_a for every state and letter.

    Args:
        phi: (n + 1, r), the last row the initial state's.
        B, u: (|Σ|, r, r), (|Σ|, r).
        delta: int64 (|Σ|, n + 1), as in `RepairStates`.

    Raises `NotExact` if the equation fails by more than `TOLERANCE`.
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
        """The number of functions, r."""
        return self.phi.shape[1]

    @property
    def is_linear(self) -> bool:
        """Whether one of the functions is constant, so that U x = φ(q) needs no c."""
        return bool((np.ptp(self.phi, axis=0) == 0).any())

    @property
    def classes(self) -> int:
        """The number of different vectors φ(q) among the states that letters lead to."""
        return len(np.unique(self.phi[:-1].round(8), axis=0))


def canonical_functions(observed: BlockObservations) -> tuple[np.ndarray, np.ndarray]:
    """Return the functions of states that a block represents best, by canonical correlations of x and e_q.

    Returns:
        (n, k) orthonormal functions of mean 0, best first, and (k,) the share of each one's variance that an affine
        read-out of x explains.
    """
    n = int(observed.state.max()) + 1
    centred = observed.x - observed.mean
    _, sizes, directions = np.linalg.svd(centred * np.sqrt(observed.weights)[:, None], full_matrices=False)
    # Whitening divides by singular values, so directions in which states do not vary are left out.
    in_range = sizes > 1e-6 * sizes[0]
    white = centred @ (directions[in_range].T / sizes[in_range])
    means = np.zeros((n, white.shape[1]))
    # The mean whitened state for each machine state, since all states have the weight 1/n; its singular values are
    # the canonical correlations.
    np.add.at(means, observed.state, white * (observed.weights * n)[:, None])
    functions, correlations, _ = np.linalg.svd(means / np.sqrt(n), full_matrices=False)
    return functions[:, : n - 1], correlations[: n - 1] ** 2


def nearest_invariant(
    delta: np.ndarray, functions: np.ndarray, deadline: Deadline = NEVER
) -> tuple[np.ndarray, float, float]:
    """Return the space span(1, φ) near span(1, functions) that every T_a maps into itself.

    Args:
        delta: int64 (|Σ|, n), closed under itself.
        functions: (n, r).

    Returns:
        φ (n, r), orthonormal and of mean 0; the sine of the largest angle between the two spaces; and the largest entry
        of the part of T_a φ outside the space, 0 if the search has succeeded.

    >>> cycle = np.array([[1, 2, 0]])
    >>> f = np.array([[1.0, 0.1], [-0.4, 0.9], [-0.6, -0.8]])       # three states have only two such functions
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
        # Levenberg–Marquardt: the damping is the residual's square, so that steps become Gauss–Newton's near a
        # solution.
        step = right.T @ (sizes / (sizes**2 + size**2) * (left.T @ -leaving.ravel()))
        phi = phi + rest @ step.reshape(n - r - 1, r)
    phi, rest = orthonormal(phi)
    leaving = np.abs(rest.T @ phi[delta]).max(initial=0.0)
    return phi, float(np.linalg.norm(begun - phi @ (phi.T @ begun), 2)), float(leaving)


def leaving_equations(delta: np.ndarray, phi: np.ndarray, rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the part of T_a φ outside span(1, φ), and its derivative with respect to Y in φ + rest @ Y.

    Args:
        delta: int64 (|Σ|, n).
        phi, rest: as `orthonormal` returns them, (n, r) and (n, m).

    Returns:
        J (|Σ|·m·r, m·r) and restᵀ T_a φ, (|Σ|, m, r).
    """
    m, r = rest.shape[1], phi.shape[1]
    # The derivative of restᵀ T_a (φ + rest Y) less the part inside the moved space: restᵀ T_a rest Y − Y φᵀ T_a φ,
    # with Y flattened row by row.
    J = [np.kron(rest.T @ rest[row], np.eye(r)) - np.kron(np.eye(m), (phi.T @ phi[row]).T) for row in delta]
    return np.concatenate(J), rest.T @ phi[delta]


def orthonormal(functions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return bases of span(1, functions) without 1, and of its orthogonal complement: (n, r), (n, n − r − 1)."""
    n, r = functions.shape
    full = np.linalg.qr(np.hstack([np.ones((n, 1)), functions]), mode="complete")[0]
    return full[:, 1 : r + 1], full[:, r + 1 :]


def learned_representation(
    observed: BlockObservations, x0: np.ndarray, states: RepairStates, least_share: float, deadline: Deadline = NEVER
) -> Representation | None:
    """Return the largest exact affine image of the machine that a block nearly represents, or None.

    Args:
        observed: the block's states after letters.
        x0: (b,), its initial state.
        least_share: the least share of a function's variance that the block must explain for the function to be used.
    """
    functions, shares = canonical_functions(observed)
    # From all functions that are represented well enough to fewer, until an exact invariant space is near.
    for r in range(int((shares > least_share).sum()), 0, -1):
        phi, angle, leaving = nearest_invariant(states.entered, functions[:, :r], deadline)
        if leaving < _INVARIANT and angle < _NEAR:
            return _with_initial(_in_scale(phi, observed), observed, x0, states)
    return None


def mark_of_start(states: RepairStates) -> Representation:
    """Return the image of the function that is 1 on the initial state and 0 after every letter."""
    n_letters, n = states.delta.shape
    return Representation(np.eye(n)[:, -1:], np.zeros((n_letters, 1, 1)), np.zeros((n_letters, 1)), states.delta)


def with_constant(image: Representation, observed: BlockObservations, A: np.ndarray, v: np.ndarray) -> Representation:
    """Return the image with an additional constant function, if a linear form g x of the block's states is constant.

    One-hot blocks have such a form, since their entries add up to 1. Without a repair, its small errors would grow or
    decay. The form replaces the constant 1 in the affine maps: the image becomes linear, u = 0.

    `A, v`: the block's tables, (|Σ|, b, b) and (|Σ|, b).
    """
    root, b = np.sqrt(observed.weights)[:, None], A.shape[1]
    R, mean = np.linalg.qr(observed.x * root)[1], observed.mean  # least squares for g x = 1, g A_a = g and g v_a = 0
    # The rows of g A_a − g = 0 for all letters, so that one least-squares problem has all three conditions.
    turned = (A - np.eye(b)).swapaxes(1, 2).reshape(-1, b)
    gram = R.T @ R + turned.T @ turned + v.T @ v
    g = np.linalg.lstsq(gram, mean, rcond=1e-9)[0]
    misses = float(observed.weights @ (observed.x @ g - 1) ** 2)
    drifts = float(np.abs(g @ A - g).max() / max(np.linalg.norm(g), 1e-300))
    if misses > _CONSTANT or drifts > _CONSTANT:
        return image
    r, value = image.rank, 1 / np.linalg.norm(g)
    B = np.zeros((len(A), r + 1, r + 1))
    # u is carried by the constant function of value `value`, hence divided by it.
    B[:, :r, :r], B[:, :r, r], B[:, r, r] = image.B, image.u / value, 1
    phi = np.hstack([image.phi, np.full((len(image.phi), 1), value)])
    return Representation(phi, B, np.zeros((len(A), r + 1)), image.delta)


def _in_scale(phi: np.ndarray, observed: BlockObservations) -> np.ndarray:
    """Return φ in the basis in which the mean state is isometric to φ(q): x ≈ m + W φ(q), WᵀW = 1."""
    W = observed.solve(phi[observed.state], observed.x - observed.mean)
    return phi @ np.linalg.qr(W.T)[1].T


def _with_initial(phi: np.ndarray, observed: BlockObservations, x0: np.ndarray, states: RepairStates) -> Representation:
    """Return the representation of invariant φ (n, r) with a value z at the start that all letters map correctly.

    The read-out of φ at x₀ is moved as little as the equations B_a z + u_a = φ(δ_a(start)) require.
    """
    n, r = phi.shape
    wide = np.hstack([phi, np.ones((n, 1))])
    maps = np.stack([np.linalg.lstsq(wide, phi[row], rcond=None)[0].T for row in states.entered])
    B, u = maps[:, :, :r], maps[:, :, r]
    read = observed.solve(np.hstack([observed.x, np.ones((len(observed.x), 1))]), phi[observed.state])
    z = np.append(x0, 1) @ read  # the block's read-out of φ at x₀
    targets = phi[states.delta[:, -1]]
    z = z + np.linalg.lstsq(np.concatenate(B), np.concatenate(targets - u - B @ z), rcond=1e-9)[0]
    missed = targets - u - B @ z  # (|Σ|, r)
    if np.abs(missed).max() < _INVARIANT * max(1.0, np.abs(phi).max()):
        return Representation(np.vstack([phi, z]), B, u, states.delta)
    # No value at the start fits all letters: a further function marks the start and corrects the first step.
    flag = np.eye(n + 1)[:, -1:]
    wider = np.zeros((len(B), r + 1, r + 1))
    wider[:, :r, :r], wider[:, :r, r] = B, missed
    return Representation(np.hstack([np.vstack([phi, z]), flag]), wider, np.pad(u, ((0, 0), (0, 1))), states.delta)
