"""Probabilistic automata of maximal likelihood, by expectation maximisation (Baum, Petrie, Soules & Weiss 1970).

From a word, state q is left by letter a to state q′ as often as the product of three numbers says: the probability of
the letters so far with state q, of the transition, and of the rest of the word from q′, divided by the probability of
the word. An iteration replaces each probability by its share in the expected counts, and the likelihood of the words
never falls. It ends in a local maximum, which depends on the random start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.deadline import bounded, check_current
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.reading import check_whole, shown
from fsa2lrnn.weighted.weighted_automaton import WeightedAutomaton, listed

Word = tuple[int, ...]
_MAX_STATES_OF_WORDS = 1 << 28  # numbers that an iteration keeps: states times prefixes of words
_HELD_OUT, _MOST = 0.2, 4_000  # share of the words that are held out, and at most so many
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Sample:
    """Words in columns, the longest first, with how often each occurs.

    Args:
        letters: (N, T), −1 after the end of a word.
        times: (N,).
        going_on: (T + 2,), the number of words with more than t letters; its first entry is N, of those that start.
    """

    letters: np.ndarray
    times: np.ndarray
    going_on: np.ndarray

    @classmethod
    def of(cls, words: Sequence[Word]) -> Sample:
        """Return the sample of the words."""
        counts = sorted(Counter(words).items(), key=lambda item: (-len(item[0]), item[0]))
        lengths = np.array([len(word) for word, _ in counts])
        letters = np.full((len(counts), int(lengths[0])), -1)
        for row, (word, _) in zip(letters, counts, strict=True):
            row[: len(word)] = word
        going_on = [len(counts), *((lengths > t).sum() for t in range(int(lengths[0]) + 1))]
        return cls(letters, np.array([float(times) for _, times in counts]), np.array(going_on))


@dataclass(eq=False)
class ProbabilisticAutomaton:
    """Probabilities of starts, of transitions and of stops, which an iteration replaces.

    Args:
        initial, stop: (n,).
        moves: (letters, n, n), from a row's state to a column's; with `stop`, those from a state sum to one.
    """

    initial: np.ndarray
    moves: np.ndarray
    stop: np.ndarray

    @classmethod
    def random(cls, n_states: int, n_letters: int, seed: int = 0) -> ProbabilisticAutomaton:
        """Return uniformly drawn distributions."""
        rng = np.random.default_rng(seed)
        rows = rng.dirichlet(np.ones(n_letters * n_states + 1), n_states)
        moves = rows[:, :-1].reshape(n_states, n_letters, n_states).transpose(1, 0, 2)
        return cls(rng.dirichlet(np.ones(n_states)), np.ascontiguousarray(moves), rows[:, -1])

    @classmethod
    def of_letters(cls, sample: Sample, n_letters: int) -> ProbabilisticAutomaton:
        """Return the model of independent letters, one state, under which a sample is most likely."""
        found = cls.random(1, n_letters)
        found.improve(sample)
        return found

    def forward(self, sample: Sample) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
        """Return the state distributions (words, n) before each letter, the letters' probabilities (words, 1), the sum.

        The third is log₂ of the probability of each word, (N,).
        """
        states, shares = [np.repeat(self.initial[None], len(sample.times), 0)], list[np.ndarray]()
        bits = np.zeros(len(sample.times))
        for t, m in enumerate(sample.going_on[1:-1]):
            after = np.empty((m, len(self.initial)))
            for a, at in by_letter(sample.letters[:m, t]):
                after[at] = states[t][at] @ self.moves[a]
            shares.append(np.maximum(after.sum(1, keepdims=True), _TINY))
            bits[:m] += np.log2(shares[t][:, 0])
            states.append(after / shares[t])
        for t, (m, end) in enumerate(zip(sample.going_on[1:], sample.going_on[:-1], strict=True)):
            bits[m:end] += np.log2(np.maximum(states[t][m:end] @ self.stop, _TINY))
        return states, shares, bits

    def bits(self, sample: Sample) -> float:
        """Return the mean of −log₂ of the probabilities of the words."""
        return float(-(self.forward(sample)[2] @ sample.times) / sample.times.sum())

    def improve(self, sample: Sample) -> None:
        """Replace all probabilities by their shares in the expected counts; no word may have the probability 0."""
        states, shares, _ = self.forward(sample)
        moves, stops, n = np.zeros_like(self.moves), np.zeros_like(self.stop), len(self.stop)
        rest = np.zeros((0, n))  # the probability of the rest of a word by state, over that of the rest
        for t in range(len(states) - 1, -1, -1):
            m, end = sample.going_on[t + 1], sample.going_on[t]
            before = np.empty((end, n))
            last = np.maximum(states[t][m:end] @ self.stop, _TINY)[:, None]
            stops += ((states[t][m:end] * self.stop / last) * sample.times[m:end, None]).sum(0)
            before[m:end] = self.stop / last
            if m:
                rest = rest / shares[t]
                for a, at in by_letter(sample.letters[:m, t]):
                    moves[a] += states[t][at].T @ (rest[at] * sample.times[at, None])
                    before[at] = rest[at] @ self.moves[a].T
            rest = before
        starts = (states[0] * rest * sample.times[:, None]).sum(0)
        moves *= self.moves
        total = np.maximum(moves.sum((0, 2)) + stops, _TINY)
        self.initial, self.moves, self.stop = starts / starts.sum(), moves / total[None, :, None], stops / total

    def soften(self, share: float = 1e-3) -> None:
        """Mix all distributions with uniform ones, since an iteration never changes a probability of 0."""
        n, n_letters = len(self.stop), len(self.moves)
        self.initial = (1 - share) * self.initial + share / n
        self.moves = (1 - share) * self.moves + share / (n * n_letters + 1)
        self.stop = (1 - share) * self.stop + share / (n * n_letters + 1)

    def weighted(self, alphabet: Sequence[Hashable]) -> WeightedAutomaton:
        """Return the weighted automaton of the distribution."""
        return WeightedAutomaton(alphabet, self.initial, self.moves.transpose(0, 2, 1), self.stop)


def by_letter(letters: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Return each letter with its rows."""
    order = np.argsort(letters, kind="stable")
    found, begin = np.unique(letters[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, begin[1:]), strict=True))


