"""Machines whose every output names all that the recurrent layers of a model hold, and words that exercise them.

A canary is a list of layers, each with heads that hold one value. A head reads the letter of its layer's convolution
with a lag: the value after letter a is `table[a][value]`, and a head with a lag of j reads the letter j letters ago
(0 is held while there is none). The output after a letter is the tuple of all values, so a fault in any head of any
layer shows at the next token, unless the altered state holds the same values (`faults` counts these).

*recency*, for layers with eigenvalues in [0, 1]: for each pair of letters a register holds which of the two was read
last. Together they hold the order in which the letters were last read; a pair that is no longer read is kept forever.
*exchange*, for layers with eigenvalue −1: each letter exchanges two of n points, so no state is ever forgotten.
In both, each layer has a head that holds the class of the letter 1, 2 or 3 letters ago: the convolution's window. The
class of the current letter follows from the order, or has a head of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import NamedTuple

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat

WINDOW = 3  # the letters before the current one that a convolution of four taps reads
NO_LETTER = -1
_MOST = 20_000  # states of a canary
MIXED, _TRIES = 30, 5


class Head(NamedTuple):
    """One head: the next value for each letter and value, and by how many letters the letter is delayed."""

    table: tuple[tuple[int, ...], ...]
    lag: int = 0


class LayerState(NamedTuple):
    """What one layer holds: the value of each head, and the last letters in its window, the latest first."""

    values: tuple[int, ...]
    window: tuple[int, ...]


State = tuple[LayerState, ...]
Word = tuple[int, ...]


@dataclass(frozen=True)
class Canary:
    """Letters, layers of heads, and for a model that generates the letter after each output.

    Args:
        kind: "recency" or "exchange".
        letters: the letters.
        layers: the heads of each layer.
        follows: for each output (all values, layer by layer) the next letter; empty for a model that only tracks.
    """

    kind: str
    letters: tuple[str, ...]
    layers: tuple[tuple[Head, ...], ...]
    follows: tuple[tuple[tuple[int, ...], int], ...] = ()

    @property
    def start(self) -> State:
        """The state before the first letter."""
        return tuple(LayerState((0,) * len(heads), (NO_LETTER,) * WINDOW) for heads in self.layers)

    def step(self, state: State, letter: int) -> State:
        """Return the state after a letter."""
        if (known := self._known.get((state, letter))) is not None:
            return known
        after = list[LayerState]()
        for heads, (values, window) in zip(self.layers, state, strict=True):
            read = (letter, *window)
            after.append(
                LayerState(
                    tuple(
                        0 if read[head.lag] == NO_LETTER else head.table[read[head.lag]][value]
                        for head, value in zip(heads, values, strict=True)
                    ),
                    read[:WINDOW],
                )
            )
        self._known[state, letter] = tuple(after)
        return tuple(after)

    @cached_property
    def _known(self) -> dict[tuple[State, int], State]:
        return {}

    def run(self, state: State, word: Sequence[int]) -> Iterator[State]:
        """Yield the state after each letter of a word."""
        for letter in word:
            yield (state := self.step(state, letter))

    @cached_property
    def outputs(self) -> dict[tuple[int, ...], int]:
        """The number of each tuple of values that some non-empty word leads to; 0 is the first letter's."""
        return {values: i for i, values in enumerate(dict.fromkeys(held(state) for state in self.reachable[1:]))}

    @cached_property
    def reachable(self) -> tuple[State, ...]:
        """All states, in breadth-first order from the start."""
        found = dict.fromkeys([self.start])
        queue = [self.start]
        for state in queue:
            for letter in range(len(self.letters)):
                after = self.step(state, letter)
                if after not in found:
                    found[after] = None
                    queue.append(after)
            if len(queue) > _MOST:
                raise BudgetExceeded(f"the canary has more than {_MOST:,} states: take fewer letters or heads")
        return tuple(found)

    @cached_property
    def machine(self) -> MooreMachine:
        """The automaton over the letters, with names of outputs such as `1.0/2.3`, or the next letters."""
        number = {state: i for i, state in enumerate(self.reachable)}
        delta = [[number[self.step(state, letter)] for state in self.reachable] for letter in range(len(self.letters))]
        # The model puts out no token before the first letter, so the start's output is free: it names no value.
        labels = [self.label(state) for state in self.reachable]
        return MooreMachine(delta, labels, 0, self.letters)

    def label(self, state: State) -> str:
        """Return the text of a state's output: its values, or the next letter."""
        values = held(state)
        if self.follows:
            return self.letters[dict(self.follows).get(values, 0)]
        return named(values, [len(heads) for heads in self.layers])


