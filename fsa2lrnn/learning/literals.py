"""Literals of the subregular hierarchy, how many words of each label satisfy them, and their acceptors.

A factor literal holds if, after the letters outside of a tier are deleted, a factor occurs so many times or more; it
may be anchored at the start or the end. A subsequence literal holds if its letters occur in this order. These are the
literals of the strictly local, locally (threshold) testable, piecewise testable and tier-based classes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fsa2lrnn.automata.language import explore, minimise
from fsa2lrnn.automata.machine import MooreMachine
from fsa2lrnn.deadline import Deadline

_OCCURRENCES = 5  # thresholds are 1 … 5
_TABLE = 1 << 23  # codes of factors, at most
_START, _END = -1, -2


class Factors:
    """All factors of at most `k` letters on a tier, with every threshold; literals are numbered, shorter ones first."""

    def __init__(self, tokens: np.ndarray, lengths: np.ndarray, n_letters: int, tier: tuple[int, ...], k: int) -> None:
        self.n_letters, self.tier, self._base = n_letters, tier, len(tier) + 2
        while k > 1 and _OCCURRENCES * sum(self._base**j for j in range(1, k + 1)) > _TABLE:
            k -= 1
        self._offsets = np.cumsum([0] + [self._base**j for j in range(1, k + 1)])
        place = np.full(n_letters, -1)
        place[list(tier)] = np.arange(len(tier))
        self._first, ids = _incidence(tokens, lengths, place, self._base, self._offsets)
        occurs = np.bincount(ids, minlength=int(self._offsets[-1]) * _OCCURRENCES) > 0
        self._codes = np.flatnonzero(occurs)
        self._ids = (np.cumsum(occurs) - 1)[ids].astype(np.int32)
        sizes = np.searchsorted(self._offsets, self._codes // _OCCURRENCES, side="right")
        self.bits = 3 + sizes * np.log2(self._base) + self._codes % _OCCURRENCES

    def counts(self, words: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return how many of the words of each label satisfy each literal: int64 (2, size)."""
        return _counts(self._first, self._ids, words, labels, len(self._codes))

    def holds(self, number: int, words: np.ndarray) -> np.ndarray:
        """Return which words satisfy a literal."""
        return _contains(self._first, self._ids, words, number)

    def acceptor(self, number: int) -> MooreMachine:
        """Return the minimal acceptor of a literal over the letters 0 … n − 1."""
        code, times = divmod(int(self._codes[number]), _OCCURRENCES)
        size = int(np.searchsorted(self._offsets, code, side="right"))
        digits = np.unravel_index(code - int(self._offsets[size - 1]), (self._base,) * size)
        factor = tuple(self.tier[d] if d < len(self.tier) else len(self.tier) - 1 - d for d in map(int, digits))

        def step(state: tuple[int, tuple[int, ...]], letter: int) -> tuple[int, tuple[int, ...]]:
            """Count the factor when its last letter is read; otherwise remember which prefix of it was read last."""
            count, read = state
            if letter not in self.tier or count > times:
                return state
            read = (*read, letter)
            count += read == factor
            while read == factor or read != factor[: len(read)]:
                read = read[1:]
            return count, read

        start = (0, (_START,) if factor[0] == _START and len(factor) > 1 else ())
        return minimise(
            explore(
                range(self.n_letters), start, step,  # type: ignore[arg-type]
                lambda state: state[0] > times or (*state[1], _END) == factor or factor == (_START,),
            )
        )  # fmt: skip


