"""Check words that every network of a kind confuses (T55, T56)."""

from __future__ import annotations

from typing import Any

from .certificate_fields import as_list, require, spend
from .checked_machine import CheckedMachine, Word, after, read_word

KINDS = ("lti-stack", "lti-diagonalisable-stack", "hard-attention")


def check_confused(words: Any, separator: Any, machine: CheckedMachine, start: int, kind: str) -> None:
    """Raise `RejectedCertificate` unless all networks of a kind confuse two words after which outputs differ."""
    words, separator = [read_word(word, machine) for word in as_list(words)], read_word(separator, machine)
    if kind == "lti-stack":
        u, loop, detour = words
        p, q = after(start, u, machine), after(after(start, u, machine), detour, machine)
        require(_length(loop) > 0 and _length(detour) % _length(loop) == 0, "a length is not a multiple of the loop's")
        require(after(p, loop, machine) == p and after(q, loop, machine) == q, "the loop moves a state")
    elif kind == "lti-diagonalisable-stack":
        u, w, loop = words
        p, q = after(start, u, machine), after(start, w, machine)
        longer, period = _length(w) - _length(u), _length(loop)
        # T55 (b): an empty loop stands for words of equal length.
        require(longer % period == 0 if period else longer == 0, "the lengths are not congruent")
        require(len(set(map(_last, words if period else (u, w)))) == 1, "the last letters differ")
        require(after(q, loop, machine) == q, "the loop moves a state")
    else:
        u, w = words
        p, q = after(start, u, machine), after(start, w, machine)
        require(_profile(u) == _profile(w), "the words have different profiles")
    differ = machine.outputs[after(p, separator, machine)] != machine.outputs[after(q, separator, machine)]
    require(differ, "the separator does not tell the states apart")


def _length(word: Word) -> int:
    return sum(repetitions for _, repetitions in word)


def _last(word: Word) -> int:
    letters = [a for a, repetitions in word if repetitions]
    require(len(letters) > 0, "a word is empty")
    return letters[-1]


def _profile(word: Word) -> tuple[list[int], list[int], int]:
    """Return the letters by first and by last occurrence before the last letter, and the last letter."""
    letters = [a for a, repetitions in word for _ in range(min(repetitions, 2))]  # more repetitions change no profile
    spend(4 * len(letters))
    last = _last(word)
    earlier = letters[:-1]
    return list(dict.fromkeys(earlier)), list(dict.fromkeys(reversed(earlier))), last