def held(state: State) -> tuple[int, ...]:
    """Return the values of all heads, layer by layer."""
    return tuple(value for layer in state for value in layer.values)


def named(values: Sequence[int], sizes: Sequence[int]) -> str:
    """Return values as text, with `.` between heads and `/` between layers.

    >>> named((1, 0, 2, 3), (2, 2))
    '1.0/2.3'
    """
    rest = iter(values)
    return "/".join(".".join(str(next(rest)) for _ in range(size)) for size in sizes)


def _window_head(classes: Sequence[int], lag: int) -> Head:
    n = 2 + max(classes)
    return Head(tuple((1 + which,) * n for which in classes), lag)


def _windows(classes: Sequence[int], layer: int) -> tuple[Head, Head]:
    """Return heads that hold the classes of two earlier letters, in each layer by other lags."""
    return _window_head(classes, 1 + layer % WINDOW), _window_head(classes, 1 + (layer + 1) % WINDOW)


def recency(blocks: int = 1) -> Canary:
    """Return the canary of layers with eigenvalues in [0, 1], with four letters and `blocks` times three layers.

    >>> canary = recency()
    >>> len(canary.layers), len(canary.outputs) <= 512
    (3, True)
    """
    n_letters = 4

    def register(first: int, second: int) -> Head:
        rows: list[tuple[int, ...]] = [(0, 1, 2)] * n_letters
        rows[first], rows[second] = (1,) * 3, (2,) * 3
        return Head(tuple(rows))

    # Each layer holds two disjoint pairs, and the classes of two earlier letters.
    layers = [
        (register(*pair), register(*(set(range(n_letters)) - {*pair})), *_windows((0, 0, 1, 1), i))
        for i, pair in enumerate([(0, 1), (0, 2), (0, 3)] * blocks)
    ]
    return Canary("recency", tuple("abcd"), tuple(layers))


def exchange(n_points: int = 4, blocks: int = 1) -> Canary:
    """Return the canary of layers with eigenvalue −1: letter i exchanges the points i and i + 1 of `n_points`.

    It has `blocks` times three layers.

    >>> canary = exchange()
    >>> len({layer.values[0] for layer, *_ in canary.reachable})    # the permutations of four points
    24
    """
    orders = list(permutations(range(n_points)))
    number = {order: i for i, order in enumerate(orders)}

    def moved(order: tuple[int, ...], i: int) -> int:
        return number[tuple({i: i + 1, i + 1: i}.get(point, point) for point in order)]

    n = n_points - 1
    layers = list[tuple[Head, ...]]()
    classes = [letter % 2 for letter in range(n)]
    # A second head, and every second layer, reads the letters in reverse order, an automorphism: no more states.
    tables = [
        tuple(tuple(moved(order, role) for order in orders) for role in roles) for roles in (range(n), range(n)[::-1])
    ]
    for i in range(WINDOW * blocks):
        layers.append((Head(tables[i % 2]), Head(tables[1 - i % 2]), *_windows(classes, i)))
    layers[0] = (*layers[0][:-1], _window_head(classes, 0))
    return Canary("exchange", tuple("abcdefgh"[:n]), tuple(layers))


