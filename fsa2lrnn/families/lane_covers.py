"""What hard lanes can compute at all, with as many of them and as many vectors a state as one likes (T51).

A lane's state after a word is what its last writing letter wrote, with its sign changed once for each letter after it
that changes signs. So all lanes together know of a word in which order its letters occurred last, and of each letter,
by parity, how often each other one came after its last occurrence, or at all. Nothing else is known to any of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable
from dataclasses import dataclass

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.symbols import Alphabet, word_text

BUDGET = 200_000  # of what lanes know of a word

_Known = tuple[tuple[int, ...], tuple[int, ...]]  # letters, the last one first; and beside each, and at last, parities


@dataclass(frozen=True)
class IndistinguishableWords:
    """Two words that are alike to every lane, and the machine's outputs after them, which are not."""

    words: tuple[tuple[Hashable, ...], tuple[Hashable, ...]]
    outputs: tuple[Hashable, Hashable]
    alphabet: Alphabet

    def explain(self) -> str:
        """In words."""
        (u, v), (of_u, of_v) = [[word_text(word, self.alphabet) or "ε" for word in self.words], self.outputs]
        return (
            f'lanes of x, −x, −1, 0 and 1, however many, are in one state after "{u}" and after "{v}", where the '
            f"machine puts out {of_u!r} and {of_v!r}"
        )


def alike_to_lanes(
    machine: MooreMachine, budget: int = BUDGET, ignore: Collection[Hashable] = ()
) -> IndistinguishableWords | bool | None:
    """Two words that no number of hard lanes tells apart though the machine does, the second as short as can be; False
    if there are none, and None if the budget ends before that is known.

    Outputs in `ignore` do not count: lanes may have any in their place.

    >>> from fsa2lrnn.automata import zoo
    >>> alike_to_lanes(zoo.flip_flop()), alike_to_lanes(zoo.ab_star()).words
    (False, (('a', 'b'), ('a', 'a', 'a', 'b')))
    """
    n_letters = len(machine.alphabet)
    start: _Known = ((), (0,))
    first: dict[_Known, tuple[int, tuple[int, ...]]] = {}  # of what counts
    if machine.outputs[machine.start] not in ignore:
        first[start] = machine.start, ()
    waiting = deque[tuple[_Known, int, tuple[int, ...]]]([(start, machine.start, ())])
    seen: set[tuple[_Known, int]] = {(start, machine.start)}
    while waiting:
        known, q, word = waiting.popleft()
        for a in range(n_letters):
            after, state, longer = _after(known, a), int(machine.delta[a, q]), (*word, a)
            if (after, state) in seen:
                continue
            seen.add((after, state))
            if machine.outputs[state] not in ignore:
                other, shorter = first.setdefault(after, (state, longer))
                outputs = machine.outputs[other], machine.outputs[state]
                if outputs[0] != outputs[1]:
                    texts = tuple(tuple(machine.alphabet[i] for i in each) for each in (shorter, longer))
                    return IndistinguishableWords((texts[0], texts[1]), outputs, machine.alphabet)
            if len(seen) > budget:
                return None
            waiting.append((after, state, longer))
    return False


def _after(known: _Known, a: int) -> _Known:
    """What lanes know after one letter more. A parity is a number whose bit c is that of letter c."""
    letters, parities = known
    kept = [(letter, parity ^ (1 << a)) for letter, parity in zip(letters, parities, strict=False) if letter != a]
    return (a, *(letter for letter, _ in kept)), (0, *(parity for _, parity in kept), parities[-1] ^ (1 << a))