def baum_welch(
    words: Sequence[Word], alphabet: Sequence[Hashable], n_states: int, iterations: int = 100, seed: int = 0
) -> WeightedAutomaton:
    """Return the probabilistic automaton after some iterations from a random start, for words of letter numbers.

    Raises `UnsupportedFormat` for no words, letters that are not in the alphabet or a number that is not positive;
    `BudgetExceeded` for more than 2²⁸ states of prefixes.

    >>> w = baum_welch([(0,), (0, 0), ()] * 100, "a", 3)
    >>> [f"{float(w('a' * n)):.3f}" for n in range(4)]
    ['0.333', '0.333', '0.333', '0.000']
    """
    words = checked_words(words, alphabet, n_states=n_states, iterations=iterations)
    sample = Sample.of(words)
    bounded(n_states * int(sample.going_on.sum()), _MAX_STATES_OF_WORDS, f"{n_states} states of each prefix of a word")
    found = ProbabilisticAutomaton.random(n_states, len(alphabet), seed)
    for _ in range(iterations):
        check_current("maximising the likelihood")
        found.improve(sample)
    return found.weighted(alphabet)


def checked_words(words: Sequence[Word], alphabet: Sequence[Hashable], **numbers: int | None) -> list[Word]:
    """Return the words; raise as `estimate` does for no words, unknown letters, and numbers that are not positive."""
    n_letters = len(listed(alphabet, "alphabet"))
    found = [tuple(listed(word, f"word {i}")) for i, word in enumerate(listed(words, "words"))]
    if not found:
        raise UnsupportedFormat("there are no words to learn from")
    for name, value in numbers.items():
        if value is not None:
            check_whole(value, name)
    if wrong := [a for word in found for a in word if not (isinstance(a, int) and 0 <= a < n_letters)]:
        raise UnsupportedFormat(
            f"letter number {shown(wrong[0])}: the {n_letters} letters of the alphabet have numbers from 0"
        )
    return found


def held_out(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Return a fifth of the words, drawn at random, and the others; all of them twice if they are fewer than five."""
    order = np.random.default_rng(0).permutation(len(words))
    n = int(_HELD_OUT * len(words))
    others = [words[i] for i in order[n:]]
    return [words[i] for i in order[: min(n, _MOST)]] or others, others
