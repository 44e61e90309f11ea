"""RPNI and EDSM on arrays: prefix trees of millions of nodes, which AALpy's merger over Python objects does not reach.

Both keep states and their other children, as in Lang, Pearlmutter and Price (1998). RPNI folds the first child into
the first compatible state. EDSM makes a state of a child that is compatible with no state; if every child is compatible
with some state, it folds the pair with the most pairs of equal labels.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from experiments.studies.mlregtest.hierarchy import end_labels
from fsa2lrnn.automata.language import complete, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.extra.learning import Data
from fsa2lrnn.extra.learning.folding import prefix_tree

_DONE, _FOLDED = -1, -2


def by_state_merging(data: Data, *, by_evidence: bool) -> MooreMachine:
    """Return the machine of EDSM, or of RPNI without evidence; missing transitions become self-loops.

    Raises `UnsupportedFormat` for labels that contradict each other, or for words without one label at the end.
    """
    end_labels(data)
    child, counts = prefix_tree(data)
    label = np.where(counts.any(1), counts.argmax(1), -1)
    is_state, order = np.zeros(len(child), bool), [0]
    is_state[0] = True
    stack, log = np.empty((len(child), 2), np.int64), np.empty((2 * len(child), 3), np.int64)
    while (node := _step(child, label, np.array(order), is_state, by_evidence, stack, log)) != _DONE:
        if node != _FOLDED:
            is_state[node] = True
            order.append(int(node))
    number = {node: i for i, node in enumerate(order)}
    delta = [[number.get(int(child[node, a])) for node in order] for a in range(len(data.alphabet))]
    outputs = [data.outputs[max(int(label[node]), 0)] for node in order]
    return minimise(complete(delta, outputs, 0, data.alphabet, completion="ignore"))


@njit(cache=True)
def _step(child, label, states, is_state, by_evidence, stack, log):
    """Fold one child or return it as a new state; `_FOLDED` after a fold, `_DONE` if no child is left."""
    parent, letter, onto, most = -1, -1, -1, -1
    for state in states:
        for a in range(child.shape[1]):
            node = child[state, a]
            if node < 0 or is_state[node]:
                continue
            is_compatible = False
            for target in states:
                evidence, used = _fold(child, label, state, a, target, stack, log)
                _undo(child, label, log, used)
                if evidence >= 0:
                    is_compatible = True
                    if evidence > most:
                        parent, letter, onto, most = state, a, target, evidence
                    if not by_evidence:
                        break
            if not is_compatible:
                return node
            if not by_evidence:
                _fold(child, label, parent, letter, onto, stack, log)
                return _FOLDED
    if parent < 0:
        return _DONE
    _fold(child, label, parent, letter, onto, stack, log)
    return _FOLDED


@njit(cache=True)
def _fold(child, label, parent, letter, state, stack, log):
    """Fold the subtree at a letter of a state into another; return the pairs of equal labels, −1 if two differ.

    Entries of `log` undo the changes: a node, a letter and its former child, or −1 and its former label.
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
                log[used] = onto, -1, -1
                used += 1
                label[onto] = label[node]
            elif label[onto] != label[node]:
                return -1, used
            else:
                evidence += 1
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
def _undo(child, label, log, used):
    for i in range(used - 1, -1, -1):
        node, what, before = log[i]
        if what < 0:
            label[node] = before
        else:
            child[node, what] = before
