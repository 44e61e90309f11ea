"""Models of extreme scales: numbers near the ends of a format's range, whose sums, squares or quotients leave it.

A model of `near_ties` has some of its parameters scaled by powers of two up to the largest exponent of its dtype, some
set to nearly equal numbers, and LayerNorm more often. It is verified and run as there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import torch

from fsa2lrnn.nn import LRNN
from verify.soundness import near_ties

_SCALED = 0.4  # the share of parameters whose scale changes
_LEVEL = 0.15  # the share of parameters whose entries become nearly equal, so that means are larger than deviations


@torch.no_grad()
def drawn(seed: int) -> LRNN:
    """Return the model of a seed."""
    rng, plain = np.random.default_rng(seed + 10**6), near_ties.drawn(seed)
    norms = (False, "readout", True)[int(rng.integers(3))]
    torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
    model = LRNN(replace(plain.config, layer_norm=norms)).to(plain.dtype)
    weights = {name: part for name, part in plain.state_dict().items() if not name.startswith("norms")}
    model.load_state_dict(weights, strict=False)
    exponent = np.log2(torch.finfo(plain.dtype).max)
    near = (exponent, exponent / 2, exponent / 4, 0)
    for weight in model.parameters():
        if rng.random() < _LEVEL and weight.numel() > 1:
            weight.copy_(1 + weight * 2.0 ** -float(rng.integers(2, 12)))
        if rng.random() < _SCALED:
            place = float(rng.choice(near)) - float(rng.uniform(-3, 6))
            scale = 2.0 ** min(place if rng.random() < 0.7 else -place, exponent - 1)
            scaled = weight.double() * scale
            weight.copy_(scaled.clamp(-torch.finfo(weight.dtype).max, torch.finfo(weight.dtype).max))
    return model


def examine(seed: int) -> Counter[str]:
    """Verify and run one model; return counts, of which those of "wrong …" must be zero."""
    return near_ties.examine(seed, drawn, "extremes")
