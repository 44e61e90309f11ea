"""Results with the gradients of a sum in which each number counts otherwise."""

import torch


def with_gradients(results, leaves):
    """The results, and the gradients of the leaves that are no None."""
    generator = torch.Generator().manual_seed(2)
    total = sum((x * torch.randn(x.shape, dtype=torch.float64, generator=generator)).sum() for x in results)
    leaves = [x for x in leaves if x is not None]
    return [*results, *torch.autograd.grad(total, leaves, materialize_grads=True, allow_unused=True)]


def assert_all_close(results, expected, rtol, atol):
    for one, other in zip(results, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=rtol, atol=atol)
