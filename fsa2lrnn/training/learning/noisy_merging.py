"""Machines from words of which some labels are wrong: states are merged as long as a statistical test lets them.

The words make a tree of prefixes, each with the labels that were seen there. As in EDSM (Lang, Pearlmutter and Price
1998) some of its nodes are states already and their children are to be decided on: such a child is folded into a state,
or becomes a state itself. RPNI and EDSM fold unless two labels differ, so one wrong label spoils them. Here a share of
the labels is known to be replaced at random, and folding is a prediction: if the child is that state, then of a node of
the child's tree and the node of the state's that it falls on, the labels of the second say how probable those of the
first are. Let p be the chances of a label as it stands, by Bayes from those seen before; it comes as one of them says,

    z = Σ (log p(y) + H(p)) / √(Σ Var log p),

has mean 0 and variance 1 if the two are one state, and is far below 0 if they are not. Every term is the deviation of
one label from what was expected before it, so they are uncorrelated, however often a node is met. A child that no state
can take (z < −`STRICT` for all) becomes one; else the fold is made that says most, Σ log p(y) + log C, the greatest
gain over labels that nothing predicts.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import complete, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.training.learning.word_files import Data

STRICT = 3.5  # deviations below what is expected of one state
MAX_STATES = 256  # of the result, before minimising
_LEAST = 1e-9  # the share of wrong labels where none is said to be wrong: one is enough to part two states
_SURE = 1e-12  # that a state's label is another than the likeliest


def merge_noisy(data: Data, noise: float, strict: float = STRICT) -> MooreMachine:
    """The machine that is left when nothing more can be merged; a letter that no word shows leaves the state as it is.

    Args:
        noise: the share of labels that are replaced by one drawn from all.
        strict: how many deviations a fold may stay behind what is expected of one state.

    Raises:
        UnsupportedFormat: for a share that is none.
        BudgetExceeded: for more than `MAX_STATES` states.

    >>> from fsa2lrnn.training.learning.word_files import from_pairs
    >>> from itertools import product
    >>> words = [word for n in range(7) for word in product("ab", repeat=n)]
    >>> found = merge_noisy(from_pairs([(word, word.count("a") % 2) for word in words]), 0.0)
    >>> found.n_states, found.transduce("aba")
    (2, [1, 1, 0])
    """
    if not 0 <= noise < 1:
        raise UnsupportedFormat(f"noise = {noise!r} must be a share from 0 to below 1")
    child, counts = prefix_tree(data)
    n_outputs = counts.shape[1]
    share = max(noise, _LEAST) * (n_outputs - 1) / n_outputs
    states = merge_states(child, counts, share, strict, MAX_STATES)
    if len(states) > MAX_STATES:
        raise BudgetExceeded(
            f"more than {MAX_STATES} states are left: give more words, or say that more labels are wrong"
        )
    number = {node: i for i, node in enumerate(states.tolist())}
    delta = [[number.get(q) for q in row] for row in child[states].T.tolist()]
    labels = np.where(counts[states].any(1), counts[states].argmax(1), counts.sum(0).argmax())
    outputs = [data.outputs[label] for label in labels.tolist()]
    return minimise(complete(delta, outputs, 0, data.alphabet, completion="ignore"))


def prefix_tree(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Children of each prefix, int64 (N, |Σ|) with −1 for none, and how often each label was seen there, (N, C).

    The empty prefix is node 0.
    """
    size = 1 + int(data.lengths.sum())
    child, counts = np.full((size, len(data.alphabet)), -1), np.zeros((size, len(data.outputs)), np.int64)
    used = _grow(child, counts, *(t.numpy() for t in (data.tokens, data.labels, data.lengths)))
    return child[:used].copy(), counts[:used].copy()


