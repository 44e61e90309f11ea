"""Outputs that count and outputs that don't: after the empty word, and where a task asks for none."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.automata.language import equivalent, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.symbols import align

NOT_COUNTED = None  # the output that a machine gives where none is asked for


def paths(delta: np.ndarray, q: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The states after every letter of N words, each from its own state.

    Args:
        delta: (|Σ|, n).
        q: int64 (N,).
        tokens: int64 (N, T).

    >>> paths(np.array([[0, 1], [1, 0]]), np.array([0, 1]), np.array([[1, 0, 1], [1, 0, 0]])).tolist()
    [[1, 1, 0], [0, 0, 0]]
    """
    found = np.empty_like(tokens)
    for k in range(tokens.shape[1]):
        q = found[:, k] = delta[tokens[:, k], q]
    return found


def blank_outputs(machine: MooreMachine, kept: Collection[Hashable]) -> MooreMachine:
    """The smallest machine with the same outputs where they are among `kept`, and None everywhere else.

    >>> from fsa2lrnn.automata import zoo
    >>> blank_outputs(zoo.mod_arith(2), (0, 1)).transduce("1+*")
    [1, None, None]
    """
    outputs = [output if output in kept else NOT_COUNTED for output in machine.outputs]
    return minimise(MooreMachine(machine.delta, outputs, machine.start, machine.alphabet))


def equivalent_after_first(a: MooreMachine, b: MooreMachine) -> tuple[Hashable, ...] | None:
    """None if the two give the same output after every word of at least one letter; else a shortest word that tells
    them apart.

    Raises `InvalidMachine` on unlike alphabets.

    >>> even, odd_at_first = MooreMachine([[1, 0]], "eo"), MooreMachine([[1, 2, 1]], "ooe")
    >>> equivalent_after_first(even, odd_at_first) is None, equivalent_after_first(even, MooreMachine([[0]], "o"))
    (True, (0, 0))
    """
    return equivalent(_fresh_start(a, NOT_COUNTED), _fresh_start(b, NOT_COUNTED))


def smallest_after_first(machine: MooreMachine) -> MooreMachine:
    """The smallest machine with the same output after every word of at least one letter.

    The start of the minimal machine becomes one with a state that goes the same ways, if there is one and no letter
    leads back to the start; its own output is then lost. Otherwise nothing changes.

    >>> smallest_after_first(MooreMachine([[1, 2, 1]], "ooe")).outputs
    ('e', 'o')
    """
    minimal = minimise(machine)
    alike = (minimal.delta == minimal.delta[:, [minimal.start]]).all(0)
    alike[minimal.start] = False
    if (minimal.delta == minimal.start).any() or not alike.any():
        return minimal
    return minimise(MooreMachine(minimal.delta, minimal.outputs, int(alike.argmax()), minimal.alphabet, minimal.labels))


def _fresh_start(machine: MooreMachine, output: Hashable) -> MooreMachine:
    """The same machine with a start of its own, to which no letter leads back."""
    delta = np.concatenate([machine.delta, machine.delta[:, [machine.start]]], axis=1)
    return MooreMachine(delta, (*machine.outputs, output), machine.n_states, machine.alphabet)


@dataclass(frozen=True, eq=False)
class Mask:
    """After which words an output counts, as a machine in the numbers of a model's letters.

    Args:
        delta: int64 (|Σ|, m).
        counts: bool (m,).
        start: the state before the first letter.
    """

    delta: np.ndarray
    counts: np.ndarray
    start: int

    @classmethod
    def of(cls, alphabet: tuple[Hashable, ...], counts: MooreMachine | None, empty_word: bool) -> Mask:
        """The mask of an acceptor (None accepts every word), less the empty word unless that counts too.

        Raises `InvalidMachine` for an alphabet other than the model's.
        """
        accepts = counts if counts is not None else MooreMachine(np.zeros((len(alphabet), 1), int), [True], 0, alphabet)
        minimal = minimise(accepts if empty_word else _fresh_start(accepts, False))
        delta = minimal.delta[align(alphabet, minimal.alphabet)]
        return cls(delta, np.array([bool(output) for output in minimal.outputs]), minimal.start)

    @property
    def live(self) -> np.ndarray:
        """Whether a letter leads to a state from which some output counts: bool (|Σ|, m)."""
        hopeful = self.counts
        while not ((more := hopeful | hopeful[self.delta].any(0)) == hopeful).all():
            hopeful = more
        return hopeful[self.delta]

    def path(self, tokens: np.ndarray) -> np.ndarray:
        """The states along words: int64 (N, T) -> (N, T)."""
        return paths(self.delta, np.full(len(tokens), self.start), tokens)

    def random_words(self, rng: np.random.Generator, n: int, length: int) -> np.ndarray:
        """Words drawn letter by letter among those that are live, any letter where none is: int64 (n, length)."""
        live = self.live | ~self.live.any(0)
        choices, letter = live.sum(0), np.argsort(~live, axis=0, kind="stable")  # the live ones first
        tokens, q = np.empty((n, length), np.int64), np.full(n, self.start)
        for k in range(length):
            tokens[:, k] = letter[(rng.random(n) * choices[q]).astype(np.int64), q]
            q = self.delta[tokens[:, k], q]
        return tokens
