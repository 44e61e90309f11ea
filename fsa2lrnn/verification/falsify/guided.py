"""Guided beam search: a forward pass over states and a backward pass over functionals, in turn (docs/theory.md §8).

The lead of a wrong output is nearly linear in the state near the point where it wins: a *functional* ⟨w, x⟩ + c. A
letter a maps x to the state A_a x + v_a, so before the letter the same functional is (A_aᵀ w, c + ⟨w, v_a⟩), without
any error. Pulled back along the words that the machine's transitions allow, a few functionals per machine state and
number of letters left identify the states that lead to a failure soonest, long before a margin decreases.

A beam that keeps the states of the largest values ends closer to a failure than one that uses margins and spread alone.
The next round computes the functionals at the final states of the beam and selects them by the states on its way.
Every failure found is shorter than the one before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.nn.switched import SwitchedAffine
from fsa2lrnn.verification.falsify.frontiers import Chooser, grow, width_for
from fsa2lrnn.verification.falsify.model_comparison import Budget, Failure, ModelComparison, SearchOutcome
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
        # The tangent at x₀ is lead(x₀) + ⟨w, x − x₀⟩.
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
        # Head by head, row w of a functional becomes w A_a; the axes are letter, head, functional and coordinate before
        # the transposition.
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
    # A functional that is the largest at some point tells a way to fail that the others miss there.
    is_best[values.argmax(1)] = True
    is_best = is_best[ranked]
    return np.concatenate([ranked[is_best][:most], ranked[~is_best][: max(0, most - int(is_best.sum()))]])


_NUMBERS = 1 << 24  # the most numbers that points and functionals of all lengths hold
_PATIENCE = 8  # rounds within which the last round's gain, repeated, must reach the target


class _Guided(Chooser):
    """A chooser that picks the states with the largest functional values and a few with the least margins."""

    def __init__(self, width: int, noted: int, pulled: list[Pulled] | None = None) -> None:
        super().__init__(width)
        self.points: list[Points] = [{}]
        self._noted, self._pulled = noted, pulled

    def choose(self, length: int, states: tuple[torch.Tensor, ...], q: np.ndarray, margin: np.ndarray) -> np.ndarray:
        """Return the sorted indices of the picked states, and record at most `noted` of them per machine state."""
        chosen = super().choose(length, states, q, margin)
        x = states[0].detach().flatten(1)[torch.from_numpy(chosen)].float().cpu().numpy()
        here: Points = {}
        for state in np.unique(q[chosen]).tolist():
            here_x = x[q[chosen] == state]
            here_x = here_x[np.isfinite(here_x).all(1)]
            if len(here_x):
                here[state] = here_x[:: -(-len(here_x) // self._noted)]
        self.points.append(here)
        return chosen

    def pick(self, length: int, q: int, x: np.ndarray) -> np.ndarray:
        """Return the indices picked among states (N, d): an eighth of `width` by margin, the others by value."""
        if self._pulled is None or length >= len(self._pulled):
            return super().pick(length, q, x)
        if q not in self._pulled[length]:  # the target is not reachable from here
            return np.arange(2)
        value = self._pulled[length][q].at(x)
        is_picked = np.zeros(len(x), bool)
        is_picked[: max(1, self.width // 8)] = True
        is_picked[_leaders(value, self.width // 2)] = True
        ranked = np.argsort(-value.max(1), kind="stable")
        is_picked[ranked[~is_picked[ranked]][: max(0, self.width - int(is_picked.sum()))]] = True
        return np.flatnonzero(is_picked)


def _leaders(value: np.ndarray, most: int) -> np.ndarray:
    """Return the indices of at most `most` states with the largest values (N, M), as many for each functional."""
    each = min(max(1, most // value.shape[1]), len(value))
    leaders = np.unique(np.argpartition(-value, each - 1, axis=0)[:each])
    return leaders[np.argsort(-value[leaders].max(1), kind="stable")[:most]]


def guided(
    comparison: ModelComparison, budget: Budget, below: int, clock: Deadline, known: Failure | None = None
) -> SearchOutcome:
    """Search words of fewer than `below` letters in at most `budget.rounds` guided rounds.

    A round has one target, a wrong output in one machine state, and one length: that of the shortest failure so far
    (`known` at first) less one letter. The target stays the same as long as the beam approaches it fast enough.

    Args:
        comparison: of a switched affine model; for any other model nothing is searched.
    """
    longest, tables = min(budget.length, below - 1), comparison.runner.tables
    if tables is None or longest < 1:
        return SearchOutcome(None, "no switched affine model", 0, 0, 0)
    with np.errstate(all="ignore"):  # states may overflow
        return _Rounds(comparison, tables, budget, longest, clock).all(known)


class _Rounds:
    def __init__(
        self, comparison: ModelComparison, tables: SwitchedAffine, budget: Budget, longest: int, clock: Deadline
    ) -> None:
        self._comparison, self._tables, self._clock = comparison, tables, clock
        self._pull = FunctionalPullback(tables, comparison.goal)
        self._width = width_for(comparison, budget.width)
        n_states = int(comparison.goal.coaccessible.sum())
        self._most = max(1, min(self._width // 2, _NUMBERS // (2 * n_states * tables.x0.numel() * longest)))
        self._rounds, self._length = budget.rounds, longest
        self._what = f"beam of {self._width} states for each of {n_states} machine states, guided by {self._most}"
        self._words = self._letters = self._done = 0
        self._best: Failure | None = None

    def all(self, start: Failure | None) -> SearchOutcome:
        points = self._forward(None)
        best = self._best or start
        targets = self._pull.targets(points[-1])
        if best is not None:
            nearest = self._target_of(best)
            targets.sort(key=lambda target: target != nearest)
        for target in targets:
            self._aim(target, points, best)
            best = self._best or best
            if self._done == self._rounds or self._clock.left() <= 0 or self._length < 1:
                break
        finished = self._clock.left() > 0
        return SearchOutcome(self._best, self._what, self._length, self._words, self._letters, finished)

    def _aim(self, target: FailureTarget, points: list[Points], best: Failure | None) -> None:
        """Alternate backward and forward passes towards a target until a round no longer brings it closer.

        `points` are the states of the last forward pass, one per length; a failure found restarts with its length.
        """
        ahead = self._pull.ahead(target, points[min(self._length, len(points) - 1)])
        while self._done < self._rounds and self._length >= 1:
            self._done += 1
            before, length = ahead, self._length
            pulled = self._backward(target, points, best)
            if pulled is None:
                return
            points = self._forward(pulled)
            if self._clock.left() <= 0:
                return
            if self._length < length:
                best, ahead = self._best, -np.inf
                continue
            ahead = self._pull.ahead(target, points[-1])
            # The lead of the wrong output has to become positive; at the last round's gain it would not within these
            # rounds.
            if not ahead + _PATIENCE * (ahead - before) > 0:
                return

    def _forward(self, pulled: list[Pulled] | None) -> list[Points]:
        """Grow one beam forward and return the states that it recorded, one entry per length."""
        chooser = _Guided(self._width, self._most, pulled)
        growth = grow(self._comparison, chooser, self._length, self._clock)
        self._words, self._letters = max(self._words, growth.words), self._letters + growth.letters
        if growth.failure is not None:
            self._best, self._length = growth.failure, len(growth.failure.tokens) - 1
        return chooser.points

    def _backward(self, target: FailureTarget, points: list[Points], best: Failure | None) -> list[Pulled] | None:
        """Return the functionals at each length of the round, computed backward, or None at the time limit."""
        along = self._along(best)
        pulled: list[Pulled] = []
        for length in range(self._length, -1, -1):
            if self._clock.left() <= 0:
                return None
            here = points[min(length, len(points) - 1)]
            for q, x in along.get(length, []):
                here = here | {q: np.concatenate([here[q], x]) if q in here else x}
            pulled.append(
                self._pull.back(pulled[-1], here, self._most) if pulled else self._pull.tangents(target, here)
            )
        return pulled[::-1]

    def _along(self, best: Failure | None) -> dict[int, list[tuple[int, np.ndarray]]]:
        """Return a counterexample's states by length, aligned at the start and at the end of a shorter word."""
        if best is None:
            return {}
        tokens = best.tokens
        with torch.no_grad():
            x = self._tables.run(torch.from_numpy(tokens)[None].to(self._tables.x0.device))[0]
        states = x.flatten(1).float().cpu().numpy()
        path = self._comparison.goal.path(tokens[None])[0].tolist()
        points: dict[int, list[tuple[int, np.ndarray]]] = {}
        for k in range(len(tokens)):
            if np.isfinite(states[k]).all():
                # The shorter word to be found may lose letters at its end or at its start: both alignments are tried.
                for length in {k + 1, k + 1 - (len(tokens) - self._length)}:
                    points.setdefault(length, []).append((path[k], states[k : k + 1]))
        return points

    def _target_of(self, failure: Failure) -> FailureTarget:
        q = int(self._comparison.goal.path(failure.tokens[None])[0, -1])
        return FailureTarget(q, int(failure.outputs[-1]))
