"""A beam that knows where it is going: forward among states, backward among functionals, in turn (docs/theory.md §8).

Of a switched affine model it is known what a state is worth with so many letters left (`pulled`). A beam that keeps the
states that are worth most comes out closer to a failure than one that looks at margins and spread alone; the
functionals are then taken anew where it came out, and chosen by the states that it passed. Every failure found is at a
shorter length than the one before.
"""

from __future__ import annotations

import numpy as np
import torch

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.lrnn.switched import SwitchedAffine
from fsa2lrnn.verification.falsify.beam import Chooser, grow, width_for
from fsa2lrnn.verification.falsify.judge import ModelComparison
from fsa2lrnn.verification.falsify.pulled import FailureTarget, FunctionalPullback, Points, Pulled
from fsa2lrnn.verification.falsify.verdict import Budget, Failure, SearchOutcome

_NUMBERS = 1 << 24  # that points and functionals of all lengths may hold
_PATIENCE = 8  # rounds like the last one in which a target must come within reach


class _Guided(Chooser):
    """Picks the states of which some functional makes most, and the few of least margins; notes what was picked."""

    def __init__(self, width: int, noted: int, pulled: list[Pulled] | None = None) -> None:
        super().__init__(width)
        self.points: list[Points] = [{}]
        self._noted, self._pulled = noted, pulled

    def choose(self, length: int, states: tuple[torch.Tensor, ...], q: np.ndarray, margin: np.ndarray) -> np.ndarray:
        """As every chooser does."""
        kept = super().choose(length, states, q, margin)
        x = states[0].detach().flatten(1)[torch.from_numpy(kept)].float().cpu().numpy()
        here: Points = {}
        for state in np.unique(q[kept]).tolist():
            some = x[q[kept] == state]
            some = some[np.isfinite(some).all(1)]
            if len(some):
                here[state] = some[:: -(-len(some) // self._noted)]
        self.points.append(here)
        return kept

    def pick(self, length: int, q: int, x: np.ndarray) -> np.ndarray:
        """As every chooser does."""
        if self._pulled is None or length >= len(self._pulled):
            return super().pick(length, q, x)
        if q not in self._pulled[length]:  # the target is not to be reached from here
            return np.arange(2)
        value = self._pulled[length][q].at(x)
        kept = np.zeros(len(x), bool)
        kept[: max(1, self.width // 8)] = True
        kept[_leaders(value, self.width // 2)] = True
        ranked = np.argsort(-value.max(1), kind="stable")
        kept[ranked[~kept[ranked]][: max(0, self.width - int(kept.sum()))]] = True
        return np.flatnonzero(kept)


def _leaders(value: np.ndarray, most: int) -> np.ndarray:
    """Of N states with values (N, M), for each functional the same number of those of which it makes most; at most
    `most` in all."""
    each = min(max(1, most // value.shape[1]), len(value))
    leaders = np.unique(np.argpartition(-value, each - 1, axis=0)[:each])
    return leaders[np.argsort(-value[leaders].max(1), kind="stable")[:most]]


def guided(
    judge: ModelComparison, budget: Budget, below: int, clock: Deadline, known: Failure | None = None
) -> SearchOutcome:
    """Words of less than `below` letters that come out as far astray as `budget.rounds` rounds can bring them.

    A round aims at one wrong output in one state of the machine, at one length: that of the shortest failure known,
    `known` to begin with, less one letter. What it aims at stays the same as long as it comes nearer fast enough.

    Args:
        judge: of a switched affine model; of any other nothing is found.
    """
    longest, tables = min(budget.length, below - 1), judge.runner.tables
    if tables is None or longest < 1:
        return SearchOutcome(None, "no switched affine model", 0, 0, 0)
    with np.errstate(all="ignore"):  # of states that overflow
        return _Rounds(judge, tables, budget, longest, clock).all(known)


class _Rounds:
    """A search at work."""

    def __init__(
        self, judge: ModelComparison, tables: SwitchedAffine, budget: Budget, longest: int, clock: Deadline
    ) -> None:
        self._judge, self._tables, self._clock = judge, tables, clock
        self._pull = FunctionalPullback(tables, judge.goal)
        self._width = width_for(judge, budget.width)
        n_states = int(judge.goal.hopeful.sum())
        self._most = max(1, min(self._width // 2, _NUMBERS // (2 * n_states * tables.x0.numel() * longest)))
        self._rounds, self._length = budget.rounds, longest
        self._what = f"beam of {self._width} states for each of {n_states} machine states, guided by {self._most}"
        self._words = self._letters = self._done = 0
        self._best: Failure | None = None

    def all(self, known: Failure | None) -> SearchOutcome:
        """The outcome of as many rounds as there are."""
        points = self._forward(None)
        best = self._best or known
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
        """Rounds at one target, until it comes no nearer."""
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
            if not ahead + _PATIENCE * (ahead - before) > 0:
                return

    def _forward(self, pulled: list[Pulled] | None) -> list[Points]:
        """One beam: the points of every length that it passed."""
        chooser = _Guided(self._width, self._most, pulled)
        found = grow(self._judge, chooser, self._length, self._clock)
        self._words, self._letters = max(self._words, found.words), self._letters + found.letters
        if found.failure is not None:
            self._best, self._length = found.failure, len(found.failure.tokens) - 1
        return chooser.points

    def _backward(self, target: FailureTarget, points: list[Points], best: Failure | None) -> list[Pulled] | None:
        """For each length up to that of the round the functionals there; None where the time is over."""
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
        """States along a failing word, as points of a word that is to be shorter: counted from its first letter, and
        from its last."""
        if best is None:
            return {}
        tokens = best.tokens
        with torch.no_grad():
            x = self._tables.run(torch.from_numpy(tokens)[None].to(self._tables.x0.device))[0]
        states = x.flatten(1).float().cpu().numpy()
        path = self._judge.goal.path(tokens[None])[0].tolist()
        found: dict[int, list[tuple[int, np.ndarray]]] = {}
        for k in range(len(tokens)):
            if np.isfinite(states[k]).all():
                for length in {k + 1, k + 1 - (len(tokens) - self._length)}:
                    found.setdefault(length, []).append((path[k], states[k : k + 1]))
        return found

    def _target_of(self, failure: Failure) -> FailureTarget:
        q = int(self._judge.goal.path(failure.tokens[None])[0, -1])
        return FailureTarget(q, int(failure.outputs[-1]))
