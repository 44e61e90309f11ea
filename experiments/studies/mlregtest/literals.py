"""Literals of the subregular hierarchy, and how many words of each label satisfy them.

A `Factor` holds in a word if, after the letters outside of a tier are deleted, a factor occurs at least t times; it may
be anchored at the start or the end. A `Subsequence` holds if its letters occur in this order. These are the literals of
the strictly local, locally (threshold) testable, piecewise testable and tier-based classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

MOST_OCCURRENCES = 5  # thresholds are 1 … 5
_TABLE = 1 << 23  # codes of factors, at most


@dataclass(frozen=True)
class Factor:
    """`letters` occurs `times` or more on the tier; letters −1 and −2 stand for the start and the end."""

    letters: tuple[int, ...]
    times: int
    tier: tuple[int, ...]

    def table(self, n_letters: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a complete automaton: next states (|Σ|, n) and whether each state satisfies the literal; start 0."""
        at_start, at_end = self.letters[0] == -1, self.letters[-1] == -2
        factor = self.letters[at_start : len(self.letters) - at_end]
        k = len(factor)
        fail = _failures(factor)
        # State (count, matched letters); a start anchor has a dead state k + 1 and never falls back.
        width, levels = k + 2, 1 if at_end else self.times + 1
        delta = np.tile(np.arange(width * levels), (n_letters, 1))
        for count in range(levels):
            for q in range(width):
                for a in self.tier:
                    to = _advance(factor, fail, q, a, at_start)
                    new = count
                    if to == k and not at_end:
                        new = min(count + 1, self.times)
                        to = k + 1 if at_start else to
                    if count < levels - 1 or at_end:
                        delta[a, count * width + q] = new * width + to
        holds = np.zeros(width * levels, bool)
        if at_end:
            holds[k] = True
        else:
            holds[self.times * width :] = True
            if k == 0:
                holds[:] = True
        return delta, holds

    def bits(self, n_letters: int) -> float:
        """Return the description length of the literal in bits, over an alphabet of `n_letters` letters."""
        return 2 + self.times + len(self.letters) * np.log2(n_letters + 2)


def _failures(factor: tuple[int, ...]) -> list[int]:
    """Return, for each number of matched letters, the longest proper border (Knuth, Morris and Pratt)."""
    fail = [0, 0]
    for i in range(1, len(factor)):
        j = fail[i]
        while j and factor[i] != factor[j]:
            j = fail[j]
        fail.append(j + (factor[i] == factor[j]))
    return fail


def _advance(factor: tuple[int, ...], fail: list[int], q: int, a: int, at_start: bool) -> int:
    k = len(factor)
    if q > k or (at_start and q == k):
        return k + 1
    while True:
        if q < k and factor[q] == a:
            return q + 1
        if at_start:
            return k + 1
        if q == 0:
            return 0
        q = fail[q]


