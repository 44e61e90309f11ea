"""Search for a small machine from random tables that are repaired for short words first, then for longer ones.

The labels of the shortest prefixes determine the transitions next to the start, from which those of longer ones then
determine the next transitions: a table that is right on short words is rarely far from the machine on words half as
long again. A start costs a second or less, so many are made, of growing sizes; after a round of sizes every second one
is the best machine so far with some columns changed at random. Copies of a state that the labels do not pay for are
merged after each stage, so a table begins with more states than the machine needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fsa2lrnn.automata.counting import UNCOUNTED
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import NEVER, Deadline
from fsa2lrnn.learning.merging import description, machine_of_table
from fsa2lrnn.learning.patching import patch_table
from fsa2lrnn.learning.word_files import Data

_SIZES = (4, 6, 9, 14, 20, 30, 45, 64)  # states of random tables, in turn
_LONGER = 1.5  # times the length of the words of the stage before
_FEW, _WORDS, _MANY = 50, 4000, 20_000  # words of the first stage at least, of any stage, and of the last repair
_WORTH = 2.0  # nats that a change has to gain
_LAST, _CHANGED = 3, 0.1  # stages and share of changed columns of a start from the best machine
_WORSE, _SPARE = 1.5, 0.02  # times the least share of wrong labels, and beyond it: a start that errs more is given up


def search(data: Data, is_clean: bool, deadline: Deadline = NEVER, seed: int = 0) -> Iterator[MooreMachine]:
    """Yield the machine of each random start that is worth a last repair on many words, without end.

    Args:
        is_clean: whether no label is wrong: then no state is merged if that makes a label wrong.

    Raises `OutOfTime` at the deadline.

    >>> from itertools import islice, product
    >>> from fsa2lrnn.learning.word_files import from_pairs
    >>> words = [word for n in range(7) for word in product("ab", repeat=n)]
    >>> machines = islice(search(from_pairs([(word, word.count("a") % 3) for word in words]), True), 5)
    >>> min(machine.n_states for machine in machines)
    3
    """
    tokens, labels = data.tokens.numpy(), data.labels.numpy()
    k, C = len(data.alphabet), len(data.outputs)
    random = np.random.default_rng(seed)
    stages, least, starts = _stages(labels), dict[int, float](), 0
    best: tuple[float, MooreMachine] | None = None
    while True:
        if best is None or starts < len(_SIZES) or starts % 2:
            b = _SIZES[starts // (1 if starts < len(_SIZES) else 2) % len(_SIZES)]
            f, due = random.integers(b, size=(k, b)), stages
        else:
            f, due = _perturbed(best[1], random), stages[-_LAST:]
        starts += 1
        b = f.shape[1]
        deadline.check("searching for a small machine")
        price = 0.0 if is_clean else k * math.log(b) + math.log(C)
        for length, rows in due:
            part = labels[rows, : length + 1]
            patched = patch_table(f, 0, tokens[rows, :length], part, C, _WORTH, deadline, price=price)
            f, share = patched.next_state, patched.after / (part != UNCOUNTED).sum()
            if share > _WORSE * least.get(length, 1.0) + _SPARE:
                break
            least[length] = min(least.get(length, 1.0), share)
        else:
            f = patch_table(f, 0, tokens[:_MANY], labels[:_MANY], C, _WORTH, deadline, price=price).next_state
            machine = _with_start(f, data)
            if best is None or description(machine, data) < best[0]:
                best = description(machine, data), machine
            yield machine


def _perturbed(machine: MooreMachine, random: np.random.Generator) -> np.ndarray:
    """Return a table with the start 0 that has a few spare states, and random targets in a tenth of its columns."""
    n = machine.n_states
    order = np.roll(np.arange(n), -machine.start)  # the start comes first
    b = n + 2 + n // 4
    f = random.integers(b, size=(len(machine.delta), b))
    f[:, :n] = np.argsort(order)[machine.delta[:, order]]
    is_new = random.random(f.shape) < _CHANGED
    return np.where(is_new, random.integers(b, size=f.shape), f)


def _stages(labels: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Return growing lengths, each with the numbers of the first words that have a label within it."""
    has_label = labels != UNCOUNTED
    rows = np.flatnonzero(has_label.any(1))
    first = has_label[rows].argmax(1)
    longest = int(np.flatnonzero(has_label.any(0))[-1])
    length = max(2, int(np.sort(first)[min(len(first), _FEW) - 1]))
    stages = list[tuple[int, np.ndarray]]()
    while length < longest:
        stages.append((length, rows[first <= length][:_WORDS]))
        length = math.ceil(length * _LONGER)
    return [*stages, (longest, rows[:_WORDS])]


def _with_start(f: np.ndarray, data: Data) -> MooreMachine:
    """Return the machine of a table with the start that describes the words shortest.

    Where the empty word has no label, a start to which no letter leads back is a copy of another state.
    """
    machine = machine_of_table(f, 0, data)
    delta = machine.delta
    alike = [q for q in range(machine.n_states) if (delta[:, q] == delta[:, machine.start]).all()]
    others = [machine_of_table(delta, q, data) for q in alike if q != machine.start]
    return min([machine, *others], key=lambda each: description(each, data))
