"""Search for the coordinates and the memory that certify the greatest length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fsa2lrnn.checker.nodes import CountedAutomaton, nodes
from fsa2lrnn.checker.proof import LONGEST_START, MOST_NUMBERS, NUMBERS_PER_WORD
from fsa2lrnn.checker.replay import TubeReplay
from fsa2lrnn.checker.rounding import Slack
from fsa2lrnn.checker.sets import Sets, Tube
from fsa2lrnn.checker.tables import Tables
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.verification.certify.directions import fans, gradients
from fsa2lrnn.verification.certify.frames import Frames, components
from fsa2lrnn.verification.certify.tails import find_tail, rounded
from fsa2lrnn.verification.certify.work import WorkBudget

_WORDS = 20_000  # short words that are enumerated
_FRAMES_SHARE = 0.3  # share of the time for the semidefinite programs
_FRAMES = 600  # nodes with their own coordinates
_NODES = 40_000
_THRESHOLDS = (0.93, 0.8)
_WORTH_IT = 1.02  # gain in length at which one more letter of memory is tried
_LONGEST_WALK = 4_000
_DECLINE = 64  # letters after which the decline of the margins is first evaluated
_MOST_DIRECTIONS = 64
_STORED_BYTES = 3_000_000
_MOST_STORED = 8


@dataclass(frozen=True, eq=False)
class TubeWalk:
    """A tube with the length that it certifies.

    Args:
        tube: the tube, with the stored sets and the tail.
        horizon: the certified length, None for all lengths.
        margins: as in `Certificate`.
        work: the number of multiplications of the walk.
    """

    tube: Tube
    horizon: int | None
    margins: list[float]
    work: float

    @property
    def reach(self) -> float:
        """The certified length as a number, infinite for all lengths."""
        return np.inf if self.horizon is None else self.horizon


class TubeSearch:
    """A search over tubes for one model and target, within a budget of work."""

    def __init__(self, tables: Tables, target: CountedAutomaton, slack: Slack, work: WorkBudget) -> None:
        self._tables, self._target, self._slack, self._work = tables, target, slack, work
        self._weights = tables.weights
        self._part, self._frames = (
            components(target),
            Frames(self._weights["A"], target, work.deadline.share(_FRAMES_SHARE)),
        )
        self._longest = 0.0  # seconds of the longest walk, which is repeated to store its sets

    def best(self, memory: int | str) -> TubeWalk:
        """Return the longest walk with this memory, or with any for "auto"; raise `UnsupportedFormat` for others."""
        if memory == "auto":
            return self._growing()
        if not isinstance(memory, int) or not 1 <= memory <= LONGEST_START or self._count(memory) > _NODES:
            raise UnsupportedFormat(
                f"memory = {memory!r}: a number of letters from 1 to {LONGEST_START}, with at most {_NODES:,} sets, or "
                '"auto"'
            )
        return max(self._walks(memory), key=lambda walk: walk.reach)

    def _growing(self) -> TubeWalk:
        walks = list(self._walks(1))
        best = max(walks, key=lambda walk: walk.reach)
        threshold = self._thresholds[walks.index(best)]
        memory, last = 2, best
        # Words of one letter are read one by one with any memory: where these fail, all memories do.
        while 0 < best.reach < _LONGEST_WALK and self._count(memory) <= _NODES:
            if not self._work.allows(last.work * len(self._target.delta) / 2):
                break
            last = self.walk(self.tube(memory, threshold))
            paid = last.reach >= _WORTH_IT * best.reach
            best = max(best, last, key=lambda walk: walk.reach)
            if not paid and memory > 2:
                break
            memory += 1
        return best

    @property
    def _thresholds(self) -> tuple[float | None, ...]:
        return (None, *_THRESHOLDS) if self._frames.keep_exactly else _THRESHOLDS

    def _walks(self, memory: int) -> Iterator[TubeWalk]:
        """Yield the walk for each threshold, as long as the time allows another."""
        for i, threshold in enumerate(self._thresholds):
            if i and not self._work.allows(0.0, self._longest):
                break
            yield self.walk(self.tube(memory, threshold))

    def _count(self, memory: int) -> int:
        return self._target.delta.shape[1] * len(self._target.delta) ** memory

    def tube(self, memory: int, threshold: float | None) -> Tube:
        """Return the tube for sets that remember `memory` letters; raise `UnsupportedFormat` if no position counts."""
        n_letters, n_states = self._target.delta.shape
        frame_memory = 1
        while frame_memory < memory and n_states * n_letters ** (frame_memory + 1) <= _FRAMES:
            frame_memory += 1
        start = memory
        words = min(_WORDS, MOST_NUMBERS // (2 * NUMBERS_PER_WORD * self._weights["W1"].shape[1]))
        while n_letters > 1 and n_letters ** (start + 1) <= words:
            start += 1
        frame_nodes = nodes(self._target, memory, frame_memory)
        if not len(frame_nodes.state):
            raise UnsupportedFormat("no position counts after words of a few letters: there is nothing to certify")
        basis, slow = self._frames.of(frame_nodes, threshold)
        part = np.maximum(self._part, 0)
        plain = Tube(memory, frame_memory, start, basis, slow, part, np.zeros((part.max() + 1, 0, *slow.shape[1:])))
        directions = fans(plain)
        if n_states * (len(self._weights["b2"]) - 1) <= _MOST_DIRECTIONS:
            joint = gradients(self._tables, self._target, frame_nodes, plain)
            if np.isfinite(joint).all():
                directions = np.concatenate([joint, directions], 1)
        return replace(plain, directions=directions)

    def walk(self, tube: Tube, store: frozenset[int] = frozenset()) -> TubeWalk:
        """Return the walk of a tube as far as its margins are positive, with the sets stored at the lengths in `store`.

        A walk with `store` repeats an earlier one, so it costs no work.
        """
        step, spent = self._cost(tube), 0.0
        replay = TubeReplay(self._tables, self._target, tube, self._slack)
        margins: list[float] = []
        stored: list[Sets] = []
        sets, next_attempt, tail, deadline = None, tube.start + _DECLINE, (), self._work.deadline
        begun = at = deadline.passed()
        # 1. Short words, one by one.
        for margin, sets in replay.lengths():
            if not margin > 0:
                return TubeWalk(tube, len(margins), margins, spent)
            margins.append(margin)
            if sets is not None:
                break
            # The next length has |Σ| times as many words, and sets about them may take as long again.
            at, took = deadline.passed(), deadline.passed() - at
            if not store and not self._work.allows(0.0, self._longest + 2 * len(self._target.delta) * took):
                return TubeWalk(tube, len(margins), margins, spent)
        # 2. Sets, letter by letter, with an attempt at a tail wherever the margins decline slowly.
        while sets is not None and (store or self._work.allows(step, self._longest)):
            spent += step
            self._longest = max(self._longest, deadline.passed() - begun)
            if not store:
                self._work.spend(step)
            if len(margins) == _LONGEST_WALK or (len(margins) >= next_attempt and _will_last(margins)):
                tail = find_tail(replay, sets, deadline)
                next_attempt = 2 * len(margins)
                if tail or len(margins) == _LONGEST_WALK:
                    break
            after = replay.steps.after(sets)
            if after.length in store:
                after = rounded(after)
            if not (margin := replay.margin(after)) > 0:
                break
            margins.append(margin)
            sets = after
            if sets.length in store:
                stored.append(sets)
        tube = replace(tube, stored=tuple(stored), tail=tail)
        horizon: int | None = len(margins)
        if sets is not None and tail:
            least, horizon = replay.tail(tail, sets)
            margins.append(least)
        return TubeWalk(tube, horizon, margins, spent)

    def _cost(self, tube: Tube) -> float:
        """Return the approximate multiplications per letter, of the sets, their directions and the margins."""
        F, H, b = tube.slow.shape
        n_sets = F * len(self._target.delta) ** (tube.memory - tube.frame_memory)
        extent = tube.directions.any((0, 3)).sum()  # the number of heads, summed over directions
        per_step = len(self._target.delta) * b * (4 * b * H + 2 * int(extent))
        return float(n_sets * (per_step + self._weights["W1"].size))

    def settled(self, walk: TubeWalk) -> TubeWalk:
        """Return the walk with sets stored at some lengths and at the last; unchanged if it has a tail or no sets."""
        length = len(walk.margins)
        if length <= walk.tube.start or walk.tube.tail:
            return walk
        plain = replace(walk.tube, stored=(), tail=())
        F, D, H, b = *walk.tube.slow.shape[:1], walk.tube.directions.shape[1], *walk.tube.slow.shape[1:]
        older = len(self._target.delta) ** (plain.memory - plain.frame_memory)
        count = int(np.clip(_STORED_BYTES // (4 * F * older * (2 * H * b + H + 2 * D)), 1, _MOST_STORED))
        chosen = np.linspace(plain.start, length, count + 1).round().astype(int)[1:]
        return self.walk(plain, frozenset(chosen.tolist()))


def _will_last(margins: list[float]) -> bool:
    """Decide whether margins that continue to fall at this rate stay positive for a whole walk."""
    before, now = margins[-_DECLINE // 2], margins[-1]
    return now == before or now > _LONGEST_WALK * (before - now) / (_DECLINE // 2 - 1)
