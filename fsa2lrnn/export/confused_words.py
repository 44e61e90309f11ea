"""Find words after which every network of a kind is in the same state, for refusals.

The kinds are stacks of input-independent layers (T55), one layer of attention (T56), stacks of heads none of which can
both keep and forget (T62), and one layer of Mamba-2 (T69). For the kinds before the last all such words are known, so
some network computes a machine if and only if the machine does not separate them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from fsa2lrnn import symbols
from fsa2lrnn.automata.language import distinguish, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.automata.monoid.map_kernels import components
from fsa2lrnn.deadline import bounded, check_current
from fsa2lrnn.errors import BudgetExceeded, UnsupportedFormat
from fsa2lrnn.families.family_answers import CertifiedAnswer, certificate_header

MAX_PROFILES = 200_000
"""The most profiles of words (T56) that are compared; their number is exponential in the number of letters."""

_Word = tuple[int, ...]
_Confusion = tuple[tuple[_Word, ...], int, int]  # the words of a certificate, and two states of the machine
_Profile = tuple[_Word, _Word, int]  # the last letter, after the letters before it by first and by last occurrence


@dataclass(frozen=True)
class ConfusedWords(CertifiedAnswer):
    """A certificate that no network of a kind computes the machine.

    Args:
        words: the words of the theorem of the kind that the networks confuse.
        separator: a word after which the outputs of the machine differ in the two states that the words reach.
    """

    answer: ClassVar[str] = "no"
    words: tuple[_Word, ...]
    separator: _Word

    @property
    def subject(self) -> str:
        return self.family

    def explain(self) -> str:
        """Return a sentence that names the confused words."""
        alphabet = self.machine.alphabet
        u, w, *rest = (f'"{symbols.word_text([alphabet[a] for a in word], alphabet)}"' for word in self.words)
        if self.family == "lti-stack":
            return f"After {u}, many {w}, {rest[0]} or as many letters of {w}, and many {w}, states would be the same."
        if self.family.startswith("diagonal-layer"):
            return f"After {u}, {w} or {rest[0]}, and {rest[1]}, which has all these letters, states would be the same."
        if self.family == "ends-stack":
            return f"After {u} and many {w}, states would be the same whether or not {rest[0]} and many {w} follow."
        often = f", each before any number of {rest[0]}," if self.words[2:] and self.words[2] else ""
        return f"The states after {u} and {w}{often} would be the same."

    def to_json(self) -> dict[str, Any]:
        words = [[[a, 1] for a in word] for word in (*self.words, self.separator)]
        header = certificate_header(self.machine, self.family, "impossible")
        return {**header, "words": words[:-1], "separator": words[-1]}


def confused(machine: MooreMachine, kind: str) -> ConfusedWords | None:
    """Return words that every network of a kind confuses and the machine separates, or None if no such words exist.

    Args:
        kind: "lti-stack" (S4: any matrix, the same for all letters) or "lti-diagonalisable-stack" (S5, LRU), with
            finitely many reachable states; "hard-attention" (one layer, strictly masked, without positions);
            "ends-stack" (no head both keeps and forgets, with windows) or "last-letter-stack" (without windows);
            "diagonal-layer-c" (one layer of decays in [0, 1] that depend on the letter, whose inputs depend on the last
            c ≤ 4 letters, with finitely many states: Mamba-2; None then proves nothing).

    Raises:
        BudgetExceeded: beyond `MAX_PROFILES` profiles of words.
        UnsupportedFormat: for another kind.

    >>> from fsa2lrnn.automata import zoo
    >>> confused(zoo.flip_flop(), "lti-stack").check()
    'impossible: no network of the kind lti-stack computes this machine'
    >>> print(confused(zoo.flip_flop(), "hard-attention"))
    None
    """
    if kind not in _SEARCHES:
        raise UnsupportedFormat(f"kind {kind!r} is not known: choose one of {', '.join(_SEARCHES)}")
    minimal = minimise(machine)
    # T56: letters that act alike may be identified.
    letters = sorted(map(int, np.unique(minimal.delta, axis=0, return_index=True)[1]))
    confusion = _SEARCHES[kind](minimal.delta[letters], minimal.start)
    if confusion is None:
        return None
    short, p, q = confusion
    named = tuple(tuple(letters[a] for a in word) for word in short)
    return ConfusedWords(minimal, kind, named, distinguish(minimal, p, q) or ())


def _of_stack(delta: np.ndarray, start: int, has_lengths: bool = True) -> _Confusion | None:
    """Return words u, e, x and states p ≠ q with p = start·u = p·e and q = p·x = q·e (T62).

    If `has_lengths`, |x| is a multiple of |e| (T55).
    """
    n = delta.shape[1]
    bounded(n**2 * max(500, len(delta)), 500**3, f"words between {n:,} states with {len(delta):,} letters")
    ways = [_paths(delta, p) for p in range(n)]
    # The pair (p, q) is node p·n + q, and a letter leads it to the pair of the images.
    successors = (delta[:, :, None] * n + delta[:, None, :]).reshape(len(delta), n * n).T
    of_pair = components(np.ascontiguousarray(successors))
    # T55: one pair (p, q) of a strongly connected component of pairs decides for all.
    for pair in np.unique(of_pair, return_index=True)[1].tolist():
        p, q = divmod(pair, n)
        if p == q or q not in ways[p]:
            continue
        check_current("comparing words")
        loop = _loop(delta, p, q, of_pair.reshape(n, n))
        # Any loop e decides: from x for one loop, x followed by rounds of that loop has a length that is a multiple
        # of another's.
        detour = _timed_paths(delta, p, len(loop) if has_lengths else 1).get((q, 0)) if loop else None
        if loop and detour is not None:
            return (ways[start][p], loop, detour), p, q
    return None


def _of_last_letter(delta: np.ndarray, start: int) -> _Confusion | None:
    """Return two words with the same last letter that lead to states p ≠ q (T62), and p and q."""
    ways = _paths(delta, start)
    for a, step in enumerate(delta):
        if odd := [q for q in ways if step[q] != step[start]]:
            return ((a,), (*ways[odd[0]], a)), int(step[start]), int(step[odd[0]])
    return None


def _of_diagonal_layer(delta: np.ndarray, start: int, window: int) -> _Confusion | None:
    """Return words x, u, v, s and the states p ≠ q after xus and xvs (T69).

    For some set of letters, the last `window` − 1 letters of x, u, v and s are in it, and s has each of them after its
    first `window` − 1 letters.
    """
    n, ways = delta.shape[1], _paths(delta, start)
    bounded(n**2 << len(delta), 4_000_000, f"words between {n:,} states with {len(delta):,} letters")
    for letters in (inside for k in range(len(delta)) for inside in combinations(range(len(delta)), k + 1)):
        check_current("comparing words")
        ends = ways
        for _ in range(window - 1):
            ends = {int(delta[a, q]): (*x, a) for q, x in ends.items() for a in letters}
        # Pairs of states that words of the letters reach from one state, each with x, u, v and s.
        pairs = dict[tuple[int, int], tuple[_Word, _Word, _Word, _Word]]()
        for r, x in ends.items():
            reached = {q: tuple(letters[i] for i in word) for q, word in _paths(delta[list(letters)], r).items()}
            for p, q in combinations(reached, 2):
                pairs.setdefault((p, q), (x, reached[p], reached[q], ()))
        for _ in range(window - 1):
            longer = ((a, pair, words) for pair, words in pairs.items() for a in letters)
            pairs = {
                (int(delta[a, p]), int(delta[a, q])): (*words[:3], (*words[3], a))
                for a, (p, q), words in longer
                if delta[a, p] != delta[a, q]
            }
        queue = [(pair, frozenset[int](), words) for pair, words in pairs.items()]
        visited = {(pair, covered) for pair, covered, _ in queue}
        for (p, q), covered, words in queue:  # grows
            if len(covered) == len(letters):
                return words, p, q
            for a in letters:
                after = (int(delta[a, p]), int(delta[a, q])), covered | {a}
                if after[0][0] != after[0][1] and after not in visited:
                    visited.add(after)
                    queue.append((*after, (*words[:3], (*words[3], a))))
    return None


def _paths(delta: np.ndarray, start: int) -> dict[int, _Word]:
    """Return a shortest word from `start` to each reachable state."""
    return {q: word for (q, _), word in _timed_paths(delta, start, 1).items()}


def _timed_paths(delta: np.ndarray, start: int, modulus: int) -> dict[tuple[int, int], _Word]:
    """Return a shortest word from `start` for each pair of a state and a word length modulo `modulus` that occurs."""
    paths = dict[tuple[int, int], _Word]({(start, 0): ()})
    queue = [(start, 0)]
    for p, length in queue:  # grows
        for a, q in enumerate(delta[:, p].tolist()):
            reached = q, (length + 1) % modulus
            if reached not in paths:
                paths[reached] = (*paths[p, length], a)
                queue.append(reached)
    return paths


def _loop(delta: np.ndarray, p: int, q: int, of_pair: np.ndarray) -> _Word | None:
    """Return a shortest non-empty word that fixes p and q, searched inside their component of pairs."""
    paths = dict[tuple[int, int], _Word]()
    queue = list[tuple[tuple[int, int], _Word]]([((p, q), ())])
    for pair, word in queue:  # grows
        for a, step in enumerate(delta):
            reached = int(step[pair[0]]), int(step[pair[1]])
            if of_pair[reached] == of_pair[p, q] and reached not in paths:
                paths[reached] = (*word, a)
                queue.append((reached, paths[reached]))
    return paths.get((p, q))


def _of_diagonal_stack(delta: np.ndarray, start: int) -> _Confusion | None:
    """Return words w, w', y with the same last letters and states start·w = p ≠ q = start·w' = q·y (T55).

    The lengths of w and w' differ by a multiple of |y|, or by 0 if y is empty.
    """
    rows: list[list[int]] = []  # the state after all words of each length that end in a letter
    state = start
    while True:
        check_current("comparing words")
        row = delta[:, state].tolist()
        if row in rows:
            break
        rows.append(row)
        k = len(rows)
        for a, b in ((a, b) for a in range(len(row)) for b in range(len(row))):
            if delta[b, row[a]] != delta[b, row[0]]:
                words = ((0,) * (k - 1) + (0, b), (0,) * (k - 1) + (a, b), ())
                return words, int(delta[b, row[0]]), int(delta[b, row[a]])
        # Up to here all last letters a lead on alike, so letter 0 stands for any: one state represents all words of
        # this length.
        state = row[0]
    first = rows.index(row)
    if first == 0:
        return None
    # Rows recur from row `first` on, so row first − 1 differs from the row one period later.
    p, q = rows[first - 1], rows[-1]
    period = len(rows) - first
    a = next(a for a in range(len(row)) if p[a] != q[a])
    words = ((0,) * (first - 1) + (a,), (0,) * (len(rows) - 1) + (a,), (0,) * (period - 1) + (a,))
    return words, p[a], q[a]


def _of_attention(delta: np.ndarray, start: int) -> _Confusion | None:
    """Return two words of equal profile that reach different states, and these states (T56), or None."""
    states = dict[_Profile, tuple[int, _Word]]()
    queue = deque[tuple[_Profile, int, _Word]](_longer(delta, ((), (), -1), start, ()))
    while queue:
        profile, q, word = queue.popleft()
        if profile in states:
            if states[profile][0] != q:
                return (states[profile][1], word), states[profile][0], q
            continue
        check_current("comparing words")
        states[profile] = q, word
        if len(states) > MAX_PROFILES:
            raise BudgetExceeded(f"words have more than {MAX_PROFILES:,} profiles: there are too many letters")
        queue.extend(_longer(delta, profile, q, word))
    return None


def _longer(delta: np.ndarray, profile: _Profile, q: int, word: _Word) -> Iterator[tuple[_Profile, int, _Word]]:
    first, last, letter = profile
    if letter >= 0:
        first = first if letter in first else (*first, letter)
        # Only letters before the last one count in both orders, so the old last letter is added when the word grows.
        last = (*(a for a in last if a != letter), letter)
    for a, step in enumerate(delta):
        yield (first, last, a), int(step[q]), (*word, a)


_SEARCHES = {
    "lti-stack": _of_stack,
    "lti-diagonalisable-stack": _of_diagonal_stack,
    "hard-attention": _of_attention,
    "ends-stack": partial(_of_stack, has_lengths=False),
    "last-letter-stack": _of_last_letter,
    **{f"diagonal-layer-{c}": partial(_of_diagonal_layer, window=c) for c in range(1, 5)},
}
