import pytest
import torch

from fsa2lrnn.lrnn.normalise import METHODS, normalise, one_hot_columns, one_hot_rows


def test_columns_are_one_hot_at_the_first_of_the_largest():
    A = torch.tensor([[1.0, 3.0, 0.0], [1.0, 2.0, 5.0], [0.0, 3.0, -1.0]])
    assert one_hot_columns(A).tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert one_hot_rows(A).tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize("odd", [torch.nan, torch.inf, -torch.inf])
def test_the_value_is_one_hot_whatever_the_entries(odd):
    A = torch.tensor([[0.0, odd], [1.0, odd]], requires_grad=True)
    assert one_hot_columns(A).sum(0).tolist() == [1, 1]


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_the_rule_is_one_whatever_the_method(method):
    A = torch.randn(3, 4, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(normalise(A, "onehot", 1.2, method), one_hot_columns(A))


@pytest.mark.parametrize("dim", [-2, -1])
def test_the_gradient_is_that_of_the_softmax(dim):
    A = torch.randn(3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weights = torch.randn(3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    hard = (one_hot_columns if dim == -2 else one_hot_rows)(A, 0.4)
    (found,) = torch.autograd.grad((hard * weights).sum(), A)
    (wanted,) = torch.autograd.grad(((A / 0.4).softmax(dim) * weights).sum(), A)
    torch.testing.assert_close(found, wanted, rtol=1e-14, atol=1e-14)
    assert not torch.equal(hard, (A / 0.4).softmax(dim))


def test_one_hot_columns_stay():
    A = torch.eye(4)[torch.tensor([[2, 0, 0, 1], [3, 3, 3, 3]])].mT
    assert torch.equal(normalise(A, "onehot", 1.2), A)
