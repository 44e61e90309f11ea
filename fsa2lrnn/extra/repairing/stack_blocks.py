"""Exact blocks near the learned ones, for the repair of several layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fsa2lrnn.errors import NotExpressible
from fsa2lrnn.extra.repairing.dyadic import PLACES, DeadbeatBlock, ridge, round_near
from fsa2lrnn.extra.repairing.probe import Block, ReadoutProbe
from fsa2lrnn.extra.repairing.representation import Representation
from fsa2lrnn.extra.repairing.stack_observed import LayerInputs, means_of

DETAILS = ("input and class before", "input and class after", "class after")
"""The arguments on which a block's state may depend, from the most to the least detailed."""
UNIT = 2.0**-6
"""The grid on which the embedding, and the states of blocks without classes, are rounded."""
_AMPLITUDE = 0.3  # of classes that a block does not write itself, relative to the largest that it does


def forgetting_block(x: np.ndarray, inputs: LayerInputs, x0: np.ndarray, detail: str) -> Block:
    """Return a block without classes: its state depends on the last input only, or is constant."""
    means = means_of(x, inputs.numbers, np.zeros_like(inputs.numbers), (len(inputs.delta), 1))[:, 0]
    if detail == DETAILS[-1]:
        means[:] = x.mean(0)
    v, start = (np.round(part / UNIT) * UNIT for part in (means, x0))
    return Block(np.zeros((*v.shape, len(x0))), v, start)


class MovedBlock(NamedTuple):
    """An exact block, and how far its states are from the learned ones, relative to their deviation."""

    block: Block
    moved: float


@dataclass(frozen=True)
class BlockBounds:
    """The limits of exact blocks: the number of binary digits, and how far states may move (`MovedBlock.moved`)."""

    digits: int
    tolerance: float


def deadbeat_block(
    x: np.ndarray,
    at: np.ndarray,
    labels: np.ndarray,
    initial: int,
    inputs: LayerInputs,
    x0: np.ndarray,
    detail: str,
    bounds: BlockBounds,
) -> MovedBlock | None:
    """Return a dead-beat block that stores classes of states without rounding, or None if none is within `bounds`.

    Args:
        x: the learned vectors at the observed positions, (N, b); x0: the initial one, (b,).
        at: the machine's state at each position, before or after its letter as `detail` says, (N,).
        labels: the class of each state; `initial` that of the initial one.
        inputs: the inputs of the layer.
        detail: one of `DETAILS`.
    """
    k = int(labels.max()) + 1
    delta = np.tile(np.arange(k), (len(inputs.delta), 1))  # of classes; where an input never follows one, any
    is_met = np.zeros(delta.shape, bool)
    number, source = np.nonzero(inputs.delta >= 0)
    delta[number, labels[source]] = labels[inputs.delta[number, source]]
    is_met[number, labels[source]] = True
    X = means_of(x, inputs.numbers, labels[at], delta.shape)
    if detail != DETAILS[0]:
        X = np.take_along_axis(X, delta[:, :, None], axis=1)
    if detail == DETAILS[-1]:
        X = _centres(X[is_met], delta[is_met], k)[delta]
    if len(x0) == 1:
        return MovedBlock(_channel(X[is_met, 0], delta, delta[is_met], initial), 0.0)
    X, codes = _widen(X, delta, is_met), np.eye(k)[:, :-1]
    along, classes = np.vstack([X[is_met], x0]), np.append(delta[is_met], initial)
    probe = _probe(along, classes, codes)
    codes, probe = _in_scale(codes, probe)
    u = codes[delta[:, -1]]
    B = ((codes[delta[:, :-1]] - u[:, None]) / codes.max()).swapaxes(1, 2)
    image = Representation(np.vstack([codes, codes[initial]]), B, u, np.column_stack([delta, delta[:, initial]]))
    W = ((X[:, :-1] - X[:, -1:]) / codes.max()).swapaxes(1, 2)
    beat = DeadbeatBlock(W, X[:, -1], x0, probe)
    deviation = np.linalg.norm(X[is_met] - X[is_met].mean(0))
    best, least = None, bounds.tolerance
    for places in PLACES:
        try:
            rounded = round_near(beat, image, places)
        except NotExpressible:
            continue
        moved = float(np.linalg.norm((rounded.beat.states(image)[:, :-1] - X)[is_met]) / deviation)
        if rounded.bits <= bounds.digits and moved < least:
            best, least = MovedBlock(rounded.block, moved), moved
    return best


def _probe(x: np.ndarray, classes: np.ndarray, codes: np.ndarray) -> ReadoutProbe:
    """Return U x + c that gives the code of each class at the mean of its vectors and varies least within classes."""
    read = ridge(x, codes[classes])
    centres = _centres(x, classes, len(codes))
    wide = np.hstack([centres @ read[:-1] + read[-1], np.ones((len(codes), 1))])  # (k, k), shrunken codes
    straight = np.linalg.lstsq(wide, codes, rcond=1e-6)[0]
    return ReadoutProbe((read[:-1] @ straight[:-1]).T, read[-1] @ straight[:-1] + straight[-1])


def _in_scale(codes: np.ndarray, probe: ReadoutProbe) -> tuple[np.ndarray, ReadoutProbe]:
    """Return the codes times a power of two that makes the entries of U about 1, and the probe for these codes."""
    unit = 2.0 ** -np.round(np.log2(np.abs(probe.U).max()))
    return codes * unit, ReadoutProbe(probe.U * unit, probe.c * unit)


def _centres(x: np.ndarray, classes: np.ndarray, k: int) -> np.ndarray:
    """Return the mean of each class, of all where a class has no vector: (k, b)."""
    return np.stack([x[classes == c].mean(0) if (classes == c).any() else x.mean(0) for c in range(k)])


def _channel(x: np.ndarray, delta: np.ndarray, targets: np.ndarray, initial: int) -> Block:
    """Return a block of size 1 with one number for each of two classes, a power of two apart."""
    low, high = _centres(x[:, None], targets, 2)[:, 0]
    apart = np.copysign(2.0 ** np.round(np.log2(max(abs(high - low), UNIT))), high - low)
    values = np.round(low / UNIT) * UNIT + np.array([0.0, apart])
    A = (delta[:, 1] - delta[:, 0]).astype(np.float64)
    return Block(A[:, None, None], (values[delta[:, 0]] - A * values[0])[:, None], values[[initial]])


def _widen(X: np.ndarray, delta: np.ndarray, is_met: np.ndarray) -> np.ndarray:
    """Return vectors with affinely independent class means; missing directions are added where vectors vary least."""
    k, met, targets = X.shape[1], X[is_met], delta[is_met]
    centres = _centres(met, targets, k)
    left, sizes, right = np.linalg.svd(centres - centres.mean(0))
    strong = int((sizes[: k - 1] > _AMPLITUDE * max(sizes[0], UNIT)).sum())
    lacking = np.linalg.qr(np.column_stack([np.ones(k), left[:, :strong], np.eye(k)]))[0][:, 1 + strong : k]
    unread = right[strong:].T
    quiet = np.linalg.eigh(np.cov((met @ unread).T).reshape(unread.shape[1], -1))[1][:, : k - 1 - strong]
    return X + max(sizes[0], UNIT) * _AMPLITUDE * lacking[delta] @ (unread @ quiet).T