@njit(cache=True)
def _grow(child, counts, tokens, labels, lengths):
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
def merge_states(child, counts, share, strict, most):
    """Merge in place, a share of labels being wrong; the nodes that are left as states, the first `most` + 1."""
    size, n_letters = child.shape
    states, n_states, is_state = np.empty(most + 1, np.int64), 1, np.zeros(size, np.bool_)
    states[0], is_state[0] = 0, True
    stack, log = np.empty((size, 2), np.int64), np.empty((size * (counts.shape[1] + 1), 4), np.int64)
    while n_states <= most:
        parent, letter, heaviest = -1, -1, 0
        for i in range(n_states):
            for a in range(n_letters):
                node = child[states[i], a]
                if node >= 0 and not is_state[node]:
                    weight = _weight(child, counts, node, stack)
                    if weight > heaviest:
                        parent, letter, heaviest = states[i], a, weight
        if parent < 0:
            break
        node, best, most_said = child[parent, letter], -1, -np.inf
        for i in range(n_states):
            said, z, used = _fold(child, counts, parent, letter, states[i], share, stack, log)
            _undo(child, counts, log, used)
            if z >= -strict and said > most_said:
                best, most_said = states[i], said
        if best >= 0:
            _fold(child, counts, parent, letter, best, share, stack, log)
        else:
            states[n_states], is_state[node] = node, True
            n_states += 1
    return states[:n_states]


@njit(cache=True)
def _weight(child, counts, node, stack):
    """How many labels there are at a node and below."""
    weight, height = 0, 1
    stack[0, 0] = node
    while height:
        height -= 1
        node = stack[height, 0]
        weight += counts[node].sum()
        for a in range(child.shape[1]):
            if child[node, a] >= 0:
                stack[height, 0] = child[node, a]
                height += 1
    return weight


@njit(cache=True)
def _fold(child, counts, parent, letter, state, share, stack, log):
    """Fold the tree below a state's letter into another state: what that says, z, and how many entries `log` has.

    An entry undoes a change. It is a node, a letter and its child before; or a node, a label below 0 and how many there were before.
    """
    said, deviation, variance, used, height = 0.0, 0.0, 0.0, 1, 1
    log[0, 0], log[0, 1], log[0, 2] = parent, letter, child[parent, letter]
    stack[0, 0], stack[0, 1] = state, child[parent, letter]
    child[parent, letter] = state
    while height:
        height -= 1
        onto, node = stack[height]
        found = _predict(counts[onto], counts[node], share)
        said, deviation, variance = said + found[0], deviation + found[1], variance + found[2]
        for y in range(counts.shape[1]):
            if counts[node, y]:
                log[used, 0], log[used, 1], log[used, 2] = onto, -1 - y, counts[onto, y]
                used += 1
                counts[onto, y] += counts[node, y]
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
    return said, deviation / np.sqrt(variance) if variance > 0 else 0.0, used


@njit(cache=True)
def _undo(child, counts, log, used):
    for i in range(used - 1, -1, -1):
        node, what, before = log[i, 0], log[i, 1], log[i, 2]
        if what < 0:
            counts[node, -1 - what] = before
        else:
            child[node, what] = before


@njit(cache=True)
def _predict(seen, labels, share):
    """Σ log p(y) + log C, Σ log p(y) + H(p) and Σ Var log p over labels that come one by one, after those `seen`.

    A node's label is any of C with equal chances before anything is seen, and each label there is another with the
    chance `share`, any other equally likely.
    """
    n = len(seen)
    right, other = 1 - share, share / (n - 1)
    seen = seen.copy()
    said = deviation = variance = 0.0
    p = np.empty(n)
    for y in range(n):
        for i in range(labels[y]):
            likeliest = seen.max()
            total = 0.0
            for s in range(n):
                p[s] = (other / right) ** (likeliest - seen[s])
                total += p[s]
            is_sure = total < 1 + _SURE
            mean = square = 0.0
            for s in range(n):
                p[s] = other + (right - other) * p[s] / total
                mean += p[s] * np.log(p[s])
                square += p[s] * np.log(p[s]) ** 2
            times = labels[y] - i if is_sure and seen[y] == likeliest else 1
            said += times * (np.log(p[y]) + np.log(n))
            deviation += times * (np.log(p[y]) - mean)
            variance += times * max(0.0, square - mean**2)
            seen[y] += times
            if times > 1:
                break
    return said, deviation, variance
