"""The inputs on which scans are compared can't round, and the counts are those of the definition."""

import pytest
import torch

from fsa2lrnn.lrnn.scans import METHODS, sequential
from verify.propositions.scans import multiplications, pscan_work, signed_permutations


def test_signed_permutations_have_one_sign_a_column_and_row():
    A, v, x0 = signed_permutations(2, 50, 3, 4, torch.Generator().manual_seed(0))
    assert (A.abs().sum(-1) == 1).all()
    assert (A.abs().sum(-2) == 1).all()
    assert {float(a) for a in A.unique()} == {-1.0, 0.0, 1.0}
    assert (v == v.round()).all()
    assert (x0 == x0.round()).all()
    assert sequential(A, v, x0).abs().max() <= 4 * 4 * 51
    assert not torch.equal(A[0, 0] @ A[0, 1], A[0, 1] @ A[0, 0])


@pytest.mark.parametrize("method", METHODS)
def test_they_are_the_same_for_a_seed(method):
    first, second = (signed_permutations(1, 9, 1, 4, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(METHODS[method](*first), METHODS[method](*second))


def test_counted_multiplications():
    assert multiplications(sequential, 5, 2, 3) == 5 * 2 * 9
    assert multiplications(sequential, 0, 2, 3) == 0
    assert pscan_work(0, 2, 3) == 0
    assert pscan_work(1, 1, 4) == 16
    assert [pscan_work(2**k - 1, 1, 1) for k in (1, 2, 3)] == [0 + 1, 1 + 4, 5 + 12]
