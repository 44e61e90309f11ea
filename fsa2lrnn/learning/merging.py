"""State merging for correct labels, and the length of a machine's description of labels.

As in EDSM (Lang, Pearlmutter and Price 1998) the words form a prefix tree, some nodes of which are states already. The
child of the states with the most labels below it is folded into the state that agrees with it on the most labels, or
becomes a state if two labels differ with each.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import complete, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.heads import Heads
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import BudgetExceeded
from fsa2lrnn.learning.word_files import Data

MAX_STATES = 256
_DONE, _FOLDED = -1, -2  # in place of a node
_LABEL, _WEIGHT = -1, -2  # in place of a letter


def merge(data: Data, deadline: Deadline = NEVER) -> MooreMachine:
    """Return the machine that merging infers from labels that contradict nothing; missing transitions are self-loops.

    Raises:
        BudgetExceeded: for more than `MAX_STATES` states.
        OutOfTime: at the deadline.

    >>> from fsa2lrnn.learning.word_files import from_pairs
    >>> from itertools import product
    >>> words = [word for n in range(7) for word in product("ab", repeat=n)]
    >>> machine = merge(from_pairs([(word, word.count("a") % 2) for word in words]))
    >>> machine.n_states, machine.transduce("aba")
    (2, [1, 1, 0])
    """
    child, label, sizes = _prefix_tree(data)
    weight = sizes.copy()
    _add_below(child, weight)
    states, is_state = np.zeros(MAX_STATES + 1, np.int64), np.zeros(len(child), np.bool_)
    n, is_state[0] = 1, True
    tree = child, label, sizes, weight, is_state
    stack, log = np.empty((len(child), 2), np.int64), np.empty((4 * len(child) + 1, 3), np.int64)
    while (node := _merge_next(*tree, states[:n], stack, log)) != _DONE:
        deadline.check(f"merging states, {n:,} so far")
        if node != _FOLDED:
            states[n], is_state[node] = node, True
            n += 1
        if n > MAX_STATES:
            raise BudgetExceeded(
                f"more than {MAX_STATES} states are left: give outputs after every letter, or leave the method out"
            )
    states = states[:n]
    number = {node: i for i, node in enumerate(states.tolist())}
    delta = [[number.get(q) for q in row] for row in child[states].T.tolist()]
    usual = int(data.labels[data.labels != UNCOUNTED].mode().values)
    outputs = [data.outputs[y if y >= 0 else usual] for y in label[states].tolist()]
    return minimise(complete(delta, outputs, 0, data.alphabet, completion="ignore"))


def _prefix_tree(data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the children of each prefix, int64 (N, |Σ|) with −1 for none, its label or −1, and its number of labels.

    The empty prefix is node 0.
    """
    size = 1 + int(data.lengths.sum())
    child, label, sizes = np.full((size, len(data.alphabet)), -1), np.full(size, -1), np.zeros(size, np.int64)
    used = _grow(child, label, sizes, *(t.numpy() for t in (data.tokens, data.labels, data.lengths)))
    return child[:used].copy(), label[:used].copy(), sizes[:used].copy()


@njit(cache=True)
def _grow(child, label, sizes, tokens, labels, lengths):
    """Fill the tables of a prefix tree from padded words, and return the number of nodes."""
    used = 1
    for i in range(len(tokens)):
        node = 0
        for k in range(lengths[i] + 1):
            if k:
                a = tokens[i, k - 1]
                if child[node, a] < 0:
                    child[node, a] = used
                    used += 1
                node = child[node, a]
            if labels[i, k] != UNCOUNTED:
                label[node] = labels[i, k]
                sizes[node] += 1
    return used


@njit(cache=True)
def _add_below(child, weight):
    """Add to the weight of each node those of its children, which come after their parents."""
    for node in range(len(child) - 1, -1, -1):
        for below in child[node]:
            if below >= 0:
                weight[node] += weight[below]


@njit(cache=True)
def _merge_next(child, label, sizes, weight, is_state, states, stack, log):
    """Fold the heaviest child that is not a state; return its node if it becomes a state, else `_FOLDED` or `_DONE`."""
    parent, letter, heaviest = -1, -1, 0
    for state in states:
        for a in range(child.shape[1]):
            node = child[state, a]
            if node >= 0 and not is_state[node] and weight[node] > heaviest:
                parent, letter, heaviest = state, a, weight[node]
    if parent < 0:
        return _DONE
    # Every fold is tried on the tree itself and undone; the best one is then made again for good.
    node, onto, best = child[parent, letter], -1, -1
    for state in states:
        evidence, used = _fold(child, label, sizes, weight, is_state, parent, letter, state, stack, log)
        _undo(child, label, weight, log, used)
        if evidence > best:
            onto, best = state, evidence
    if onto < 0:
        return node
    _fold(child, label, sizes, weight, is_state, parent, letter, onto, stack, log)
    return _FOLDED