KINDS = {"recency": recency, "exchange": exchange}


def long_cycle(canary: Canary, tries: int = 60, seed: int = 0) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Return for each output the letter to put out, so that a model that reads its own letters runs a long cycle.

    The cycle is the longest that self-avoiding walks found; outputs beside it lead to it by the shortest way. A model
    that loses its state goes on elsewhere on the cycle, or beside it.

    >>> canary = exchange(3)
    >>> len(long_cycle(canary)) == len(canary.outputs)
    True
    """
    states = {held(state): state for state in canary.reachable[1:]}
    letters = range(len(canary.letters))
    after = {values: [held(canary.step(state, a)) for a in letters] for values, state in states.items()}
    rng, best = random.Random(seed), list[tuple[int, ...]]()
    for _ in range(tries):
        path = [rng.choice(list(states))]
        seen = {path[0]: 0}
        while True:
            free = [values for values in dict.fromkeys(after[path[-1]]) if values not in seen]
            if not free:
                break
            # First what has the fewest ways on, which would else be left behind.
            path.append(min(free, key=lambda values: (sum(x not in seen for x in after[values]), rng.random())))
            seen[path[-1]] = len(path) - 1
        for last in range(len(path) - 1, len(best) - 2, -1):
            first = min((seen[x] for x in after[path[last]] if seen.get(x, last + 1) <= last), default=last)
            if last + 1 - first > len(best):
                best = path[first : last + 1]
    follows = {values: after[values].index(best[(i + 1) % len(best)]) for i, values in enumerate(best)}
    while len(follows) < len(states):  # breadth first, backwards from the cycle
        found = {
            values: next(a for a in letters if after[values][a] in follows)
            for values in states
            if values not in follows and any(x in follows for x in after[values])
        }
        if not found:
            raise UnsupportedFormat("some states of the canary do not lead to the cycle")
        follows |= found
    return tuple(sorted(follows.items()))


def words(canary: Canary, count: int, length: int, seed: int = 0, apart: int = 6) -> tuple[Word, ...]:
    """Return words in which, where possible, the values differ from those of each of the last `apart` letters.

    So a state that is too old or too new by up to `apart` letters shows at once, in each layer and in the windows.
    Letters are drawn with a seed; where no letter keeps all apart, the one that keeps most is taken. After `MIXED`
    letters, where the driver mixes sequences, no word holds what the start or another word holds, as far as some tries
    find such words.
    """
    lagged = [head.lag > 0 for heads in canary.layers for head in heads]

    def parts(state: State) -> list[tuple[int, ...]]:
        """Return what each layer keeps, and the windows of all."""
        window = tuple(value for value, lag in zip(held(state), lagged, strict=True) if lag)
        kept = [
            tuple(value for value, head in zip(layer.values, heads, strict=True) if not head.lag)
            for layer, heads in zip(state, canary.layers, strict=True)
        ]
        return [*kept, window]

    rng, made = random.Random(seed), list[Word]()
    met, tries = [parts(canary.start)[1:-1]], 0  # the first layer also keeps the class of the letter
    while len(made) < count:
        state, word = canary.start, list[int]()
        past = [parts(state)]
        while len(word) < length:
            order = rng.sample(range(len(canary.letters)), len(canary.letters))
            reached = {a: canary.step(state, a) for a in order}
            letter = (
                order[0]
                if rng.random() < 0.25
                else min(  # some letters at random, lest the word repeats itself
                    order,
                    key=lambda a: sum(
                        x == y for old in past[-apart:] for x, y in zip(parts(reached[a]), old, strict=True)
                    ),
                )
            )
            state = reached[letter]
            past.append(parts(state))
            word.append(letter)
        tries, mixed = tries + 1, past[min(MIXED, length)][1:-1]
        if mixed not in met or tries > _TRIES * count:
            met.append(mixed)
            made.append(tuple(word))
    return tuple(made)
