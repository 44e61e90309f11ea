"""State merging by a statistical test, for words of which some labels may be wrong.

The words form a prefix tree with label counts. As in EDSM (Lang, Pearlmutter and Price 1998) some nodes are states
already, and each of their other children is either folded into a state or becomes a state. RPNI and EDSM fold unless
two labels differ, so a single wrong label breaks them. Here a known share of the labels is wrong, and a fold is a
prediction: if the child is that state, the labels of each node of the state's subtree predict those of the child's node
that falls on it. Let p be the posterior predictive distribution of a label given the earlier ones. If the labels follow
it, then

    z = Σ (log p(y) + H(p)) / √(Σ Var log p)

has mean 0 and variance 1, provided that the two nodes are one state and all earlier folds are correct; z is far below 0
if the nodes differ on many continuations. Each term is the deviation of one label from its expectation given the
earlier ones, so the terms are uncorrelated, however often a node occurs. A child with z below −`strict` for all states
becomes a state; otherwise the fold with the largest gain over uniform labels, Σ log p(y) + log C, is made.

A wrong fold affects all later ones. So several bounds are tried, the best results are repaired by local search
(`patching`), and the machine with the shortest description of the labels and itself, in nats, is returned. If the share
of wrong labels is unknown, several shares are tried in the same way.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import complete, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.heads import Heads
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime, counted
from fsa2lrnn.learning.patching import patch_table
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
    # Every fold is tried on the tree itself and undone; the best one is then made again for good.
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
    # The stack holds pairs (onto, node): the subtree at `node` is to be added to the one at `onto`.
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
        # The weight of a node decides when it becomes a state; those of states are not read any more.
        if not is_state[onto]:
            log[used, 0], log[used, 1], log[used, 2] = onto, -1 - counts.shape[1], weight[onto]
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
    return gain, deviation / np.sqrt(variance) if variance > 0 else 0.0, used


@njit(cache=True)
def _undo(child, counts, weight, log, used):
    """Undo the changes of a fold in reverse order; `_fold` describes the entries of `log`."""
    for i in range(used - 1, -1, -1):
        node, what, before = log[i, 0], log[i, 1], log[i, 2]
        # −1 − C is below all −1 − y, so the kind of an entry follows from its second number alone.
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
                # The posterior of s as the true label is proportional to right^n_s · other^(n − n_s); dividing by the
                # likeliest keeps it within range.
                p[s] = (other / right) ** (likeliest - earlier[s])
                total += p[s]
            is_sure = total < 1 + _SURE
            mean = square = 0.0
            for s in range(n):
                # From the posterior of the true label to the predictive probability of the observed one.
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


STRICT = (2.0, 2.5, 3.0, 3.5, 4.0)  # standard deviations below the expectation for one state
SHARES = (0.0, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2)  # that are tried if none is given
MAX_STATES = 256  # before repair
_REPAIRS, _NEAR = 3, 1.3  # how many of the best are repaired, and up to which multiple of the nats of the best
_SPARE = 3  # states that a repair may add
_WORTH = 6.0  # nats that a change has to gain: about the description length of the change


def merge_noisy(data: Data, noise: float | None, deadline: Deadline = NEVER) -> MooreMachine:
    """Return the inferred machine with the shortest description of the words; unobserved transitions are self-loops.

    Args:
        noise: the share of wrong labels, all wrong labels being equally likely; None for unknown.

    Raises:
        BudgetExceeded: if every merger leaves more than `MAX_STATES` states.
        OutOfTime: at the deadline; the message describes the best machine so far.

    >>> from fsa2lrnn.learning.word_files import from_pairs
    >>> from itertools import product
    >>> words = [word for n in range(7) for word in product("ab", repeat=n)]
    >>> machine = merge_noisy(from_pairs([(word, word.count("a") % 2) for word in words]), 0.0)
    >>> machine.n_states, machine.transduce("aba")
    (2, [1, 1, 0])
    """
    bounds = [
        (share, strict)
        for share in (SHARES if noise is None else (noise,))
        for strict in (STRICT if share else STRICT[:1])
    ]
    described: list[tuple[float, int, MooreMachine]] = []
    tried = 0

    def describe(machine: MooreMachine) -> None:
        described.append((description(machine, data), len(described), machine))

    try:
        # Merge under each bound, then repair the best results.
        for bound in bounds:
            if (machine := merge_within(data, *bound, deadline)) is not None:
                describe(machine)
            tried += 1
        if not described:
            raise BudgetExceeded(
                f"more than {MAX_STATES} states are left: give outputs after every letter, or leave the method out"
            )
        if noise != 0:
            described.sort()
            worth_it = [machine for cost, _, machine in described[:_REPAIRS] if cost <= _NEAR * described[0][0]]
            for machine in worth_it:
                describe(repaired(machine, data, deadline))
    except OutOfTime as error:
        # The best machine so far may be far from the final one, so the message describes it and it is not returned.
        reached = f"{error}; {tried} of {len(bounds)} bounds were tried"
        if described:
            best = min(described)[2]
            wrong = f"differs from {wrong_labels(best, data):,} of {data.n_labels:,} outputs"
            reached += f", and the best machine so far, of {counted(best.n_states, 'state')}, {wrong}"
        raise OutOfTime(reached) from None
    return min(described)[2]


def merge_within(data: Data, noise: float, strict: float, deadline: Deadline = NEVER) -> MooreMachine | None:
    """Return the machine that results from one bound; None for more than `MAX_STATES` states."""
    child, counts = prefix_tree(data)
    states = merge_states(child, counts, max(noise, LEAST_SHARE), strict, MAX_STATES, deadline)
    if len(states) > MAX_STATES:
        return None
    number = {node: i for i, node in enumerate(states.tolist())}
    delta = [[number.get(q) for q in row] for row in child[states].T.tolist()]
    outputs = _usual(counts[states], data)
    return minimise(complete(delta, outputs, 0, data.alphabet, completion="ignore"))


def repaired(machine: MooreMachine, data: Data, deadline: Deadline = NEVER) -> MooreMachine:
    """Return the machine after a repair by `patch_table`, which changes columns and merges states to lower the cost."""
    n = machine.n_states
    # Additional states are unreached at first and lead to themselves; a repair may use them as copies.
    extended = np.broadcast_to(np.arange(n + _SPARE), (len(machine.alphabet), n + _SPARE)).copy()
    extended[:, :n] = machine.delta
    words = data.tokens.numpy(), data.labels.numpy()
    f = patch_table(extended, machine.start, *words, len(data.outputs), _WORTH, deadline).next_state
    return machine_of_table(f, machine.start, data)


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
