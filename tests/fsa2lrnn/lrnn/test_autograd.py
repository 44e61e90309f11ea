"""Gradients without gradients of their own."""

import pytest
import torch
from torch.autograd import Function

from fsa2lrnn.lrnn.compiled import typed_once_differentiable


class Product(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    @typed_once_differentiable
    def backward(ctx, dz):
        x, y = ctx.saved_tensors
        return y * dz, x * dz if ctx.needs_input_grad[1] else None


def test_gradients_are_those_of_the_method_and_none_may_be_missing():
    x, y = torch.tensor(3.0, requires_grad=True), torch.tensor(5.0)
    assert torch.autograd.grad(Product.apply(x, y), x)[0].item() == 5
    y.requires_grad_()
    assert [gradient.item() for gradient in torch.autograd.grad(Product.apply(x, y), (x, y))] == [5, 3]


def test_a_second_derivative_is_refused_not_wrong():
    x = torch.tensor(3.0, requires_grad=True)
    (slope,) = torch.autograd.grad(Product.apply(x, x).square(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.backward()