@njit(cache=True)
def _fold(child, label, sizes, weight, is_state, parent, letter, state, stack, log):
    """Fold the subtree at a state's letter into another state; return the labels that agree, −1 if two differ.

    Also the number of entries in `log`, each of which undoes a change: a node, and a letter and its former child, or
    `_LABEL` or `_WEIGHT` and the former one.
    """
    evidence, used, height = 0, 1, 1
    log[0, 0], log[0, 1], log[0, 2] = parent, letter, child[parent, letter]
    # The stack holds pairs (onto, node): the subtree at `node` is to be added to the one at `onto`.
    stack[0, 0], stack[0, 1] = state, child[parent, letter]
    child[parent, letter] = state
    while height:
        height -= 1
        onto, node = stack[height]
        if label[node] >= 0:
            if label[onto] < 0:
                log[used, 0], log[used, 1], log[used, 2] = onto, _LABEL, -1
                used += 1
                label[onto] = label[node]
            elif label[onto] != label[node]:
                return -1, used
            else:
                evidence += sizes[node]
        # The weight of a node decides when it becomes a state; those of states are not read any more.
        if not is_state[onto]:
            log[used, 0], log[used, 1], log[used, 2] = onto, _WEIGHT, weight[onto]
            used += 1
            weight[onto] += weight[node]
        for a in range(child.shape[1]):
            below = child[node, a]
            if below < 0:
                continue
            # A missing child is taken over with its whole subtree, an existing one is folded in turn.
            if child[onto, a] < 0:
                log[used, 0], log[used, 1], log[used, 2] = onto, a, -1
                used += 1
                child[onto, a] = below
            else:
                stack[height, 0], stack[height, 1] = child[onto, a], below
                height += 1
    return evidence, used


@njit(cache=True)
def _undo(child, label, weight, log, used):
    """Undo the changes of a fold in reverse order; `_fold` describes the entries of `log`."""
    for i in range(used - 1, -1, -1):
        node, what, before = log[i, 0], log[i, 1], log[i, 2]
        if what == _LABEL:
            label[node] = before
        elif what == _WEIGHT:
            weight[node] = before
        else:
            child[node, what] = before


def machine_of_table(f: np.ndarray, start: int, data: Data) -> MooreMachine:
    """Return the minimal machine of columns (|Σ|, b) with the most frequent label of each state as its output."""
    return minimise(MooreMachine(f, _usual(_labels_by_state(f, start, data), data), start, data.alphabet))


def description(machine: MooreMachine, data: Data) -> float:
    """Return the description length of the labels and the machine, n (|Σ| log n + log C), in nats.

    >>> from fsa2lrnn.learning.word_files import from_pairs
    >>> data = from_pairs([("a" * n, n % 2) for n in range(8)])
    >>> machines = (MooreMachine([[1, 0]], [0, 1], 0, "a"), MooreMachine([[0]], [0], 0, "a"))
    >>> [round(description(machine, data), 1) for machine in machines]
    [2.8, 6.2]
    """
    n, n_outputs, total = machine.n_states, len(data.outputs), data.n_labels
    wrong = wrong_labels(machine, data)
    # Two parts: which labels are wrong, by their share, and which of the C − 1 other outputs each of these is.
    labels = -sum(m * np.log(m / total) for m in (total - wrong, wrong) if m) + wrong * np.log(max(1, n_outputs - 1))
    return float(labels + n * (len(machine.alphabet) * np.log(n) + np.log(n_outputs)))


def wrong_labels(machine: MooreMachine, data: Data) -> int:
    """Return how many labels differ from the machine's outputs; its alphabet is in the data's order."""
    counts = _labels_by_state(machine.delta, machine.start, data)
    number = {output: j for j, output in enumerate(data.outputs)}
    return data.n_labels - sum(int(counts[q, number[output]]) for q, output in enumerate(machine.outputs))


def _labels_by_state(next_state: np.ndarray, start: int, data: Data) -> np.ndarray:
    """Return the label counts of each state, (n, C)."""
    labels = data.labels.numpy()
    counts = labels != UNCOUNTED
    states = Heads(next_state[:, None, :], np.array([start])).states(data.tokens.numpy())[counts][:, 0]
    by_state = np.zeros((next_state.shape[1], len(data.outputs)), np.int64)
    np.add.at(by_state, (states, labels[counts]), 1)
    return by_state


def _usual(counts: np.ndarray, data: Data) -> list[object]:
    """Return the most frequent label of each state, for a state without labels that of all states."""
    labels = np.where(counts.any(1), counts.argmax(1), counts.sum(0).argmax())
    return [data.outputs[label] for label in labels.tolist()]
