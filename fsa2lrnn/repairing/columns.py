"""Least change with columns of a p-norm of at most 1: a convex problem for fixed U, and iterations over U.

For fixed U, the columns x of A_a nearest to the learned ones must satisfy U x = (B_a U)_j and ‖x‖_p ≤ 1; for some U no
such x exists. So U is changed together with A first: the equation U A_a = B_a U is linearised at the current U and A,
and the problem is solved for both, repeatedly.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np

from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.optional import require
from fsa2lrnn.repairing.observed import BlockObservations
from fsa2lrnn.repairing.probe import Block, ReadoutProbe
from fsa2lrnn.repairing.representation import Representation

_MARGIN = 1e-5  # distance below 1, so that rounding to float32 raises no norm above 1
_STEPS = 12
_FAITH = 3.0  # weight of the change of U on observed states, relative to the tables' change
_FORCE = 1e3  # weight of the excess of a norm over 1


def column_norm(A: np.ndarray, p: float) -> float:
    """Return the largest p-norm of a column: (…, b, b) -> float.

    >>> column_norm(np.array([[3.0, 0.0], [4.0, 1.0]]), 2.0)
    5.0
    """
    return float((np.abs(A) ** p).sum(-2).max(initial=0.0) ** (1 / p))


def clip_columns(A: np.ndarray, p: float) -> np.ndarray:
    """Return tables (…, b, b) whose columns of a p-norm above 1 − 10⁻⁵ are scaled to the p-norm 1 − 10⁻⁵."""
    norms = (np.abs(A) ** p).sum(-2, keepdims=True) ** (1 / p)
    return A / np.maximum(1.0, norms / (1 - _MARGIN))


def cvxpy() -> ModuleType:
    """Return the module cvxpy; raise `MissingPackage` if it is not installed."""
    return require("cvxpy", "repair", 'columns="p<=1"', 'columns="keep"')


def project(
    block: Block,
    image: Representation,
    probe: ReadoutProbe,
    observed: BlockObservations,
    p: float,
    deadline: Deadline = NEVER,
) -> tuple[np.ndarray, ReadoutProbe]:
    """Return tables A (|Σ|, b, b) near the learned ones with U A_a = B_a U and columns of p-norm ≤ 1, and their probe.

    If all learned columns have sum zero, as under the column rule "paper", the new ones do too.

    Raises:
        NotExpressible: naming the least norm that the last U tried allows.
        MissingPackage: without cvxpy.
        OutOfTime: at the deadline.
    """
    problem = _Problem(block, image, probe, observed, p, deadline)
    U, A = probe.U, block.A
    for _ in range(_STEPS):
        U, A = problem.move(U, A)
        exact = problem.solve(U)
        if exact is not None and column_norm(exact, p) <= 1:
            c = observed.weights @ (image.phi[observed.state] - observed.x @ U.T)
            return exact, ReadoutProbe(U, 0 * c if image.is_linear else c)
    raise NotExpressible(
        f"no columns of a {p}-norm of at most 1 were found that carry the {image.rank} functions of a block: with the "
        f"last U tried the least norm is {problem.least_norm(U):.4f}, and {_MARGIN:g} are left for rounding; keep the "
        'columns as they come (columns="keep")'
    )


class _Problem:
    """The convex problems of one block, in the columns of all letters, (b, |Σ|·b)."""

    def __init__(
        self,
        block: Block,
        image: Representation,
        probe: ReadoutProbe,
        observed: BlockObservations,
        p: float,
        deadline: Deadline,
    ) -> None:
        self._cp, self._deadline = cvxpy(), deadline
        self._learned, self._B, self._U, self._p = block.A, image.B, probe.U, p
        self._is_centred = bool(np.abs(block.A.sum(-2)).max() < 1e-5)
        centred = (observed.x - observed.mean) * np.sqrt(observed.weights)[:, None]
        start = block.x0 - observed.mean  # weighted like all states after letters together, so that x₀ hardly moves
        self._spread = np.linalg.qr(np.vstack([centred, start]))[1].T

    def solve(self, U: np.ndarray) -> np.ndarray | None:
        """Return the nearest tables for this U, to machine precision, or None if no tables satisfy the constraints."""
        cp = self._cp
        X = self._tables()
        expected = _side_by_side(self._B @ U)
        bounds = [*self._centred(X), self._sizes(X) <= (1 - _MARGIN) ** self._p]
        change = cp.sum_squares(X - _side_by_side(self._learned))
        if not self._optimise(cp.Problem(cp.Minimize(change), [U @ X - expected == 0, *bounds])):
            return None
        A = self._apart(X)
        rows = np.vstack([U, np.ones(U.shape[1])]) if self._is_centred else U
        back = np.linalg.pinv(rows, rcond=1e-9)
        # Remove the solver's residual of the linear constraints, down to machine precision.
        for _ in range(2):
            missed = self._B @ U - U @ A
            A = A + back @ (np.concatenate([missed, -A.sum(-2, keepdims=True)], 1) if self._is_centred else missed)
        return A

    def move(self, U: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the next U and tables of the joint linearised problem."""
        cp = self._cp
        X, D, size = self._tables(), cp.Variable(U.shape), cp.Variable()
        carried = [D @ A[a] - self._B[a] @ D for a in range(len(A))]
        equation = U @ X + cp.hstack(carried) == _side_by_side(self._B @ U)
        change = cp.sum_squares(X - _side_by_side(self._learned))
        misread = cp.sum_squares((U + D - self._U) @ self._spread)
        excess = cp.pos(size - (1 - 3 * _MARGIN) ** self._p)
        goal = cp.Minimize(change + _FAITH * misread + _FORCE * excess)
        if not self._optimise(cp.Problem(goal, [equation, *self._centred(X), self._sizes(X) <= size])):
            return U, A
        return U + np.asarray(D.value), self._apart(X)

    def least_norm(self, U: np.ndarray) -> float:
        """Return the least possible maximum of the columns' p-norms for this U, infinite if the solver fails."""
        cp = self._cp
        X, size = self._tables(), cp.Variable()
        equation = U @ X - _side_by_side(self._B @ U) == 0
        is_solved = self._optimise(cp.Problem(cp.Minimize(size), [equation, *self._centred(X), self._sizes(X) <= size]))
        return float(np.asarray(size.value)) ** (1 / self._p) if is_solved else np.inf

    def _tables(self) -> Any:
        n_letters, b, _ = self._learned.shape
        return self._cp.Variable((b, n_letters * b))

    def _centred(self, X: Any) -> list[Any]:
        return [self._cp.sum(X, axis=0) == 0] if self._is_centred else []

    def _sizes(self, X: Any) -> Any:
        """Return ‖·‖_p^p of every column."""
        return self._cp.sum(self._cp.power(self._cp.abs(X), self._p), axis=0)

    def _apart(self, X: Any) -> np.ndarray:
        return np.stack(np.split(X.value, len(self._learned), axis=1))

    def _optimise(self, problem: Any) -> bool:
        self._deadline.check("repair: bounding columns")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # about inaccurate solutions, which the status reports too
                problem.solve(solver=self._cp.CLARABEL, time_limit=self._deadline.left())
        except self._cp.SolverError:
            return False
        return problem.status == self._cp.OPTIMAL


def _side_by_side(tables: np.ndarray) -> np.ndarray:
    return np.concatenate(list(tables), axis=1)