class Subsequences:
    """All subsequences of at most `k` letters, numbered with shorter ones first."""

    def __init__(self, tokens: np.ndarray, lengths: np.ndarray, n_letters: int, k: int) -> None:
        self.n_letters, self._next = n_letters, _next_places(tokens, lengths, n_letters)
        while k > 1 and n_letters**k > _TABLE // 64:
            k -= 1
        self._offsets = np.cumsum([0] + [n_letters**j for j in range(1, k + 1)])
        self.bits = 2 + np.repeat(np.arange(1, k + 1), np.diff(self._offsets)) * np.log2(n_letters + 1)

    def counts(self, words: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return how many of the words of each label satisfy each literal: int64 (2, size)."""
        counts = np.zeros((2, int(self._offsets[-1])), np.int64)
        _count_subsequences(self._next, words, labels, self._offsets, counts)
        return counts

    def holds(self, number: int, words: np.ndarray) -> np.ndarray:
        """Return which words satisfy a literal."""
        places = np.zeros(len(words), np.int64)
        for letter in self._letters(number):
            alive = places >= 0
            places[alive] = self._next[words[alive], places[alive], letter]
        return places >= 0

    def acceptor(self, number: int) -> MooreMachine:
        """Return the minimal acceptor of a literal over the letters 0 … n − 1."""
        letters = self._letters(number)
        k = len(letters)
        delta = np.tile(np.arange(k + 1), (self.n_letters, 1))
        delta[letters, range(k)] = range(1, k + 1)
        return MooreMachine(delta, [q == k for q in range(k + 1)], 0, range(self.n_letters))

    def _letters(self, number: int) -> list[int]:
        k = int(np.searchsorted(self._offsets, number, side="right"))
        return [int(d) for d in np.unravel_index(number - int(self._offsets[k - 1]), (self.n_letters,) * k)]


Family = Factors | Subsequences


def ends(machine: MooreMachine, tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the state of a machine over the letters 0 … n − 1 after each word, (N,)."""
    return _ends(np.asarray(machine.delta), machine.start, tokens, lengths)


@njit(cache=True)
def _ends(delta, start, tokens, lengths):
    last = np.full(len(tokens), start)
    for i in range(len(tokens)):
        for t in range(lengths[i]):
            last[i] = delta[tokens[i, t], last[i]]
    return last


@njit(cache=True)
def _incidence(tokens, lengths, place, base, offsets):
    """Return the literals of each word in rows: ids[first[i] : first[i + 1]]."""
    k = len(offsets) - 1
    letters, codes = np.empty(tokens.shape[1] + 2, np.int64), np.empty((tokens.shape[1] + 2) * k, np.int64)
    first, ids, used = np.zeros(len(tokens) + 1, np.int64), np.empty(len(tokens) * 64, np.int32), 0
    for i in range(len(tokens)):
        letters[0], n, count = base - 2, 1, 0
        for t in range(lengths[i]):
            if place[tokens[i, t]] >= 0:
                letters[n] = place[tokens[i, t]]
                n += 1
        letters[n] = base - 1
        n += 1
        for begin in range(n):
            code = 0
            for j in range(1, min(k, n - begin) + 1):
                code = code * base + letters[begin + j - 1]
                codes[count] = offsets[j - 1] + code
                count += 1
        ordered = np.sort(codes[:count])
        if used + count * _OCCURRENCES > len(ids):
            larger = np.empty(2 * len(ids) + count * _OCCURRENCES, np.int32)
            larger[:used] = ids[:used]
            ids = larger
        times = 0
        for j in range(count):
            times = times + 1 if j and ordered[j] == ordered[j - 1] else 1
            if times <= _OCCURRENCES:
                ids[used] = ordered[j] * _OCCURRENCES + times - 1
                used += 1
        first[i + 1] = used
    return first, ids[:used].copy()


@njit(cache=True)
def _counts(first, ids, words, labels, size):
    counts = np.zeros((2, size), np.int64)
    for i in words:
        for j in range(first[i], first[i + 1]):
            counts[labels[i], ids[j]] += 1
    return counts


@njit(cache=True)
def _contains(first, ids, words, number):
    holds = np.zeros(len(words), np.bool_)
    for i in range(len(words)):
        low, high = first[words[i]], first[words[i] + 1]
        while low < high:  # the literals of a word are in ascending order
            middle = (low + high) // 2
            if ids[middle] < number:
                low = middle + 1
            else:
                high = middle
        holds[i] = low < first[words[i] + 1] and ids[low] == number
    return holds


@njit(cache=True)
def _next_places(tokens, lengths, n_letters):
    """Return the place after the next occurrence of each letter from each place, int16 (N, T + 1, |Σ|), −1 for none."""
    places = np.full((len(tokens), tokens.shape[1] + 1, n_letters), -1, np.int16)
    for i in range(len(tokens)):
        for t in range(lengths[i] - 1, -1, -1):
            places[i, t] = places[i, t + 1]
            places[i, t, tokens[i, t]] = t + 1
    return places


@njit(cache=True)
def _count_subsequences(places, words, labels, offsets, counts):
    """Count by a search over prefixes, depth first; extensions of a subsequence that no word has are not visited."""
    k, n_letters = len(offsets) - 1, places.shape[2]
    # Of the words that contain the first d letters, alive[d], the place where these end.
    at, alive = np.zeros((k + 1, len(words)), np.int16), np.zeros((k + 1, len(words)), np.int64)
    n_alive, code, letter = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)
    alive[0], n_alive[0], depth = words, len(words), 0
    while depth >= 0:
        if depth == k or letter[depth] == n_letters or n_alive[depth] == 0:
            letter[depth] = 0
            depth -= 1
            continue
        a, n = letter[depth], 0
        letter[depth] += 1
        number = code[depth] * n_letters + a
        for j in range(n_alive[depth]):
            i = alive[depth, j]
            place = places[i, at[depth, j], a]
            if place >= 0:
                at[depth + 1, n], alive[depth + 1, n] = place, i
                n += 1
                counts[labels[i], offsets[depth] + number] += 1
        depth += 1
        n_alive[depth], code[depth], letter[depth] = n, number, 0


