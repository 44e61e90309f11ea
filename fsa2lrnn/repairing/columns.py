"""Least change with the columns kept within a p-norm of 1: a convex problem for given U, which is moved until one fits.

For given U the columns x of A_a are to satisfy U x = (B_a U)_j and ‖x‖_p ≤ 1, the nearest to what was learned; a U that
asks for longer columns has no such x. So U is moved along with A first: the equation U A_a = B_a U is linearised at the
present U and A, and the problem is solved in both, as often as it takes.
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

_ROOM = 1e-5  # below 1, so that rounding to float32 lifts no norm above it
_STEPS = 12
_FAITH = 3.0  # weight of what U reads on observed states, that of the tables' change being 1
_FORCE = 1e3  # weight of what a norm has above 1


def column_norm(A: np.ndarray, p: float) -> float:
    """The largest p-norm of a column: (…, b, b) -> a number.

    >>> column_norm(np.array([[3.0, 0.0], [4.0, 1.0]]), 2.0)
    5.0
    """
    return float((np.abs(A) ** p).sum(-2).max(initial=0.0) ** (1 / p))


def clip_columns(A: np.ndarray, p: float) -> np.ndarray:
    """Columns above a p-norm of 1 scaled down to a little below it: (…, b, b)."""
    norms = (np.abs(A) ** p).sum(-2, keepdims=True) ** (1 / p)
    return A / np.maximum(1.0, norms / (1 - _ROOM))


def cvxpy() -> ModuleType:
    """The package that solves these problems. Raises `MissingPackage`."""
    return require("cvxpy", "repair", 'columns="p<=1"', 'columns="keep"')


def project(
    block: Block,
    image: Representation,
    probe: ReadoutProbe,
    seen: BlockObservations,
    p: float,
    deadline: Deadline = NEVER,
) -> tuple[np.ndarray, ReadoutProbe]:
    """Tables A (|Σ|, b, b) near those learned, with U A_a = B_a U and columns within a p-norm of 1, and their probe.

    Columns keep a sum of zero where all that were learned have it, as the released rule makes them.

    Raises:
        NotExpressible: naming the least norm that the last U tried allows.
        MissingPackage: without cvxpy.
        OutOfTime: at the deadline.
    """
    problem = _Problem(block, image, probe, seen, p, deadline)
    U, A = probe.U, block.A
    for _ in range(_STEPS):
        U, A = problem.move(U, A)
        exact = problem.solve(U)
        if exact is not None and column_norm(exact, p) <= 1:
            c = seen.weights @ (image.phi[seen.state] - seen.x @ U.T)
            return exact, ReadoutProbe(U, 0 * c if image.is_linear else c)
    raise NotExpressible(
        f"no columns of a {p}-norm of at most 1 were found that carry the {image.rank} functions of a block: with the "
        f"last U tried the least norm is {problem.least_norm(U):.4f}, and {_ROOM:g} are left for rounding; keep the "
        'columns as they come (columns="keep")'
    )


class _Problem:
    """The columns of all letters side by side, (b, |Σ|·b)."""

    def __init__(
        self,
        block: Block,
        image: Representation,
        probe: ReadoutProbe,
        seen: BlockObservations,
        p: float,
        deadline: Deadline,
    ) -> None:
        self._cp, self._deadline = cvxpy(), deadline
        self._learned, self._B, self._U, self._p = block.A, image.B, probe.U, p
        self._is_centred = bool(np.abs(block.A.sum(-2)).max() < 1e-5)
        centred = (seen.x - seen.mean) * np.sqrt(seen.weights)[:, None]
        start = block.x0 - seen.mean  # counted as much as all states after letters, or x₀ would have to move for U
        self._spread = np.linalg.qr(np.vstack([centred, start]))[1].T

    def solve(self, U: np.ndarray) -> np.ndarray | None:
        """The nearest tables for this U, to machine precision; None where there are none."""
        cp = self._cp
        X = self._tables()
        wanted = _side_by_side(self._B @ U)
        bounds = [*self._centred(X), self._sizes(X) <= (1 - _ROOM) ** self._p]
        change = cp.sum_squares(X - _side_by_side(self._learned))
        if not self._optimise(cp.Problem(cp.Minimize(change), [U @ X - wanted == 0, *bounds])):
            return None
        A = self._apart(X)
        rows = np.vstack([U, np.ones(U.shape[1])]) if self._is_centred else U
        back = np.linalg.pinv(rows, rcond=1e-9)
        for _ in range(2):
            missed = self._B @ U - U @ A
            A = A + back @ (np.concatenate([missed, -A.sum(-2, keepdims=True)], 1) if self._is_centred else missed)
        return A

    def move(self, U: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The next U and tables of the joint problem."""
        cp = self._cp
        X, D, size = self._tables(), cp.Variable(U.shape), cp.Variable()
        carried = [D @ A[a] - self._B[a] @ D for a in range(len(A))]
        equation = U @ X + cp.hstack(carried) == _side_by_side(self._B @ U)
        change = cp.sum_squares(X - _side_by_side(self._learned))
        misread = cp.sum_squares((U + D - self._U) @ self._spread)
        excess = cp.pos(size - (1 - 3 * _ROOM) ** self._p)
        goal = cp.Minimize(change + _FAITH * misread + _FORCE * excess)
        if not self._optimise(cp.Problem(goal, [equation, *self._centred(X), self._sizes(X) <= size])):
            return U, A
        return U + np.asarray(D.value), self._apart(X)

    def least_norm(self, U: np.ndarray) -> float:
        """The least p-norm that the longest column can have with this U, infinite where none was found."""
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
        """‖·‖_p^p of every column."""
        return self._cp.sum(self._cp.power(self._cp.abs(X), self._p), axis=0)

    def _apart(self, X: Any) -> np.ndarray:
        return np.stack(np.split(X.value, len(self._learned), axis=1))

    def _optimise(self, problem: Any) -> bool:
        self._deadline.check("repair: bounding columns")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of inaccurate solutions, which the status tells as well
                problem.solve(solver=self._cp.CLARABEL, time_limit=self._deadline.left())
        except self._cp.SolverError:
            return False
        return problem.status == self._cp.OPTIMAL


def _side_by_side(tables: np.ndarray) -> np.ndarray:
    return np.concatenate(list(tables), axis=1)
