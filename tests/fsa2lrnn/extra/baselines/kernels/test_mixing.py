"""The gates behind state-space layers, against what their names say."""

import pytest
import torch
from torch.nn.functional import gelu

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.kernels.mixing import KINDS, Mixing

W = 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_each_kind_is_what_it_says(kind, approximate):
    mixing, y = Mixing(W, kind, approximate), torch.randn(2, 3, W)
    g = gelu(y, approximate=approximate)
    z = mixing.linear(g) if "glu" in kind else None
    wanted = {
        "none": lambda: y,
        "gelu": lambda: g,
        "glu": lambda: z[..., :W] * torch.sigmoid(z[..., W:]),
        "half_glu1": lambda: g * torch.sigmoid(z),
        "half_glu2": lambda: y * torch.sigmoid(z),
    }[kind]()
    torch.testing.assert_close(mixing(y), wanted)
    torch.testing.assert_close(mixing(y[:, 0]), wanted[:, 0])


def test_unknown_kinds_are_refused():
    with pytest.raises(
        UnsupportedFormat, match="mixing 'swish' is not known: choose one of none, gelu, glu, half_glu1"
    ):
        Mixing(W, "swish")
