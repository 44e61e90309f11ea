"""Learn weighted automata from words by linear algebra, from counts of factors (Denis, Gybels & Habrard 2014).

The expected number of occurrences of u·v in a word is the entry (u, v) of a matrix H whose rank is at most the number
of states of the distribution. The sampling error of an entry grows with the square root of the counts of u and of v, so
that the rows and columns of H are first divided by these. From a singular value decomposition of the r largest values,
H ≈ L R with L⁺ and R⁺, and the matrices H_a of the counts of u·a·v, A(a) = (L⁺ H_a R⁺)ᵀ. The probabilities that a word
begins with v give the initial vector, those that it ends with u the final one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.deadline import bounded
from fsa2lrnn.display import Brief
from fsa2lrnn.weighted.baum_welch import ProbabilisticAutomaton, Sample, Word, by_letter, checked_words, held_out
from fsa2lrnn.weighted.weighted_automaton import WeightedAutomaton

_LONGEST = 12  # letters of a factor
_BASES = (100, 400, 1000)  # numbers of factors
_LEAST = 20.0  # bits that a negative probability counts more than that of the letters alone
_TINY = 1e-300
_MAX_COUNTS = 1 << 27  # entries of the matrices H_a
_FURTHER = 2  # times the best number of states so far, up to which more are tried


@dataclass(frozen=True)
class Estimate(Brief):
    """A weighted automaton learned from words.

    Args:
        automaton: it estimates the probability of a word, which may come out negative.
        singular_values: those of the scaled matrix of counts, descending.
        bits: by number of states, the mean of −log₂ of the probabilities of the words that were held out; one that is
            not positive counts as 2⁻²⁰ times that of a model of independent letters.
        basis: the number of factors.
    """

    automaton: WeightedAutomaton
    singular_values: tuple[float, ...]
    bits: dict[int, float]
    basis: int


def estimate(
    words: Sequence[Word], alphabet: Sequence[Hashable], rank: int | None = None, basis: int | None = None
) -> Estimate:
    """Return a weighted automaton that estimates the distribution of a sample of words, as letter numbers.

    Args:
        rank: the number of states.
        basis: the number of factors that name rows and columns: the most frequent ones of at most 12 letters.

    What is not given (of the basis 100, 400 or 1,000) is chosen so that the words of a fifth of the sample, drawn at
    random, are most likely under the estimate from the others.

    Raises `UnsupportedFormat` for no words, letters that are not in the alphabet, or a basis or a rank that is not
    positive; `BudgetExceeded` for more than 2²⁷ counts.

    >>> estimate([(0,), (0, 0), ()] * 100, "a", rank=2).automaton.n_states
    2
    """
    words = checked_words(words, alphabet, rank=rank, basis=basis)
    k, (held, others) = len(alphabet), held_out(words)
    least = ProbabilisticAutomaton.of_letters(Sample.of(others), k).forward(held := Sample.of(held))[2] - _LEAST
    tried = list[tuple[float, int, int, dict[int, float]]]()
    for size in _BASES if basis is None else [basis]:
        if not tried or k * size * size <= _MAX_COUNTS:
            bits = _bits(_parts(others, k, size), held, least, rank)
            best = min(bits, key=lambda r: bits[r])
            tried.append((bits[best], size, best, bits))
    _, size, r, bits = min(tried)
    parts = _parts(words, k, size)
    r = min(r, len(parts.initial))
    A = [each[:r, :r].T for each in parts.moves]
    automaton = WeightedAutomaton(alphabet, parts.initial[:r], A, parts.final[:r])
    return Estimate(automaton, tuple(parts.singular_values.tolist()), bits, size)


@dataclass(frozen=True, eq=False)
class _Parts:
    """An estimate with as many states as H has rows; the first r are the estimate with r.

    Args:
        initial, final: (n,).
        moves: (letters, n, n), as rows times matrices.
    """

    initial: np.ndarray
    moves: np.ndarray
    final: np.ndarray
    singular_values: np.ndarray


def _parts(words: Sequence[Word], k: int, basis: int) -> _Parts:
    """Count factors and decompose their matrix."""
    bounded(k * basis * basis, _MAX_COUNTS, f"counts of {basis:,} factors before and after {k:,} letters")
    sizes = np.array([len(word) for word in words])
    # All words in a row, each followed by −1; the place i is before the letter i.
    letters = np.concatenate([np.array([*word, -1]) for word in words])
    start = np.cumsum(sizes + 1) - sizes - 1
    factors = _factors(letters, k, basis)
    n = len(factors)
    after = _numbers(letters, k, factors)  # by length, the factor that begins at each place, −1 for none of the basis
    before = [np.concatenate([np.full(m, -1), each])[: len(each)] for m, each in enumerate(after)]

    H, moves = np.zeros(n * n), np.zeros(n * k * n)
    for u in before:
        for v in after:
            at = np.flatnonzero((u >= 0) & (v >= 0))
            H += np.bincount(u[at] * n + v[at], minlength=n * n)
            at = np.flatnonzero((u[:-1] >= 0) & (letters[:-1] >= 0) & (v[1:] >= 0))
            moves += np.bincount((u[at] * k + letters[at]) * n + v[at + 1], minlength=n * k * n)
    H, moves = H.reshape(n, n), moves.reshape(n, k, n).transpose(1, 0, 2)
    first = sum(np.bincount(v[start][v[start] >= 0], minlength=n) for v in after)
    last = sum(np.bincount(u[start + sizes][u[start + sizes] >= 0], minlength=n) for u in before)

    # The empty factor is the first: its row and its column are the counts of the factors.
    scale = 1 / np.sqrt(H[0])
    U, D, Vt = np.linalg.svd(scale[:, None] * H * scale)
    kept = max(1, int((1e-9 * D[0] < D).sum()))
    root = np.sqrt(D[:kept])
    left, right = (U[:, :kept] / root).T * scale, (Vt[:kept].T / root.T) * scale[:, None]
    return _Parts(first @ right / len(words), left @ moves @ right, left @ last, D)


def _factors(letters: np.ndarray, k: int, basis: int) -> list[tuple[int, int]]:
    """Return the most frequent factors, the empty one first, as lengths and codes to the base k."""
    found = list[tuple[int, int, int]]()
    for length, codes in enumerate(_codes(letters, k)):
        values, counts = np.unique(codes[codes >= 0], return_counts=True)
        most = np.argsort(-counts, kind="stable")[:basis]
        found += zip((-counts[most]).tolist(), [length] * len(most), values[most].tolist(), strict=True)
    return [(length, code) for _, length, code in sorted(found)[:basis]]


def _codes(letters: np.ndarray, k: int) -> list[np.ndarray]:
    """Return by length the code of the factor that begins at each place, −1 where the word ends earlier."""
    codes = [np.zeros(len(letters), np.int64)]
    longest = min(_LONGEST, int(62 / np.log2(max(k, 2))))  # codes are below 2⁶²
    for length in range(1, longest + 1):
        last = np.concatenate([letters[length - 1 :], np.full(length - 1, -1)])[: len(letters)]
        codes.append(np.where((codes[-1] >= 0) & (last >= 0), codes[-1] * k + last, -1))
    return codes


def _numbers(letters: np.ndarray, k: int, factors: list[tuple[int, int]]) -> list[np.ndarray]:
    """Return by length the number of the factor that begins at each place, −1 for none of those given."""
    numbers = list[np.ndarray]()
    for length, codes in enumerate(_codes(letters, k)):
        own = sorted((code, number) for number, (m, code) in enumerate(factors) if m == length)
        if own:
            known, of = np.array(own).T
            at = np.minimum(np.searchsorted(known, codes), len(known) - 1)
            numbers.append(np.where(known[at] == codes, of[at], -1))
    return numbers


def _bits(parts: _Parts, held: Sample, least: np.ndarray, rank: int | None) -> dict[int, float]:
    """Return by number of states the mean of −log₂ of the probabilities of words, until it no longer falls.

    `least` are the logarithms of the least probabilities that count.
    """
    bits, r = dict[int, float](), min(rank or 1, len(parts.initial))
    while r <= len(parts.initial) and (not bits or r < _FURTHER * min(bits, key=lambda r: bits[r]) + _FURTHER):
        values = _values(parts.initial[:r], parts.moves[:, :r, :r], parts.final[:r], held)
        logarithms = np.maximum(np.log2(np.maximum(values, _TINY)), least)
        bits[r] = float(-(logarithms @ held.times) / held.times.sum())
        if rank is not None:
            break
        r += max(1, r // 8)
    return bits


def _values(initial: np.ndarray, moves: np.ndarray, final: np.ndarray, words: Sample) -> np.ndarray:
    """Return the value of each word."""
    states = np.repeat(initial[None], len(words.times), 0)
    for t, m in enumerate(words.going_on[1:-1]):
        for a, at in by_letter(words.letters[:m, t]):
            states[at] = states[at] @ moves[a]
    return states @ final
