"""The room that kernels of gates are given holds all that they write there; what they compute, test_mixing says."""

import pytest
import torch

from fsa2lrnn.extra.baselines.kernels.mixing_kernels import BESIDE, OWN, kernels, scratch

H, ROWS = 4, 70


@pytest.mark.parametrize("gated", [BESIDE, OWN])
def test_nothing_is_written_beyond_a_part_of_the_room(gated):
    G = 2 * H if gated == BESIDE else H
    y, W, b, dout = (torch.randn(n, dtype=torch.float64).numpy() for n in (ROWS * H, G * H, 2 * H, ROWS * H))
    room = torch.full((3, scratch(H)), torch.nan, dtype=torch.float64).numpy()
    dy, dW, db = (torch.zeros(n, dtype=torch.float64).numpy() for n in (ROWS * H, 3 * G * H, 3 * 2 * H))
    kept, part = torch.full((ROWS * G,), torch.nan, dtype=torch.float64).numpy(), (0, ROWS, 1)
    for keeps in (False, True):
        kernels(H).forward(y, W, b, dy, kept, keeps, room.reshape(-1), gated, False, H, part)
        assert torch.tensor(kept).isfinite().tolist() == [keeps] * (ROWS * G)
    kernels(H).backward(y, W, kept, b, dout, dy, dW, db, room.reshape(-1), gated, False, H, part)
    assert torch.tensor(room).isnan().all(1).tolist() == [True, False, True]
    assert not dW[: G * H].any()
    assert dW[G * H : 2 * G * H].all()
    assert not dW[2 * G * H :].any()
