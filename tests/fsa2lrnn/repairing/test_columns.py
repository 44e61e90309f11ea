"""Columns stay within their norm, the image stays exact, and what can't be had is refused."""

import numpy as np
import pytest

from fsa2lrnn.deadline import Deadline
from fsa2lrnn.errors import NotExpressible, OutOfTime
from fsa2lrnn.repairing.columns import clip_columns, column_norm, project
from fsa2lrnn.repairing.observed import BlockObservations
from fsa2lrnn.repairing.probe import Block, ReadoutProbe
from fsa2lrnn.repairing.representation import Representation

SWAP = np.array([[0, 1, 0], [1, 0, 1]])  # letters: stay, swap; the last column is the initial state


def sign(b, size, seed=0):
    """A block of size b that nearly carries the sign of two states, its columns scaled to `size`."""
    rng = np.random.default_rng(seed)
    image = Representation(np.array([[1.0], [-1.0], [1.0]]), np.array([[[1.0]], [[-1.0]]]), np.zeros((2, 1)), SWAP)
    U = rng.standard_normal((1, b))
    U /= np.linalg.norm(U)
    A = image.B * np.einsum("i,j->ij", U[0], U[0]) + 0.05 * rng.standard_normal((2, b, b))
    A -= A.mean(1, keepdims=True)
    A *= size / column_norm(A, 1.2)
    state = np.arange(500) % 2
    x = image.phi[state] @ U + 0.1 * rng.standard_normal((500, b))
    seen = BlockObservations(x, state, np.full(500, 1 / 500))
    return Block(A, np.zeros((2, b)), U[0]), image, ReadoutProbe(U, np.zeros(1)), seen


def test_the_projection_is_exact_and_bounded_and_keeps_sums_of_zero():
    block, image, probe, seen = sign(6, 1.0)
    A, moved = project(block, image, probe, seen, 1.2)
    assert np.abs(moved.U @ A - image.B @ moved.U).max() < 1e-13
    assert column_norm(A, 1.2) <= 1
    assert column_norm(A.astype(np.float32), 1.2) <= 1
    assert np.abs(A.sum(1)).max() < 1e-13
    assert np.linalg.norm(moved.U - probe.U) < 0.3


def test_sums_that_are_not_zero_are_left_free():
    block, image, probe, seen = sign(6, 1.0)
    A, moved = project(Block(block.A + 0.01, block.v, block.x0), image, probe, seen, 1.2)
    assert np.abs(A.sum(1)).max() > 1e-3
    assert np.abs(moved.U @ A - image.B @ moved.U).max() < 1e-13


def test_a_block_of_one_has_no_room():
    block, image, probe, seen = sign(2, 1.0)
    tight = BlockObservations(seen.x[:, :1], seen.state, seen.weights)
    with pytest.raises(NotExpressible, match=r"the least norm is 1\.0000"):
        project(Block(0.9 * image.B, block.v[:, :1], block.x0[:1]), image, ReadoutProbe(np.eye(1), probe.c), tight, 1.2)


def test_clipping_scales_long_columns_alone():
    A = np.array([[[3.0, 0.1], [0.0, 0.2]]])
    clipped = clip_columns(A, 1.2)
    assert np.allclose(clipped, [[[1.0, 0.1], [0.0, 0.2]]], atol=1e-4)
    assert column_norm(clipped, 1.2) <= 1


def test_a_deadline_ends_the_programs():
    with pytest.raises(OutOfTime, match="repair: bounding columns"):
        project(*sign(6, 1.0), 1.2, Deadline(0.0))
