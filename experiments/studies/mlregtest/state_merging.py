"""RPNI and EDSM on arrays: prefix trees of millions of nodes, which AALpy's merger over Python objects does not reach.

Both keep states and their other children, as in Lang, Pearlmutter and Price (1998), and fold one child at a time into a
compatible state, or make a state of a child that is compatible with none. RPNI takes the first child and the first
compatible state; EDSM takes the child of the most words, and the state for which the most pairs of labels are equal.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from experiments.studies.mlregtest.hierarchy import end_labels
from fsa2lrnn.automata.language import complete, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.learning import Data
from fsa2lrnn.learning.merging import prefix_tree, weights

_DONE, _FOLDED = -1, -2  # instead of a node that becomes a state
_LABEL, _WEIGHT = -1, -2  # instead of a letter
_UNKNOWN = -1  # instead of a weight


def by_state_merging(data: Data, *, by_evidence: bool) -> MooreMachine:
    """Return the machine of EDSM, or of RPNI without evidence; missing transitions become self-loops.

    Raises `UnsupportedFormat` for labels that contradict each other, or for words without one label at the end.
    """
    end_labels(data)
    child, counts = prefix_tree(data)
    label = np.where(counts.any(1), counts.argmax(1), -1)
    weight, number = weights(child, counts), np.full(len(child), -1)
    states, n_states = np.zeros(len(child), np.int64), 1
    number[0] = 0
    heaviest = np.full(len(child), _UNKNOWN)  # the weight of each state's heaviest child
    stack, log = np.empty((len(child), 2), np.int64), np.empty((3 * len(child) + 1, 3), np.int64)
    tree = child, label, weight, number, heaviest
    while (node := _step(*tree, states[:n_states], by_evidence, stack, log)) != _DONE:
        if node != _FOLDED:
            number[node], states[n_states] = n_states, node
            n_states += 1
    states = states[:n_states]
    delta = [[int(number[q]) if q >= 0 else None for q in row] for row in child[states].T.tolist()]
    outputs = [data.outputs[max(int(y), 0)] for y in label[states]]
    return minimise(complete(delta, outputs, 0, data.alphabet, completion="ignore"))


@njit(cache=True)
def _step(child, label, weight, number, heaviest, states, by_evidence, stack, log):
    """Fold one child into a state, and return `_FOLDED`; or return the child's node, which becomes the next state.

    Return `_DONE` if no state has another child than states.
    """
    parent, most = -1, 0
    for i in range(len(states)):
        if heaviest[i] == _UNKNOWN:
            heaviest[i] = 0
            for node in child[states[i]]:
                if node >= 0 and number[node] < 0:
                    heaviest[i] = max(heaviest[i], weight[node])
        if heaviest[i] > most:
            parent, most = i, heaviest[i]
            if not by_evidence:
                break
    if parent < 0:
        return _DONE
    heaviest[parent] = _UNKNOWN
    letter, node = -1, -1
    while node < 0 or number[node] >= 0 or (by_evidence and weight[node] < most):
        letter += 1
        node = child[states[parent], letter]
    onto, best = -1, -1
    for state in states:
        evidence, used = _fold(child, label, weight, number, heaviest, states[parent], letter, state, stack, log)
        _undo(child, label, weight, log, used)
        if evidence > best:
            onto, best = state, evidence
            if not by_evidence:
                break
    if onto < 0:
        return node
    _fold(child, label, weight, number, heaviest, states[parent], letter, onto, stack, log)
    return _FOLDED


@njit(cache=True)
def _fold(child, label, weight, number, heaviest, parent, letter, state, stack, log):
    """Fold the subtree at a letter of a state into another; return the pairs of equal labels, −1 if two differ.

    Entries of `log` undo the changes: a node, and a letter and its former child, or its former label or weight.
    """
    evidence, used, height = 0, 1, 1
    log[0] = parent, letter, child[parent, letter]
    stack[0] = state, child[parent, letter]
    child[parent, letter] = state
    while height:
        height -= 1
        onto, node = stack[height]
        if label[node] >= 0:
            if label[onto] < 0:
                log[used] = onto, _LABEL, -1
                used += 1
                label[onto] = label[node]
            elif label[onto] != label[node]:
                return -1, used
            else:
                evidence += 1
        if number[onto] < 0:
            log[used] = onto, _WEIGHT, weight[onto]
            used += 1
            weight[onto] += weight[node]
        else:
            heaviest[number[onto]] = _UNKNOWN
        for a in range(child.shape[1]):
            below = child[node, a]
            if below < 0:
                continue
            if child[onto, a] < 0:
                log[used] = onto, a, -1
                used += 1
                child[onto, a] = below
            else:
                stack[height] = child[onto, a], below
                height += 1
    return evidence, used


@njit(cache=True)
def _undo(child, label, weight, log, used):
    for i in range(used - 1, -1, -1):
        node, what, before = log[i]
        if what == _LABEL:
            label[node] = before
        elif what == _WEIGHT:
            weight[node] = before
        else:
            child[node, what] = before
