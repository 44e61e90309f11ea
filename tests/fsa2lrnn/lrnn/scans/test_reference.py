"""The reference against the definition, in exact integers."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from fsa2lrnn.lrnn.scans.reference import sequential


@given(st.integers(0, 2), st.integers(0, 6), st.integers(1, 2), st.integers(1, 3), st.integers(0, 99))
def test_it_is_the_recurrence_word_by_word_and_head_by_head(batch, length, heads, b, seed):
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 3, (batch, length, heads, b, b))
    v, x0 = rng.integers(-2, 3, (batch, length, heads, b)), rng.integers(-2, 3, (batch, heads, b))
    computed = sequential(*(torch.from_numpy(part).double() for part in (A, v, x0)))
    assert computed.shape == (batch, length, heads, b)
    for i in range(batch):
        for h in range(heads):
            x = x0[i, h]
            for k in range(length):
                x = A[i, k, h] @ x + v[i, k, h]
                assert computed[i, k, h].tolist() == x.tolist()
