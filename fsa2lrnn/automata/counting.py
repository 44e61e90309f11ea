"""Select the outputs that count when a model is compared with a machine.

Every comparison of a model with a machine has an option `ignore`, the outputs of the machine that do not count:

- `()`, the default, is the empty collection. An output that the model lacks is then an error.
- `"lacked"` stands for the outputs for which the model has no logit. A model of ModArith that was trained on digits
  alone is then not compared after an operator or a malformed expression.
- A collection names outputs of the machine.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from fsa2lrnn.automata.language import fresh_start, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.table_kernels import coaccessible, paths
from fsa2lrnn.errors import InvalidMachine, UnsupportedFormat
from fsa2lrnn.symbols import align, confused

Ignore = Literal["lacked"] | Collection[Hashable]

UNCOUNTED = -1  # in place of the number of an output that does not count
BLANK = None  # the output of a machine where the task specifies none


def ignored_outputs(outputs: Collection[Hashable], known: Collection[Hashable], ignore: Ignore) -> tuple[Hashable, ...]:
    """Return the distinct outputs of a machine that do not count for a model with outputs `known`, in order.

    Raises `UnsupportedFormat` for an `ignore` that is neither "lacked" nor a collection of the machine's outputs,
    `InvalidMachine` for outputs that are equal in Python only (`symbols.confused`).

    >>> ignored_outputs(("a", "b", "error", "b"), ("a", "b"), "lacked"), ignored_outputs((0, 1), (0,), ())
    (('error',), ())
    """
    own = dict.fromkeys(outputs)
    if why := confused((*outputs, *known, *(() if isinstance(ignore, str) else ignore))):
        raise InvalidMachine(f"outputs {why}")
    if ignore == "lacked":
        predictable = set(known)
        return tuple(output for output in own if output not in predictable)
    if isinstance(ignore, str):
        raise UnsupportedFormat(f'ignore {ignore!r}: give "lacked", or outputs of the machine as a tuple')
    if unknown := [output for output in ignore if output not in own]:
        raise UnsupportedFormat(
            f"ignore: {', '.join(map(repr, unknown[:8]))} is none of the machine's outputs "
            f"{', '.join(map(repr, list(own)[:8]))}"
        )
    chosen = set(ignore)
    return tuple(output for output in own if output in chosen)


@dataclass(frozen=True, eq=False)
class Positions:
    """An automaton that accepts the words after which an output counts.

    Args:
        delta: the transition table over the positions of a model's letters, int64 (|Σ|, n).
        counts: whether the output counts in each state, bool (n,).
        start: the state before the first letter.
    """

    delta: np.ndarray
    counts: np.ndarray
    start: int

    @cached_property
    def coaccessible(self) -> np.ndarray:
        """Whether some word, possibly empty, leads from each state to an output that counts: bool (n,)."""
        return coaccessible(self.delta, self.counts)

    @cached_property
    def live(self) -> np.ndarray:
        """Whether each letter leads each state to a coaccessible one: bool (|Σ|, n); else no later output counts."""
        return self.coaccessible[self.delta]

    def path(self, tokens: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """Return the states after each letter of N words, from states `before` (N,) or the start: int64 (N, T)."""
        return paths(self.delta, np.full(len(tokens), self.start) if before is None else before, tokens)

    def random_words(
        self, rng: np.random.Generator, n: int, length: int, allowed: np.ndarray | None = None
    ) -> np.ndarray:
        """Return random words, int64 (n, length), whose letters are drawn uniformly among those allowed in each state.

        `allowed` is bool (|Σ|, number of states), by default `live`. If a state allows no letter, it allows all.
        """
        allowed = self.live if allowed is None else allowed
        allowed = allowed | ~allowed.any(0)
        choices, letter = allowed.sum(0), np.argsort(~allowed, axis=0, kind="stable")  # the allowed ones first
        tokens, q = np.empty((n, length), np.int64), np.full(n, self.start)
        for k in range(length):
            tokens[:, k] = letter[(rng.random(n) * choices[q]).astype(np.int64), q]
            q = self.delta[tokens[:, k], q]
        return tokens


def positions_of(alphabet: tuple[Hashable, ...], counts: MooreMachine | None, empty_word: bool) -> Positions:
    """Return the positions of the words that an acceptor `counts` accepts, or of all words if it is None.

    The empty word is excluded unless `empty_word`. Raises `InvalidMachine` if the acceptor has another alphabet.

    >>> positions_of(("a", "b"), None, empty_word=False).counts.tolist()
    [False, True]
    """
    accepts = counts if counts is not None else MooreMachine(np.zeros((len(alphabet), 1), int), [True], 0, alphabet)
    minimal = minimise(accepts if empty_word else fresh_start(accepts, False))
    delta = minimal.delta[align(alphabet, minimal.alphabet)]
    return Positions(delta, np.array([bool(output) for output in minimal.outputs]), minimal.start)


def smallest_after_first(machine: MooreMachine) -> MooreMachine:
    """Return the smallest machine with the same output after every word of at least one letter.

    If no letter leads back to the start of the minimal machine, and another state has the same transitions, the two are
    merged, and the output on the empty word changes. Otherwise the minimal machine is returned.

    >>> smallest_after_first(MooreMachine([[1, 2, 1]], "ooe")).outputs
    ('e', 'o')
    """
    minimal = minimise(machine)
    # A state with the start's transitions gives the same output after every letter, so it can be the start.
    alike = (minimal.delta == minimal.delta[:, [minimal.start]]).all(0)
    alike[minimal.start] = False
    if (minimal.delta == minimal.start).any() or not alike.any():
        return minimal
    return minimise(MooreMachine(minimal.delta, minimal.outputs, int(alike.argmax()), minimal.alphabet, minimal.labels))
