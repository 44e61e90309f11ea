"""Kernels of a recurrence between matrices do their part alone; what they compute, test_spectral says."""

import torch

from fsa2lrnn.extra.baselines.kernels.spectral_kernels import kernels, scratch

H, P, WORDS, T = 8, 4, 3, 70


def normal(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def flat(*tensors):
    return [each.numpy().reshape(-1) for each in tensors]


def test_nothing_is_written_beyond_a_part():
    rates, B, C, D = 0.3 * normal(2 * P), normal(2 * P, H), normal(H, 2 * P), normal(H)
    u, x0, sizes = normal(WORDS, T, H), normal(WORDS, 2 * P), (T, T, H, P)
    x, y, last = torch.zeros(WORDS, T, 2 * P).double(), torch.zeros_like(u), torch.zeros_like(x0)
    given = (rates, B.T.contiguous(), C.T.contiguous(), D, u, x0, x, y, last)
    kernels(P).forward(*flat(*given), sizes, (1, 2))
    for written in (x, y, last):
        assert [bool(part.any()) for part in written] == [False, True, False]
    room = torch.full((WORDS, scratch(P)), torch.nan).double()
    du, dx0, found = torch.zeros_like(u), torch.zeros_like(x0), torch.zeros(WORDS, 2 * P + H + 4 * P * H).double()
    given = (rates, B, C, D, u, x0, x, torch.ones_like(y), torch.zeros_like(x0), du, dx0, found, room)
    kernels(P).backward(*flat(*given), sizes, (1, 2, 1))
    assert room.isnan().all(1).tolist() == [True, False, True]
    for written in (du, dx0, found):
        assert [bool(part.any()) for part in written] == [False, True, False]
