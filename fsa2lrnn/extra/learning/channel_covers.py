"""Words that no number of hard diagonal entries separates, with any number of vectors per state (T51).

The state of such an entry (a channel) after a word is the value that the last writing letter wrote, with one change of
sign for each later letter that changes signs. All channels together determine exactly: the order of the last
occurrences of the letters, and for each letter the parities of the numbers of other letters after its last occurrence,
and overall.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable
from dataclasses import dataclass

from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.symbols import Alphabet, word_text

BUDGET = 200_000  # pairs of a summary and a state

# A summary of a word: its letters by last occurrence, latest first; the parities after each of these and of the word.
_Summary = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class IndistinguishableWords:
    """Two words that lead every channel to the same state, and the machine's outputs after them, which differ."""

    words: tuple[tuple[Hashable, ...], tuple[Hashable, ...]]
    outputs: tuple[Hashable, Hashable]
    alphabet: Alphabet

    def explain(self) -> str:
        """Return a sentence that names both words and outputs."""
        (u, v), (of_u, of_v) = [[word_text(word, self.alphabet) or "ε" for word in self.words], self.outputs]
        return (
            f'channels of x, −x, −1, 0 and 1, however many, are in one state after "{u}" and after "{v}", where the '
            f"machine puts out {of_u!r} and {of_v!r}"
        )


def alike_to_channels(
    machine: MooreMachine, budget: int = BUDGET, ignore: Collection[Hashable] = ()
) -> IndistinguishableWords | bool | None:
    """Return two words with different outputs that no number of hard scalar channels separates (T51).

    The second word is as short as possible. Returns False if no such words exist, None if the budget is exhausted.
    Outputs in `ignore` do not count: channels may have any output instead.

    >>> from fsa2lrnn.automata import zoo
    >>> alike_to_channels(zoo.flip_flop()), alike_to_channels(zoo.ab_star()).words
    (False, (('a', 'b'), ('a', 'a', 'a', 'b')))
    """
    n_letters = len(machine.alphabet)
    start: _Summary = ((), (0,))
    first: dict[_Summary, tuple[int, tuple[int, ...]]] = {}  # the first state and word of each summary
    if machine.outputs[machine.start] not in ignore:
        first[start] = machine.start, ()
    waiting = deque[tuple[_Summary, int, tuple[int, ...]]]([(start, machine.start, ())])
    visited: set[tuple[_Summary, int]] = {(start, machine.start)}
    while waiting:
        summary, q, word = waiting.popleft()
        for a in range(n_letters):
            after, state, longer = _after(summary, a), int(machine.delta[a, q]), (*word, a)
            if (after, state) in visited:
                continue
            visited.add((after, state))
            if machine.outputs[state] not in ignore:
                other, shorter = first.setdefault(after, (state, longer))
                outputs = machine.outputs[other], machine.outputs[state]
                if outputs[0] != outputs[1]:
                    texts = tuple(tuple(machine.alphabet[i] for i in each) for each in (shorter, longer))
                    return IndistinguishableWords((texts[0], texts[1]), outputs, machine.alphabet)
            if len(visited) > budget:
                return None
            waiting.append((after, state, longer))
    return False


def _after(summary: _Summary, a: int) -> _Summary:
    letters, parities = summary
    others = [(letter, parity ^ (1 << a)) for letter, parity in zip(letters, parities, strict=False) if letter != a]
    return (a, *(letter for letter, _ in others)), (0, *(parity for _, parity in others), parities[-1] ^ (1 << a))
