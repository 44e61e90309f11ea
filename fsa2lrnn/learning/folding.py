"""A prefix tree with labels, folded into states by a statistical test (defined in `noisy_merging`)."""

from __future__ import annotations

import numpy as np
from numba import njit

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.learning.word_files import Data

LEAST_SHARE = 1e-9  # the share of wrong labels used for none: one differing label then separates two states
_SURE = 1e-12  # chance that a state's label differs from the likeliest, below which it counts as certain
_NONE, _FOLDED = -1, -2  # in place of a node


def prefix_tree(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Return the children of each prefix, int64 (N, |Σ|) with −1 for none, and its label counts, (N, C).

    The empty prefix is node 0.
    """
    size = 1 + int(data.lengths.sum())
    child, counts = np.full((size, len(data.alphabet)), -1), np.zeros((size, len(data.outputs)), np.int64)
    used = _grow(child, counts, *(t.numpy() for t in (data.tokens, data.labels, data.lengths)))
    return child[:used].copy(), counts[:used].copy()


@njit(cache=True)
def _grow(child, counts, tokens, labels, lengths):
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
                counts[node, labels[i, k]] += 1
    return used


@njit(cache=True)
def weights(child, counts):
    """Return the number of labels at each node of a prefix tree and below it, int64 (N,)."""
    weight = np.zeros(len(child), np.int64)
    for node in range(len(child) - 1, -1, -1):  # children come after their parents
        weight[node] = counts[node].sum()
        for below in child[node]:
            if below >= 0:
                weight[node] += weight[below]
    return weight


def merge_states(
    child: np.ndarray, counts: np.ndarray, share: float, strict: float, most: int, deadline: Deadline = NEVER
) -> np.ndarray:
    """Merge the tree in place for a share of wrong labels; return the nodes that remain as states, at most `most` + 1.

    Raises `OutOfTime` at the deadline.
    """
    states, n_states, is_state = np.zeros(most + 1, np.int64), 1, np.zeros(len(child), np.bool_)
    is_state[0] = True
    weight = weights(child, counts)
    stack, log = np.empty((len(child), 2), np.int64), np.empty((len(child) * (counts.shape[1] + 2) + 1, 3), np.int64)
    while n_states <= most:
        deadline.check(f"merging states, {n_states:,} so far")
        node = _merge_next(child, counts, weight, share, strict, states[:n_states], is_state, stack, log)
        if node == _NONE:
            break
        if node != _FOLDED:
            states[n_states], is_state[node] = node, True
            n_states += 1
    return states[:n_states]


@njit(cache=True)
def _merge_next(child, counts, weight, share, strict, states, is_state, stack, log):
    """Fold the heaviest child that is not a state; return its node if it becomes a state, else `_FOLDED` or `_NONE`."""
    parent, letter, heaviest = -1, -1, 0
    for state in states:
        for a in range(child.shape[1]):
            node = child[state, a]
            if node >= 0 and not is_state[node] and weight[node] > heaviest:
                parent, letter, heaviest = state, a, weight[node]
    if parent < 0:
        return _NONE
    node, best, largest_gain = child[parent, letter], -1, -np.inf
    for state in states:
        gain, z, used = _fold(child, counts, weight, is_state, parent, letter, state, share, stack, log)
        _undo(child, counts, weight, log, used)
        if z >= -strict and gain > largest_gain:
            best, largest_gain = state, gain
    if best < 0:
        return node
    _fold(child, counts, weight, is_state, parent, letter, best, share, stack, log)
    return _FOLDED


@njit(cache=True)
def _fold(child, counts, weight, is_state, parent, letter, state, share, stack, log):
    """Fold the subtree at a state's letter into another state; return the gain, z, and the number of entries in `log`.

    An entry undoes one change: a node, a letter and its former child; a node, −1 − label and its former count; or a
    node, −1 − the number of labels, and its former weight.
    """
    gain, deviation, variance, used, height = 0.0, 0.0, 0.0, 1, 1
    log[0, 0], log[0, 1], log[0, 2] = parent, letter, child[parent, letter]
    stack[0, 0], stack[0, 1] = state, child[parent, letter]
    child[parent, letter] = state
    while height:
        height -= 1
        onto, node = stack[height]
        terms = _predict(counts[onto], counts[node], share)
        gain, deviation, variance = gain + terms[0], deviation + terms[1], variance + terms[2]
        if share <= LEAST_SHARE and deviation < -1:  # a label differs that is certain
            return gain, -np.inf, used
        # Add the counts of the node, then move or fold its children.
        for y in range(counts.shape[1]):
            if counts[node, y]:
                log[used, 0], log[used, 1], log[used, 2] = onto, -1 - y, counts[onto, y]
                used += 1
                counts[onto, y] += counts[node, y]
        if not is_state[onto]:
            log[used, 0], log[used, 1], log[used, 2] = onto, -1 - counts.shape[1], weight[onto]
            used += 1
            weight[onto] += weight[node]
        for a in range(child.shape[1]):
            below = child[node, a]
            if below < 0:
                continue
            if child[onto, a] < 0:
                log[used, 0], log[used, 1], log[used, 2] = onto, a, -1
                used += 1
                child[onto, a] = below
            else:
                stack[height, 0], stack[height, 1] = child[onto, a], below
                height += 1
    return gain, deviation / np.sqrt(variance) if variance > 0 else 0.0, used


@njit(cache=True)
def _undo(child, counts, weight, log, used):
    """Undo the changes of a fold in reverse order; `_fold` describes the entries of `log`."""
    for i in range(used - 1, -1, -1):
        node, what, before = log[i, 0], log[i, 1], log[i, 2]
        if what == -1 - counts.shape[1]:
            weight[node] = before
        elif what < 0:
            counts[node, -1 - what] = before
        else:
            child[node, what] = before


@njit(cache=True)
def _predict(earlier, labels, share):
    """Return Σ log p(y) + log C, Σ log p(y) + H(p) and Σ Var log p over labels in sequence, after `earlier` ones.

    The prior of a node's true label is uniform over C outputs. An observed label is wrong with probability `share`, and
    then any of the others with equal probability.
    """
    n = len(earlier)
    right, other = 1 - share, share / (n - 1)
    earlier = earlier.copy()
    gain = deviation = variance = 0.0
    p = np.empty(n)
    for y in range(n):
        for i in range(labels[y]):
            likeliest = earlier.max()
            total = 0.0
            for s in range(n):
                p[s] = (other / right) ** (likeliest - earlier[s])
                total += p[s]
            is_sure = total < 1 + _SURE
            mean = square = 0.0
            for s in range(n):
                p[s] = other + (right - other) * p[s] / total
                mean += p[s] * np.log(p[s])
                square += p[s] * np.log(p[s]) ** 2
            # A certain posterior no longer changes: all equal labels that are left add the same terms at once.
            times = labels[y] - i if is_sure and earlier[y] == likeliest else 1
            gain += times * (np.log(p[y]) + np.log(n))
            deviation += times * (np.log(p[y]) - mean)
            variance += times * max(0.0, square - mean**2)
            earlier[y] += times
            if times > 1:
                break
    return gain, deviation, variance
