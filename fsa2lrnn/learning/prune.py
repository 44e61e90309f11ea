"""Selection of the fewest heads that determine the outputs; usually one head implements the whole machine."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from copy import deepcopy
from itertools import combinations
from typing import NamedTuple, cast

import numpy as np
import torch

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.heads import Heads, Joint, joint_machine
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.nn.gate import Gate
from fsa2lrnn.nn.model import LRNN
from fsa2lrnn.nn.switched import switched
from fsa2lrnn.training.data import Batch

MOST = 3  # heads in a set
MAX_STATES = 12  # largest number of joint states to explore, per state of a head


class CandidateMachine(NamedTuple):
    """The machine of a set of heads with the most frequent labels as outputs; `faults` of `labels` labels differ."""

    heads: tuple[int, ...]
    machine: MooreMachine
    faults: int
    labels: int


class LabelledStates(NamedTuple):
    """Head states (M, H) and labels (M,) at the counted positions of words."""

    heads: Heads
    states: np.ndarray
    labels: np.ndarray
    alphabet: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def joined(self, other: LabelledStates) -> LabelledStates:
        """Return the observations of both batches, for the same heads."""
        states, labels = (
            np.concatenate([getattr(each, name) for each in (self, other)]) for name in ("states", "labels")
        )
        return self._replace(states=states, labels=labels)


def observe(
    heads: Heads, batch: Batch, alphabet: tuple[Hashable, ...], outputs: tuple[Hashable, ...]
) -> LabelledStates:
    """Return the head states and labels on a batch whose labels begin with the empty word's."""
    labels = batch.labels.numpy()
    counts = labels != UNCOUNTED
    return LabelledStates(heads, heads.states(batch.tokens.numpy())[counts], labels[counts], alphabet, outputs)


def faults(observed: LabelledStates, subset: tuple[int, ...]) -> int:
    """Return the number of labels that differ from the most frequent label of their joint state."""
    return _count(observed, subset)[2]


def best_head(observed: LabelledStates) -> tuple[int, int]:
    """Return the head with the fewest faults, and their number."""
    n_faults = [faults(observed, (h,)) for h in range(observed.states.shape[1])]
    best = int(np.argmin(n_faults))
    return best, n_faults[best]


def candidates(observed: LabelledStates, allowed: int, most: int = MOST) -> Iterator[CandidateMachine]:
    """Yield the machines of sets of heads with at most `allowed` faults, by size of the set, then by faults."""
    for size in range(1, min(most, observed.states.shape[1]) + 1):
        subsets = combinations(range(observed.states.shape[1]), size)
        for n_faults, subset in sorted((faults(observed, subset), subset) for subset in subsets):
            if n_faults <= allowed and (candidate := machine_of(observed, subset)) is not None:
                yield candidate


def fewest(observed: LabelledStates) -> CandidateMachine | None:
    """Return the machine of the fewest heads with faults within two standard deviations of the minimum, or None."""
    counted = {
        size: min((faults(observed, subset), subset) for subset in combinations(range(observed.states.shape[1]), size))
        for size in range(1, min(MOST, observed.states.shape[1]) + 1)
    }
    least = min(n_faults for n_faults, _ in counted.values())
    for n_faults, subset in counted.values():
        # The number of wrong labels varies by about its square root by chance.
        if n_faults <= least + 2 * least**0.5 and (candidate := machine_of(observed, subset)) is not None:
            return candidate
    return None


def machine_of(observed: LabelledStates, subset: tuple[int, ...]) -> CandidateMachine | None:
    """Return the minimal machine of these heads; a joint state that no word reached has the most frequent output.

    Returns None if the heads reach more than `MAX_STATES` joint states per state of a head.
    """
    keys, common, wrong = _count(observed, subset)
    table: dict[Joint, int] = dict(zip(keys, common, strict=True))
    usual = int(np.bincount(observed.labels).argmax())
    try:
        joint = joint_machine(
            observed.heads, subset, None, observed.alphabet, MAX_STATES * observed.heads.next_state.shape[2]
        )
    except BudgetExceeded:
        return None
    outputs = [observed.outputs[table.get(state, usual)] for state in joint.outputs]  # type: ignore[call-overload]
    machine = minimise(MooreMachine(joint.delta, outputs, joint.start, joint.alphabet))
    return CandidateMachine(subset, machine, wrong, len(observed.labels))


def _count(observed: LabelledStates, subset: tuple[int, ...]) -> tuple[list[Joint], list[int], int]:
    """Return the joint states that occur, the most frequent label of each, and the number of other labels."""
    b, C = observed.heads.next_state.shape[2], len(observed.outputs)
    key = np.zeros(len(observed.labels), np.int64)
    for h in subset:
        # A joint state as a number in base b, the first head as the highest digit.
        key = key * b + observed.states[:, h]
    # Sorted by joint state and then by label, so the codes of one state are neighbours.
    codes, counts = np.unique(key * C + observed.labels, return_counts=True)
    of_state, first = np.unique(codes // C, return_index=True)
    largest = np.maximum.reduceat(counts, first)
    # The first of equally frequent labels, so that the result does not depend on the order of words.
    is_largest = counts == np.repeat(largest, np.diff([*first, len(codes)]))
    places = np.flatnonzero(is_largest)
    common = codes[places[np.searchsorted(places, first)]] % C
    digits = [of_state // b ** (len(subset) - 1 - i) % b for i in range(len(subset))]
    keys = [tuple(state) for state in np.stack(digits, axis=1).tolist()]
    return keys, common.tolist(), int(counts.sum() - largest.sum())


@torch.no_grad()
def without_heads(model: LRNN, heads: Iterable[int]) -> LRNN:
    """Return a copy of a network of one layer in which these heads are constant and not read."""
    copy = deepcopy(model)
    layer, readout = copy.recurrences[0], cast("Gate", copy.readout)
    parts = [layer.get_parameter("x0"), readout.weights.W1.T]
    parts += [part for _, gate in layer.gates for part in (gate.weights.W2, gate.weights.b2)]
    for part in parts:
        part.unflatten(0, (layer.n_heads, -1))[[*heads]] = 0
    return copy


@torch.no_grad()
def images(model: LRNN, machine: MooreMachine) -> tuple[tuple[int, ...], bool]:
    """Return the heads whose state is a function of the machine's state, and whether they determine all outputs."""
    tables, delta, start = switched(model), torch.tensor(machine.delta), machine.start
    x, order = {start: tables.x0}, [start]
    for q in order:
        for a, target in enumerate(delta[:, q].tolist()):
            if target not in x:
                x[target] = (tables.A[a] @ x[q].unsqueeze(-1)).squeeze(-1) + tables.v[a]
                order.append(target)
    states = torch.stack([x[q] for q in range(machine.n_states)])  # (n, H, b)
    after = torch.einsum("ahij,qhj->aqhi", tables.A, states) + tables.v[:, None]
    is_image = (after == states[delta]).all(-1).all(0).all(0)
    outputs: dict[tuple[float, ...], set[Hashable]] = {}
    for vector, output in zip(states[:, is_image].flatten(1).tolist(), machine.outputs, strict=True):
        outputs.setdefault(tuple(vector), set()).add(output)
    heads = tuple(is_image.nonzero().flatten().tolist())
    return heads, all(len(of_vector) == 1 for of_vector in outputs.values())
