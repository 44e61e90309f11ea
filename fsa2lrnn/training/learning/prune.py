"""The fewest heads that account for the outputs: mostly one, which is the machine."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.lower.harden import Heads, Joint, joint_machine
from fsa2lrnn.training.data import Batch

MOST = 3  # heads together
MAX_STATES = 12  # joint states that are worth exploring, for each state of a head


class CandidateMachine(NamedTuple):
    """The machine of some heads: the output of a joint state is the one that most labels there have.

    `faults` are the labels that are others, of `labels` in all.
    """

    heads: tuple[int, ...]
    machine: MooreMachine
    faults: int
    labels: int


class LabelledStates(NamedTuple):
    """Head states (M, H) and labels (M,) at the positions of words that count."""

    heads: Heads
    states: np.ndarray
    labels: np.ndarray
    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def joined(self, other: LabelledStates) -> LabelledStates:
        """What was seen of the same heads on two occasions."""
        states, labels = (
            np.concatenate([getattr(each, name) for each in (self, other)]) for name in ("states", "labels")
        )
        return self._replace(states=states, labels=labels)


def observe(
    heads: Heads, batch: Batch, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...]
) -> LabelledStates:
    """What the heads do on a batch whose labels begin with the empty word's."""
    labels = batch.labels.numpy()
    counts = labels != UNCOUNTED
    return LabelledStates(heads, heads.states(batch.tokens.numpy())[counts], labels[counts], alphabet, outputs)


def faults(seen: LabelledStates, kept: tuple[int, ...]) -> int:
    """How many labels are not those of most in their joint state."""
    return _count(seen, kept)[2]


def best_head(seen: LabelledStates) -> tuple[int, int]:
    """The head with the fewest faults, and how many."""
    found = [faults(seen, (h,)) for h in range(seen.states.shape[1])]
    best = int(np.argmin(found))
    return best, found[best]


def usual(seen: LabelledStates, head: int) -> np.ndarray:
    """The number of the output that most labels are in each state of a head, −1 where no word led."""
    keys, common, _ = _count(seen, (head,))
    found = np.full(seen.heads.next_state.shape[2], -1)
    found[[q for (q,) in keys]] = common
    return found


def candidates(seen: LabelledStates, allowed: int, most: int = MOST) -> Iterator[CandidateMachine]:
    """Sets of heads with at most `allowed` faults, the smallest first, and among those of one size the best."""
    for size in range(1, min(most, seen.states.shape[1]) + 1):
        subsets = [(faults(seen, kept), kept) for kept in combinations(range(seen.states.shape[1]), size)]
        for found, kept in sorted(subsets):
            if found <= allowed and (candidate := machine_of(seen, kept)) is not None:
                yield candidate


def fewest(seen: LabelledStates, most: int = MOST) -> CandidateMachine | None:
    """The fewest heads whose faults are within chance (two deviations) of the least there are."""
    counted = {
        size: min((faults(seen, kept), kept) for kept in combinations(range(seen.states.shape[1]), size))
        for size in range(1, min(most, seen.states.shape[1]) + 1)
    }
    least = min(found for found, _ in counted.values())
    for found, kept in counted.values():
        if found <= least + 2 * least**0.5 and (candidate := machine_of(seen, kept)) is not None:
            return candidate
    return None


def machine_of(seen: LabelledStates, kept: tuple[int, ...]) -> CandidateMachine | None:
    """The machine of these heads, minimised; a joint state that no word reached puts out what most labels are.

    None if more than `MAX_STATES` times the states of a head are reached: several heads then go their own ways.
    """
    keys, common, wrong = _count(seen, kept)
    table: dict[Joint, int] = dict(zip(keys, common, strict=True))
    usual = int(np.bincount(seen.labels).argmax())
    try:
        joint = joint_machine(seen.heads, kept, None, seen.alphabet, MAX_STATES * seen.heads.next_state.shape[2])
    except BudgetExceeded:
        return None
    outputs = [seen.outputs[table.get(state, usual)] for state in joint.outputs]  # type: ignore[call-overload]
    machine = minimise(MooreMachine(joint.delta, outputs, joint.start, joint.alphabet))
    return CandidateMachine(kept, machine, wrong, len(seen.labels))


def _count(seen: LabelledStates, kept: tuple[int, ...]) -> tuple[list[Joint], list[int], int]:
    """The joint states that occur, the label of most in each, and the labels that are others."""
    b, C = seen.heads.next_state.shape[2], len(seen.outputs)
    key = np.zeros(len(seen.labels), np.int64)
    for h in kept:
        key = key * b + seen.states[:, h]
    codes, counts = np.unique(key * C + seen.labels, return_counts=True)
    of_state, first = np.unique(codes // C, return_index=True)
    largest = np.maximum.reduceat(counts, first)
    # Among labels equally frequent the first, so that the order of words makes no difference.
    is_largest = counts == np.repeat(largest, np.diff([*first, len(codes)]))
    places = np.flatnonzero(is_largest)
    common = codes[places[np.searchsorted(places, first)]] % C
    digits = [of_state // b ** (len(kept) - 1 - i) % b for i in range(len(kept))]
    keys = [tuple(state) for state in np.stack(digits, axis=1).tolist()]
    return keys, common.tolist(), int(counts.sum() - largest.sum())
