"""Letters that act alike, by a statistical test on labelled words.

Two letters act alike if exchanging one occurrence of them never changes a label. Then, in words drawn uniformly by
label and length, each of them is as frequent as the other in every context: alone, first, last, next to a letter, and
before or after it. A context is tested by z = (n_a − n_b) / √(n_a + n_b) for each label, and the two most similar
classes are united as long as all |z| stay below a bound.
"""

from __future__ import annotations

import numpy as np
from numba import njit

STRICT = 4.5  # the largest |z| of two letters that count as alike


def letter_classes(
    tokens: np.ndarray, lengths: np.ndarray, labels: np.ndarray, n_letters: int, strict: float = STRICT
) -> np.ndarray:
    """Return the class of each letter, int64 (|Σ|,), numbered from 0 by their first letters.

    Args:
        tokens: int64 (N, T), padded.
        lengths, labels: the length and the label, 0 or 1, of each word, (N,).
    """
    counts = _contexts(tokens, lengths, labels.astype(np.int64), n_letters)
    members = [[a] for a in range(n_letters)]
    while len(members) > 1:
        z = _distances(counts, members)
        i, j = np.unravel_index(np.argmin(z), z.shape)
        if z[i, j] > strict:
            break
        members[int(i)] += members.pop(int(j))  # i < j: the entries on and below the diagonal are infinite
    classes = np.empty(n_letters, np.int64)
    for number, letters in enumerate(sorted(members, key=min)):
        classes[letters] = number
    return classes


def _distances(counts: np.ndarray, members: list[list[int]]) -> np.ndarray:
    """Return the largest |z| over all contexts for each pair of classes, infinite on and below the diagonal."""
    means = np.stack([counts[letters].mean(0) for letters in members])
    sizes = np.array([len(letters) for letters in members], float)
    z = np.full((len(members), len(members)), np.inf)
    for i in range(len(members) - 1):
        # n_a is Poisson about its expectation: the variance of a class's mean is its mean over its size.
        pooled = (sizes[i] * means[i] + sizes[i + 1 :, None] * means[i + 1 :]) / (sizes[i] + sizes[i + 1 :, None])
        variance = pooled * (1 / sizes[i] + 1 / sizes[i + 1 :, None])
        difference = np.abs(means[i] - means[i + 1 :])
        z[i, i + 1 :] = (difference / np.sqrt(np.maximum(variance, 1e-9))).max(1)
    return z


@njit(cache=True)
def _contexts(tokens, lengths, labels, n_letters):
    """Return how often each letter occurs in each context, float64 (|Σ|, contexts): 2 labels × (3 + 4 |Σ|)."""
    width = 3 + 4 * n_letters
    counts = np.zeros((n_letters, 2 * width))
    last_before = np.full(n_letters, -1)  # word in which a letter last came
    pairs = np.full((n_letters, n_letters), -1)
    for i in range(len(tokens)):
        shift = width * labels[i]
        for k in range(lengths[i]):
            a = tokens[i, k]
            counts[a, shift] += 1
            if k == 0:
                counts[a, shift + 1] += 1
            else:
                before = tokens[i, k - 1]
                counts[before, shift + 3 + a] += 1
                counts[a, shift + 3 + n_letters + before] += 1
            if k == lengths[i] - 1:
                counts[a, shift + 2] += 1
            # Words in which c comes somewhere before a.
            for c in range(n_letters):
                if last_before[c] == i and pairs[c, a] != i:
                    pairs[c, a] = i
                    counts[c, shift + 3 + 2 * n_letters + a] += 1
                    counts[a, shift + 3 + 3 * n_letters + c] += 1
            last_before[a] = i
    return counts
