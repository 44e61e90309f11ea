"""State merging for words with wrong labels: states are merged as long as a statistical test accepts the merge.

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

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import complete, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.compile.harden import Heads
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime, counted
from fsa2lrnn.learning.folding import LEAST_SHARE, merge_states, prefix_tree
from fsa2lrnn.learning.patching import patch_table
from fsa2lrnn.learning.word_files import Data

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
                f"more than {MAX_STATES} states are left: give more words, or say that more labels are wrong"
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
    extended = np.broadcast_to(np.arange(n + _SPARE), (len(machine.alphabet), n + _SPARE)).copy()
    extended[:, :n] = machine.delta
    words = data.tokens.numpy(), data.labels.numpy()
    f = patch_table(extended, machine.start, *words, len(data.outputs), _WORTH, deadline).next_state
    counts = _labels_by_state(f, machine.start, data)
    return minimise(MooreMachine(f, _usual(counts, data), machine.start, machine.alphabet))


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
