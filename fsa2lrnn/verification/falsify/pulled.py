"""What a state is worth some letters before a failure, to a switched affine model.

How far a wrong output is ahead is nearly linear in the state near where it comes first: a *functional* ⟨w, x⟩ + c. A
letter a makes of x the state A_a x + v_a, so that before the letter the same functional is (A_aᵀ w, c + ⟨w, v_a⟩),
without any error. Pulled back along the words that the machine's transitions allow, a few functionals for each machine
state and number of letters left tell which states, long before anything shows in a margin, lead to a failure soonest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from fsa2lrnn.lrnn.switched import SwitchedAffine
from fsa2lrnn.verification.goal import Specification

_TANGENTS = 4
Points = dict[int, np.ndarray]
"""For each machine state that words of one length lead to, some of the model's states there: (N, d)."""


class FailureTarget(NamedTuple):
    """A failure to aim at: an output, by number, where the machine is in a state that wants another."""

    q: int
    output: int


class Functionals(NamedTuple):
    """M affine functions of a state: float64 (M, d), (M,)."""

    w: np.ndarray
    c: np.ndarray

    def at(self, x: np.ndarray) -> np.ndarray:
        """(N, d) -> (N, M)."""
        return x @ self.w.T + self.c


Pulled = dict[int, Functionals]
"""For each machine state the functionals that are worth keeping, one for each of a few words to come."""


class FunctionalPullback:
    """Functionals of one model beside its goal, in float64 whatever the model's dtype."""

    def __init__(self, tables: SwitchedAffine, goal: Specification) -> None:
        self._tables, self._goal = tables.to(torch.float64), goal
        self._A, self._v = self._tables.A.cpu().numpy(), self._tables.v.cpu().numpy()

    def targets(self, points: Points) -> list[FailureTarget]:
        """All failures that there may be at these points, the nearest first."""
        answerable = self._goal.answerable
        found = [
            FailureTarget(q, output)
            for q in points
            for output in range(self._goal.known)
            if answerable[q] and output != self._goal.wanted[q]
        ]
        return sorted(found, key=lambda target: (-self.ahead(target, points), target))

    def ahead(self, target: FailureTarget, points: Points) -> float:
        """How far the wrong output gets ahead of the right one at any of these points; −∞ where none is there."""
        if target.q not in points:
            return -np.inf
        with torch.no_grad():
            lead = self._lead(target, torch.from_numpy(points[target.q].astype(np.float64)))
        return float(lead.nan_to_num(-torch.inf).max())

    def tangents(self, target: FailureTarget, points: Points) -> Pulled:
        """The wrong output's lead as a functional, at those of these points where it is largest."""
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
        """The functionals of one letter more to come: for each machine state at most `most` of all there are, those
        that are largest at one of its points, and those that are large at any."""
        letters = {q: self._before(functionals) for q, functionals in ahead.items()}
        found: Pulled = {}
        for q, x in points.items():
            some = [
                (letters[to].w[a], letters[to].c[a])
                for a, to in enumerate(self._goal.delta[:, q].tolist())
                if to in letters
            ]
            if some:
                every = Functionals(np.concatenate([w for w, _ in some]), np.concatenate([c for _, c in some]))
                kept = _chosen(every.at(x), most)
                found[q] = Functionals(every.w[kept], every.c[kept])
        return found

    def _before(self, functionals: Functionals) -> Functionals:
        """Before each letter: (|Σ|, M, d), (|Σ|, M)."""
        n, heads, b, _ = self._A.shape
        w = functionals.w.reshape(-1, heads, b).transpose(1, 0, 2)
        before = (w[None] @ self._A).transpose(0, 2, 1, 3).reshape(n, -1, heads * b)
        return Functionals(before, functionals.c + self._v.reshape(n, -1) @ functionals.w.T)

    def _lead(self, target: FailureTarget, x: torch.Tensor) -> torch.Tensor:
        logits = self._tables.readout(x.to(self._tables.x0.device))
        return (logits[:, target.output] - logits[:, int(self._goal.wanted[target.q])]).cpu()


def _chosen(values: np.ndarray, most: int) -> np.ndarray:
    """Places among M functionals, from their values at points, (N, M)."""
    highest = values.max(0)
    _, first = np.unique(values[0], return_index=True)  # letters that act alike give the same functional
    ranked = first[np.argsort(-highest[first], kind="stable")]
    is_best = np.zeros(len(highest), bool)
    is_best[values.argmax(1)] = True
    is_best = is_best[ranked]
    return np.concatenate([ranked[is_best][:most], ranked[~is_best][: max(0, most - int(is_best.sum()))]])
