"""The states of a machine that a block separates, as a partition that the inputs of its layer map to itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fsa2lrnn.deadline import NEVER, Deadline

_TRIED = 24  # pairs of classes, nearest first, of which the cheapest is merged
_LEAST_NOISE = 1e-4  # of the variance, below which directions count as equally reliable


def close(labels: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """Return the finest coarser partition in which merged states have merged successors.

    Args:
        labels: int64 (n,), the class of each state, numbered from 0.
        delta: int64 (|S|, n), the successor for each input, −1 where the input never follows the state.

    >>> close(np.array([0, 0, 1, 2]), np.array([[2, 3, 2, 3], [0, -1, -1, 3]])).tolist()
    [0, 0, 1, 1]
    """
    inputs, states = np.nonzero(delta >= 0)
    successors = delta[inputs, states]
    while True:
        n_classes, target = int(labels.max()) + 1, labels[successors]
        _, first, group = np.unique(inputs * n_classes + labels[states], return_index=True, return_inverse=True)
        other = target[first][group.ravel()]
        if (other == target).all():
            return labels
        root = np.arange(n_classes)
        while (root[other] != root[target]).any():
            least = np.minimum(root[other], root[target])
            np.minimum.at(root, root[other], least)
            np.minimum.at(root, root[target], least)
            root = root[root]
        labels = np.unique(root[labels], return_inverse=True)[1].ravel()


def held_partitions(
    x: np.ndarray,
    state: np.ndarray,
    delta: np.ndarray,
    sizes: Sequence[int],
    separation: float,
    deadline: Deadline = NEVER,
) -> list[np.ndarray]:
    """Return partitions into classes of states that a block's vectors separate: int64 (n,), closed under the inputs.

    Classes are merged, together with their successors, until the means of any two are at least `separation` deviations
    apart, and further until at most `sizes[0]`, `sizes[1]` … are left: each time the merger that loses the least
    variance.

    Args:
        x: (N, b), the block's vectors.
        state: int64 (N,), the machine's states; those that never occur, which no input leads to, get class 0.
        delta: as in `close`.
        sizes: the largest numbers of classes, in falling order.
    """
    met, state = np.unique(state, return_inverse=True)
    place = np.full(delta.shape[1] + 1, -1)
    place[met] = np.arange(len(met))
    delta, every = place[delta[:, met]], np.zeros(delta.shape[1], np.int64)
    means = _white_means(x, state, len(met))
    total = float(((means - means.mean(0)) ** 2).sum())
    labels, found = np.arange(len(met)), []
    while (k := int(labels.max()) + 1) > 1 and len(found) < len(sizes):
        deadline.check("repair: looking for the classes that a block carries")
        centres = _centres(means, labels)
        apart = np.linalg.norm(centres[:, None] - centres, axis=-1)
        pairs = np.argwhere(np.triu(np.ones((k, k), bool), 1))
        gaps = apart[tuple(pairs.T)]
        are_apart = gaps.min() >= separation
        if are_apart and k <= sizes[len(found)]:
            found.append(every.copy())
            found[-1][met] = labels
            continue
        if not are_apart:
            pairs = pairs[np.argsort(gaps, kind="stable")[:_TRIED]]
        merged = [close(_merge(labels, *pair), delta) for pair in pairs]
        lost = np.array([((means - _centres(means, labels)[labels]) ** 2).sum() for labels in merged])
        if are_apart:
            # As in graph colouring, first merge classes that exclude the same others: more mergers remain possible.
            excludes = np.zeros((k, k))
            excludes[tuple(pairs.T)] = lost > total / 2
            excludes += excludes.T
            lost = lost - 1e3 * total * ((excludes @ excludes) * (1 - excludes))[tuple(pairs.T)]
        labels = merged[int(lost.argmin())]
    return found


def _merge(labels: np.ndarray, first: int, second: int) -> np.ndarray:
    return np.unique(np.where(labels == second, first, labels), return_inverse=True)[1].ravel()


def _centres(means: np.ndarray, labels: np.ndarray) -> np.ndarray:
    total = np.zeros((int(labels.max()) + 1, means.shape[1]))
    np.add.at(total, labels, means)
    return total / np.bincount(labels)[:, None]


def _white_means(x: np.ndarray, state: np.ndarray, n: int) -> np.ndarray:
    """Return the mean of each state in coordinates where vectors of one state have a variance of 1, (n, b)."""
    counts = np.bincount(state, minlength=n)
    means = np.zeros((n, x.shape[1]))
    np.add.at(means, state, x)
    means /= counts[:, None]
    root = 1 / np.sqrt(counts[state] * n)[:, None]  # every state counts equally
    rest = (x - means[state]) * root
    noise = rest.T @ rest
    floor = max(np.trace(noise + np.cov(means.T).reshape(noise.shape)) / len(noise), 1e-300) * _LEAST_NOISE
    return means @ np.linalg.inv(np.linalg.cholesky(noise + floor * np.eye(len(noise)))).T
