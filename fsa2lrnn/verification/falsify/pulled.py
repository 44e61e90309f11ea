"""Functionals that give the value of a switched affine model's state some letters before a failure.

The lead of a wrong output is nearly linear in the state near the point where it wins: a *functional* ⟨w, x⟩ + c. A
letter a maps x to the state A_a x + v_a, so before the letter the same functional is (A_aᵀ w, c + ⟨w, v_a⟩), without
any error. Pulled back along the words that the machine's transitions allow, a few functionals per machine state and
number of letters left identify the states that lead to a failure soonest, long before a margin decreases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from fsa2lrnn.nn.switched import SwitchedAffine
from fsa2lrnn.verification.specification import Specification

_TANGENTS = 4
Points = dict[int, np.ndarray]
"""Some of the model's states, float32 (N, d), for each machine state that words of one length reach."""


class FailureTarget(NamedTuple):
    """A kind of failure to search for: a wrong output, by number, in the machine state q."""

    q: int
    output: int


class Functionals(NamedTuple):
    """M affine functions of a state: float64 (M, d), (M,)."""

    w: np.ndarray
    c: np.ndarray

    def at(self, x: np.ndarray) -> np.ndarray:
        """Return the values of the functionals at states: (N, d) -> (N, M)."""
        return x @ self.w.T + self.c


Pulled = dict[int, Functionals]
"""Functionals by machine state, each for one of a few words that remain to be read."""


class FunctionalPullback:
    """Functionals of one model and its specification, in float64 for any dtype of the model."""

    def __init__(self, tables: SwitchedAffine, goal: Specification) -> None:
        self._tables, self._goal = tables.to(torch.float64), goal
        self._A, self._v = self._tables.A.cpu().numpy(), self._tables.v.cpu().numpy()

    def targets(self, points: Points) -> list[FailureTarget]:
        """Return all possible failures at these points, by decreasing lead of the wrong output."""
        answerable = self._goal.answerable
        targets = [
            FailureTarget(q, output)
            for q in points
            for output in range(self._goal.known)
            if answerable[q] and output != self._goal.wanted[q]
        ]
        return sorted(targets, key=lambda target: (-self.ahead(target, points), target))

    def ahead(self, target: FailureTarget, points: Points) -> float:
        """Return the largest lead of the wrong output over the right one at these points, −∞ without points."""
        if target.q not in points:
            return -np.inf
        with torch.no_grad():
            lead = self._lead(target, torch.from_numpy(points[target.q].astype(np.float64)))
        return float(lead.nan_to_num(-torch.inf).max())

    def tangents(self, target: FailureTarget, points: Points) -> Pulled:
        """Return the tangents of the wrong output's lead at the points where it is largest."""
        if target.q not in points:
            return {}
        x = torch.from_numpy(points[target.q].astype(np.float64)).requires_grad_()
        lead = self._lead(target, x)
        (gradient,) = torch.autograd.grad(lead.sum(), x)
        w, at = gradient.numpy(), x.detach().numpy()
        c = lead.detach().numpy() - (w * at).sum(1)
        usable = np.flatnonzero(np.isfinite(w).all(1) & np.isfinite(c))
        best = usable[np.argsort(-lead.detach().numpy()[usable], kind="stable")[:_TANGENTS]]
        return {target.q: Functionals(w[best], c[best])} if len(best) else {}

    def back(self, ahead: Pulled, points: Points, most: int) -> Pulled:
        """Return the functionals before one more letter, at most `most` per machine state.

        The functionals that are largest at one of the state's points come first, then those with the largest values.
        """
        letters = {q: self._before(functionals) for q, functionals in ahead.items()}
        pulled: Pulled = {}
        for q, x in points.items():
            candidates = [
                (letters[to].w[a], letters[to].c[a])
                for a, to in enumerate(self._goal.delta[:, q].tolist())
                if to in letters
            ]
            if candidates:
                every = Functionals(
                    np.concatenate([w for w, _ in candidates]), np.concatenate([c for _, c in candidates])
                )
                picked = _chosen(every.at(x), most)
                pulled[q] = Functionals(every.w[picked], every.c[picked])
        return pulled

    def _before(self, functionals: Functionals) -> Functionals:
        """Return the functionals before each letter: (|Σ|, M, d), (|Σ|, M)."""
        n, heads, b, _ = self._A.shape
        w = functionals.w.reshape(-1, heads, b).transpose(1, 0, 2)
        before = (w[None] @ self._A).transpose(0, 2, 1, 3).reshape(n, -1, heads * b)
        return Functionals(before, functionals.c + self._v.reshape(n, -1) @ functionals.w.T)

    def _lead(self, target: FailureTarget, x: torch.Tensor) -> torch.Tensor:
        logits = self._tables.readout(x.to(self._tables.x0.device))
        return (logits[:, target.output] - logits[:, int(self._goal.wanted[target.q])]).cpu()


def _chosen(values: np.ndarray, most: int) -> np.ndarray:
    """Return the indices of the functionals to keep, given their values (N, M) at points."""
    highest = values.max(0)
    _, first = np.unique(values[0], return_index=True)  # letters with the same effect give the same functional
    ranked = first[np.argsort(-highest[first], kind="stable")]
    is_best = np.zeros(len(highest), bool)
    is_best[values.argmax(1)] = True
    is_best = is_best[ranked]
    return np.concatenate([ranked[is_best][:most], ranked[~is_best][: max(0, most - int(is_best.sum()))]])
