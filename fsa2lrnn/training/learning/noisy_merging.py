"""Machines from words of which some labels are wrong: states are merged as long as a statistical test lets them.

The words make a tree of prefixes, each with the labels that were seen there. As in EDSM (Lang, Pearlmutter and Price
1998) some of its nodes are states already and their children are to be decided on: such a child is folded into a state,
or becomes a state itself. RPNI and EDSM fold unless two labels differ, so one wrong label spoils them. Here a share of
the labels is known to be wrong, and folding is a prediction: if the child is that state, then of a node of
the child's tree and the node of the state's that it falls on, the labels of the second say how probable those of the
first are. Let p be the chances of a label as it stands, by Bayes from those seen before; it comes as one of them says,

    z = Σ (log p(y) + H(p)) / √(Σ Var log p),

has mean 0 and variance 1 if the two are one state and what was folded before was right, and is far below 0 if they
differ on much of what follows. Every term is the deviation of one label from what was expected before it, so they are
uncorrelated, however often a node is met. A child that no state can take (z below −`strict` for all) becomes one; else
the fold is made that says most, Σ log p(y) + log C, the greatest gain over labels that nothing predicts.

A wrong fold spoils what follows it. So several bounds are tried, the best that they leave is mended by trial
(`mending`), and that machine is taken which describes the labels in the fewest nats, its own size included. Where the
share of wrong labels is not known, several shares are tried the same way.
"""

from __future__ import annotations

import numpy as np

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.language import complete, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.errors import BudgetExceeded, OutOfTime, counted
from fsa2lrnn.lower.harden import Heads
from fsa2lrnn.training.learning.folding import merge_states, prefix_tree
from fsa2lrnn.training.learning.mending import patch_table
from fsa2lrnn.training.learning.word_files import Data

STRICT = (2.0, 2.5, 3.0, 3.5, 4.0)  # deviations below what is expected of one state
SHARES = (0.0, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2)  # that are tried where none is given
MAX_STATES = 256  # before mending
_LEAST = 1e-9  # the share of wrong labels where none is said to be wrong: one is enough to part two states
_MENDED, _NEAR = 3, 1.3  # so many of the best are mended, if they need no more than so many times the nats of the best
_SPARE = 3  # states that mending may add
_WORTH = 6.0  # nats that a change has to bring: about as many as say which change it is


def merge_noisy(data: Data, noise: float | None, deadline: Deadline = NEVER) -> MooreMachine:
    """The machine that describes the words best, of those found; a letter that no word shows leaves the state as it is.

    Args:
        noise: the share of labels that are wrong, any other label being equally likely; None for unknown.

    Raises:
        BudgetExceeded: if every merger leaves more than `MAX_STATES` states.
        OutOfTime: at the deadline; the message describes the best machine so far.

    >>> from fsa2lrnn.training.learning.word_files import from_pairs
    >>> from itertools import product
    >>> words = [word for n in range(7) for word in product("ab", repeat=n)]
    >>> found = merge_noisy(from_pairs([(word, word.count("a") % 2) for word in words]), 0.0)
    >>> found.n_states, found.transduce("aba")
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
            worth_it = [machine for cost, _, machine in described[:_MENDED] if cost <= _NEAR * described[0][0]]
            for machine in worth_it:
                describe(mended(machine, data, deadline))
    except OutOfTime as error:
        # What was merged so far may be far from the best, so it is described and not returned.
        reached = f"{error}; {tried} of {len(bounds)} bounds were tried"
        if described:
            best = min(described)[2]
            wrong = f"differs from {wrong_labels(best, data):,} of {data.n_labels:,} outputs"
            reached += f", and the best machine so far, of {counted(best.n_states, 'state')}, {wrong}"
        raise OutOfTime(reached) from None
    return min(described)[2]


def merge_within(data: Data, noise: float, strict: float, deadline: Deadline = NEVER) -> MooreMachine | None:
    """The machine that is left under one bound; None for more than `MAX_STATES` states."""
    child, counts = prefix_tree(data)
    states = merge_states(child, counts, max(noise, _LEAST), strict, MAX_STATES, deadline)
    if len(states) > MAX_STATES:
        return None
    number = {node: i for i, node in enumerate(states.tolist())}
    delta = [[number.get(q) for q in row] for row in child[states].T.tolist()]
    outputs = _usual(counts[states], data)
    return minimise(complete(delta, outputs, 0, data.alphabet, completion="ignore"))


def mended(machine: MooreMachine, data: Data, deadline: Deadline = NEVER) -> MooreMachine:
    """The machine with its columns changed and states merged as far as labels then follow more surely."""
    n = machine.n_states
    room = np.broadcast_to(np.arange(n + _SPARE), (len(machine.alphabet), n + _SPARE)).copy()
    room[:, :n] = machine.delta
    words = data.tokens.numpy(), data.labels.numpy()
    f = patch_table(room, machine.start, *words, len(data.outputs), _WORTH, deadline).next_state
    counts = _labels_by_state(f, machine.start, data)
    return minimise(MooreMachine(f, _usual(counts, data), machine.start, machine.alphabet))


def description(machine: MooreMachine, data: Data) -> float:
    """Nats that say the labels, those that are wrong by their share, and the machine: n (|Σ| log n + log C).

    >>> from fsa2lrnn.training.learning.word_files import from_pairs
    >>> data = from_pairs([("a" * n, n % 2) for n in range(8)])
    >>> machines = (MooreMachine([[1, 0]], [0, 1], 0, "a"), MooreMachine([[0]], [0], 0, "a"))
    >>> [round(description(machine, data), 1) for machine in machines]
    [2.8, 6.2]
    """
    n, n_outputs, total = machine.n_states, len(data.outputs), data.n_labels
    wrong = wrong_labels(machine, data)
    said = -sum(m * np.log(m / total) for m in (total - wrong, wrong) if m) + wrong * np.log(max(1, n_outputs - 1))
    return float(said + n * (len(machine.alphabet) * np.log(n) + np.log(n_outputs)))


def wrong_labels(machine: MooreMachine, data: Data) -> int:
    """How many labels are not the machine's outputs. Its letters are in the data's order."""
    counts = _labels_by_state(machine.delta, machine.start, data)
    number = {output: j for j, output in enumerate(data.outputs)}
    return data.n_labels - sum(int(counts[q, number[output]]) for q, output in enumerate(machine.outputs))


def _labels_by_state(next_state: np.ndarray, start: int, data: Data) -> np.ndarray:
    """How often each label stands in each state: (n, C)."""
    labels = data.labels.numpy()
    counts = labels != UNCOUNTED
    states = Heads(next_state[:, None, :], np.array([start])).states(data.tokens.numpy())[counts][:, 0]
    found = np.zeros((next_state.shape[1], len(data.outputs)), np.int64)
    np.add.at(found, (states, labels[counts]), 1)
    return found


def _usual(counts: np.ndarray, data: Data) -> list[object]:
    """The output that most labels of a state are; of all, where it has none."""
    labels = np.where(counts.any(1), counts.argmax(1), counts.sum(0).argmax())
    return [data.outputs[label] for label in labels.tolist()]