@dataclass(frozen=True)
class Subsequence:
    """`letters` occur in this order, with any letters between them."""

    letters: tuple[int, ...]

    def table(self, n_letters: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a complete automaton: next states (|Σ|, n) and whether each state satisfies the literal; start 0."""
        k = len(self.letters)
        delta = np.tile(np.arange(k + 1), (n_letters, 1))
        for q, a in enumerate(self.letters):
            delta[a, q] = q + 1
        return delta, np.arange(k + 1) == k

    def bits(self, n_letters: int) -> float:
        """Return the description length of the literal in bits, over an alphabet of `n_letters` letters."""
        return 2 + len(self.letters) * np.log2(n_letters + 1)


Literal = Factor | Subsequence


class FactorFamily:
    """All factors of at most `k` letters on a tier, with every threshold, and which words satisfy them."""

    def __init__(self, tokens: np.ndarray, lengths: np.ndarray, tier: tuple[int, ...], k: int) -> None:
        self.tier, self.base = tier, len(tier) + 2
        while k > 1 and MOST_OCCURRENCES * sum(self.base**j for j in range(1, k + 1)) > _TABLE:
            k -= 1
        self.offsets = np.cumsum([0] + [self.base**j for j in range(1, k + 1)])
        place = np.full(max(tokens.max(initial=0), max(tier)) + 1, -1)
        place[list(tier)] = np.arange(len(tier))
        self.first, ids = _incidence(tokens, lengths, place, self.base, self.offsets, MOST_OCCURRENCES)
        # Only factors that occur have a number, in the order of their codes: shorter ones first.
        occurs = np.bincount(ids, minlength=int(self.offsets[-1]) * MOST_OCCURRENCES) > 0
        self._codes = np.flatnonzero(occurs)
        self.ids = (np.cumsum(occurs) - 1)[ids].astype(np.int32)
        self.size = len(self._codes)
        lengths_of = np.searchsorted(self.offsets, self._codes // MOST_OCCURRENCES, side="right")
        self.bits = 3 + lengths_of * np.log2(self.base) + self._codes % MOST_OCCURRENCES

    def counts(self, words: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return how many of the words of each label satisfy each literal: int64 (2, size)."""
        return _counts(self.first, self.ids, words, labels, self.size)

    def holds(self, number: int, words: np.ndarray) -> np.ndarray:
        """Return which words satisfy a literal."""
        return _contains(self.first, self.ids, words, number)

    def literal(self, number: int) -> Factor:
        """Return the literal of a number."""
        code, times = divmod(int(self._codes[number]), MOST_OCCURRENCES)
        k = int(np.searchsorted(self.offsets, code, side="right"))
        code -= int(self.offsets[k - 1])
        letters = list[int]()
        for _ in range(k):
            code, digit = divmod(code, self.base)
            letters.append(self.tier[digit] if digit < len(self.tier) else -1 - (digit - len(self.tier)))
        return Factor(tuple(reversed(letters)), times + 1, self.tier)


@njit(cache=True)
def _incidence(tokens, lengths, place, base, offsets, most):
    """Return the literals of each word in rows: ids[first[i] : first[i + 1]]."""
    k = len(offsets) - 1
    letters = np.empty(tokens.shape[1] + 2, np.int64)
    codes = np.empty(len(letters) * k, np.int64)
    first = np.zeros(len(tokens) + 1, np.int64)
    ids = np.empty(len(tokens) * 64, np.int32)
    used = 0
    for i in range(len(tokens)):
        n = 1
        letters[0] = base - 2
        for t in range(lengths[i]):
            if place[tokens[i, t]] >= 0:
                letters[n] = place[tokens[i, t]]
                n += 1
        letters[n] = base - 1
        n += 1
        count = 0
        for begin in range(n):
            code = 0
            for j in range(1, min(k, n - begin) + 1):
                code = code * base + letters[begin + j - 1]
                codes[count] = offsets[j - 1] + code
                count += 1
        ordered = np.sort(codes[:count])
        if used + count * most > len(ids):
            larger = np.empty(2 * len(ids) + count * most, np.int32)
            larger[:used] = ids[:used]
            ids = larger
        times = 0
        for j in range(count):
            times = times + 1 if j and ordered[j] == ordered[j - 1] else 1
            if times <= most:
                ids[used] = ordered[j] * most + times - 1
                used += 1
        first[i + 1] = used
    return first, ids[:used].copy()


@njit(cache=True)
def _counts(first, ids, words, labels, size):
    counts = np.zeros((2, size), np.int64)
    for i in words:
        y = labels[i]
        for j in range(first[i], first[i + 1]):
            counts[y, ids[j]] += 1
    return counts


@njit(cache=True)
def _contains(first, ids, words, number):
    holds = np.zeros(len(words), np.bool_)
    for i in range(len(words)):
        for j in range(first[words[i]], first[words[i] + 1]):
            if ids[j] == number:
                holds[i] = True
                break
    return holds


class SubsequenceFamily:
    """All subsequences of at most `k` letters: their words are counted by a search over prefixes."""

    def __init__(self, tokens: np.ndarray, lengths: np.ndarray, n_letters: int, k: int) -> None:
        self.n_letters, self.next = n_letters, _next_places(tokens, lengths, n_letters)
        while k > 1 and n_letters**k > _TABLE // 64:
            k -= 1
        self.offsets = np.cumsum([0] + [n_letters**j for j in range(1, k + 1)])
        self.size = int(self.offsets[-1])
        lengths_of = np.repeat(np.arange(1, k + 1), np.diff(self.offsets))
        self.bits = 2 + lengths_of * np.log2(n_letters + 1)

    def counts(self, words: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return how many of the words of each label satisfy each literal: int64 (2, size).

        Extensions of a subsequence that no word has are not visited: their counts are 0.
        """
        counts = np.zeros((2, self.size), np.int64)
        _count_subsequences(self.next, words, labels, self.offsets, counts)
        return counts

    def holds(self, number: int, words: np.ndarray) -> np.ndarray:
        """Return which words satisfy a literal."""
        places = np.zeros(len(words), np.int64)
        for a in self.literal(number).letters:
            alive = places >= 0
            places[alive] = self.next[words[alive], places[alive], a]
        return places >= 0

    def literal(self, number: int) -> Subsequence:
        """Return the literal of a number."""
        k = int(np.searchsorted(self.offsets, number, side="right"))
        code = number - int(self.offsets[k - 1])
        letters = list[int]()
        for _ in range(k):
            code, digit = divmod(code, self.n_letters)
            letters.append(digit)
        return Subsequence(tuple(reversed(letters)))


Family = FactorFamily | SubsequenceFamily


@njit(cache=True)
def _next_places(tokens, lengths, n_letters):
    """Return the place after the next occurrence of each letter from each place, int8 (N, T + 1, |Σ|), −1 for none."""
    places = np.full((len(tokens), tokens.shape[1] + 1, n_letters), -1, np.int8)
    for i in range(len(tokens)):
        for t in range(lengths[i] - 1, -1, -1):
            for a in range(n_letters):
                places[i, t, a] = places[i, t + 1, a]
            places[i, t, tokens[i, t]] = t + 1
    return places


@njit(cache=True)
def _count_subsequences(places, words, labels, offsets, counts):
    k, n_letters = len(offsets) - 1, places.shape[2]
    # Depth first: of the words that contain the first d letters, alive[d], the place where these end.
    at = np.zeros((k + 1, len(words)), np.int8)
    alive = np.zeros((k + 1, len(words)), np.int64)
    n_alive = np.zeros(k + 1, np.int64)
    code, letter = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)
    alive[0] = words
    n_alive[0] = len(words)
    depth = 0
    while depth >= 0:
        if depth == k or letter[depth] == n_letters or n_alive[depth] == 0:
            letter[depth] = 0
            depth -= 1
            continue
        a = letter[depth]
        letter[depth] += 1
        number = code[depth] * n_letters + a
        n = 0
        for j in range(n_alive[depth]):
            i = alive[depth, j]
            place = places[i, at[depth, j], a]
            if place >= 0:
                at[depth + 1, n] = place
                alive[depth + 1, n] = i
                n += 1
                counts[labels[i], offsets[depth] + number] += 1
        n_alive[depth + 1] = n
        code[depth + 1] = number
        letter[depth + 1] = 0
        depth += 1
