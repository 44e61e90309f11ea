"""Learn weighted automata from words by linear algebra (Balle, Carreras, Luque & Quattoni 2014).

The matrix H of the probabilities of prefix · suffix has the rank of the distribution. From a singular value
decomposition H ≈ U D Vᵀ, and the matrices H_a of the probabilities of prefix · a · suffix, A(a) = ((H V)⁺ H_a V)ᵀ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from fsa2lrnn.display import Brief
from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.weighted.weighted_automaton import WeightedAutomaton

Word = tuple[int, ...]


@dataclass(frozen=True)
class Estimate(Brief):
    """A weighted automaton learned from words.

    Args:
        automaton: it estimates the probability of a word, which may come out negative.
        singular_values: those of H, descending.
        noise: the Frobenius norm that the sampling error of H is expected to have.
    """

    automaton: WeightedAutomaton
    singular_values: tuple[float, ...]
    noise: float


def estimate(
    words: Sequence[Word], alphabet: Sequence[Hashable], basis: int = 100, rank: int | None = None
) -> Estimate:
    """Return a weighted automaton that estimates the distribution of a sample of words, as letter numbers.

    Args:
        basis: the number of prefixes and of suffixes: the empty word and the most frequent ones of the sample.
        rank: the number of states; by default that of the singular values above the expected norm of the sampling
            error, which is the square root of the sum of h (1 − h) / N over the entries h of H, at least 1.

    Raises `UnsupportedFormat` for no words, or a basis or a rank that is not positive.

    >>> estimate([(0,), (0, 0), ()] * 100, "a", rank=2).automaton.n_states
    2
    """
    if not words or basis < 1 or (rank is not None and rank < 1):
        raise UnsupportedFormat(f"{len(words)} words, basis = {basis}, rank = {rank}: each must be at least 1")
    prefixes = _frequent((word[:k] for word in words for k in range(len(word) + 1)), basis)
    suffixes = _frequent((word[k:] for word in words for k in range(len(word) + 1)), basis)
    count = Counter(words)

    def hankel(*middle: int) -> np.ndarray:
        return np.array([[count[p + middle + s] for s in suffixes] for p in prefixes]) / len(words)

    H = hankel()
    U, D, Vt = np.linalg.svd(H, full_matrices=False)
    noise = float(np.sqrt((H * (1 - H)).sum() / len(words)))
    r = min(max(1, int((noise < D).sum())) if rank is None else rank, len(D))
    V = Vt[:r].T
    inverse = U[:, :r].T / np.maximum(D[:r, None], 1e-300)  # (H V)⁺, since H V = U D
    A = [(inverse @ hankel(a) @ V).T for a in range(len(alphabet))]
    empty_prefix, empty_suffix = prefixes.index(()), suffixes.index(())
    w = WeightedAutomaton(alphabet, V.T @ H[empty_prefix], A, inverse @ H[:, empty_suffix])
    return Estimate(w, tuple(D.tolist()), noise)


def _frequent(parts: object, size: int) -> list[Word]:
    """Return the empty word and the most frequent others, short ones first among equals."""
    counts = Counter[Word](parts)  # type: ignore[arg-type]
    del counts[()]
    return [(), *sorted(counts, key=lambda part: (-counts[part], len(part), part))[: size - 1]]