def letter_classes(
    tokens: np.ndarray, lengths: np.ndarray, labels: np.ndarray, k: int, bound: float, limit: Deadline
) -> np.ndarray:
    """Return the class of each letter, int64 (|Σ|,): letters that occur equally often in all contexts act alike.

    In words drawn uniformly by label and length, letters whose exchange changes no label are equally frequent in every
    context: alone, first, last, next to a letter, before or after it. The two most similar classes are united as long
    as all their z = (n_a − n_b) / √(n_a + n_b) stay below the bound. Raises `OutOfTime` at the deadline.
    """
    counts = _contexts(tokens, lengths, labels, k)
    members = [[a] for a in range(k)]
    while len(members) > 1:
        limit.check("uniting letters")
        means, sizes = (
            np.stack([counts[each].mean(0) for each in members]),
            np.array([float(len(each)) for each in members]),
        )
        z = np.full((len(members), len(members)), np.inf)
        for i in range(len(members) - 1):
            # n_a is Poisson about its expectation: the variance of a class's mean is its mean over its size.
            pooled = (sizes[i] * means[i] + sizes[i + 1 :, None] * means[i + 1 :]) / (sizes[i] + sizes[i + 1 :, None])
            variance = pooled * (1 / sizes[i] + 1 / sizes[i + 1 :, None])
            z[i, i + 1 :] = (np.abs(means[i] - means[i + 1 :]) / np.sqrt(np.maximum(variance, 1e-9))).max(1)
        i, j = map(int, np.unravel_index(np.argmin(z), z.shape))
        if z[i, j] > bound:
            break
        members[i] += members.pop(j)
    classes = np.empty(k, np.int64)
    for number, letters in enumerate(sorted(members, key=min)):
        classes[letters] = number
    return classes


@njit(cache=True)
def _contexts(tokens, lengths, labels, n_letters):
    """Return how often each letter occurs in each context, float64 (|Σ|, contexts): 2 labels × (3 + 4 |Σ|)."""
    width = 3 + 4 * n_letters
    counts = np.zeros((n_letters, 2 * width))
    last_word, pairs = np.full(n_letters, -1), np.full((n_letters, n_letters), -1)
    for i in range(len(tokens)):
        shift = width * labels[i]
        for t in range(lengths[i]):
            a = tokens[i, t]
            counts[a, shift] += 1
            counts[a, shift + 1] += t == 0
            counts[a, shift + 2] += t == lengths[i] - 1
            if t:
                before = tokens[i, t - 1]
                counts[before, shift + 3 + a] += 1
                counts[a, shift + 3 + n_letters + before] += 1
            # Words in which c comes somewhere before a.
            for c in range(n_letters):
                if last_word[c] == i and pairs[c, a] != i:
                    pairs[c, a] = i
                    counts[c, shift + 3 + 2 * n_letters + a] += 1
                    counts[a, shift + 3 + 3 * n_letters + c] += 1
            last_word[a] = i
    return counts
