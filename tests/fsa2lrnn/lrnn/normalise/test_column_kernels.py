"""The compiled column rules on flat arrays: a part is done, and the rest left alone."""

import numpy as np
import pytest
import torch

from fsa2lrnn.lrnn.normalise import reference
from fsa2lrnn.lrnn.normalise.column_kernels import _powers, kernels


@pytest.mark.parametrize("rule", ["clip", "released"])
def test_a_part_is_done_and_the_rest_left_alone(rule):
    b, n = 3, 5
    A = torch.randn(n, b, b, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    wanted = reference(A, rule, 1.2)
    (dA,) = torch.autograd.grad(wanted.sum(), A)
    run, powers = kernels(rule, b), _powers(1.2, b, torch.float64).numpy()
    y, norms, found = np.full((n, b, b), 77.0), np.full((n, b), 77.0), np.full((n, b, b), 77.0)
    run.forward(A.detach().numpy().ravel(), powers, y.ravel(), norms.ravel(), (1, 4))
    run.backward(y.ravel(), norms.ravel(), np.ones(n * b * b), powers, found.ravel(), (2, 4))
    np.testing.assert_allclose(y[1:4], wanted.detach()[1:4], rtol=1e-13)
    np.testing.assert_allclose(found[2:4], dA[2:4], rtol=1e-11, atol=1e-14)
    for array, done in ((y, [1, 2, 3]), (norms, [1, 2, 3]), (found, [2, 3])):
        assert (np.delete(array, done, axis=0) == 77).all()
        assert (array[done] != 77).all()
