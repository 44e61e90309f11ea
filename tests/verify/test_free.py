"""The free ring obeys the laws of a ring and no others; the tensors over it move entries as torch does."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.lrnn.scans import sequential
from verify import free
from verify.free import Depth, RingTensor, Word

letters = st.builds(Word.letter, st.sampled_from("Avx"), st.integers(0, 3))
elements = st.recursive(letters, lambda e: st.builds(Word.__add__, e, e) | st.builds(Word.__mul__, e, e), max_leaves=4)


@given(elements, elements, elements)
def test_the_laws_of_a_ring(x, y, z):
    assert (x + y) + z == x + (y + z)
    assert x + y == y + x
    assert (x * y) * z == x * (y * z)
    assert x * (y + z) == x * y + x * z
    assert (x + y) * z == x * z + y * z
    assert 0 + x == x + 0 == x
    assert (0 * x).terms == (x * 0).terms == {}


def test_letters_do_not_commute_and_distinct_words_differ():
    A1, A2 = Word.letter("A", 1), Word.letter("A", 2)
    assert A1 * A2 != A2 * A1
    assert repr(A2 * A1 + A1 * A2 + A1 * A2) == "A2A1 + 2A1A2"
    assert hash(A1 + A2) == hash(A2 + A1)


def test_a_depth_counts_multiplications_in_a_row():
    assert Depth(3) * Depth(1) == 4
    assert Depth(3) + Depth(1) == Depth(3) + 0 == 3
    assert (Depth(0) * Depth(0)) * (Depth(0) * Depth(0)) == 2


@given(st.integers(1, 3), st.integers(0, 4), st.integers(1, 3))
def test_integers_in_a_ring_tensor_scan_as_in_torch(b, length, heads):
    generator = np.random.default_rng(b + 10 * length + 100 * heads)
    arrays = [
        generator.integers(-3, 4, shape) for shape in [(2, length, heads, b, b), (2, length, heads, b), (2, heads, b)]
    ]
    exact = sequential(*(RingTensor(array.astype(object)) for array in arrays))
    floating = sequential(*(torch.from_numpy(array).double() for array in arrays))
    assert exact.shape == floating.shape
    assert exact.entries.astype(float).tolist() == floating.tolist()


def test_every_operation_moves_entries_as_torch_does():
    array = np.arange(12).reshape(1, 3, 4)
    ring, tensor = RingTensor(array.astype(object)), torch.from_numpy(array)
    pairs = [
        (ring.reshape(2, 6), tensor.reshape(2, 6)),
        (ring.unsqueeze(1), tensor.unsqueeze(1)),
        (ring.unsqueeze(1).squeeze(1), tensor),
        (ring.expand(5, 3, 4), tensor.expand(5, 3, 4)),
        (ring.unbind(2)[1], tensor.unbind(2)[1]),
        (ring.clone(), tensor),
        (torch.cat([ring, ring], dim=1), torch.cat([tensor, tensor], dim=1)),
        (torch.stack([ring, ring], dim=-1), torch.stack([tensor, tensor], dim=-1)),
        (torch.nn.functional.pad(ring, (0, 1, 2, 0)), torch.nn.functional.pad(tensor, (0, 1, 2, 0))),
    ]
    for given_, wanted in pairs:
        assert given_.entries.tolist() == wanted.tolist()


def test_what_a_ring_cannot_do_is_said():
    ring = free.words_of(2)[1]
    with pytest.raises(TypeError, match=r"exp is not known to RingTensor: add it to verify\.free"):
        torch.exp(ring)
    with pytest.raises(TypeError, match="padding of mode 'constant' with 1: a ring has no constant but 0"):
        torch.nn.functional.pad(ring, (0, 1), value=1)
