"""RWKV-4: by sequences, by steps, in models; what it computes, test_official says."""

import pytest
import torch

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.extra.baselines.rwkv4 import RWKV4Config, RWKV4Layer


@pytest.mark.parametrize("place", [0, 1])
def test_all_ways_agree(sequences, place):
    sequences(RWKV4Config(8, place, 2))


def test_models(model_of):
    model_of(RWKV4Config(8), layer_norm="readout")


def test_a_single_block_starts_like_the_first_of_many():
    one, first = RWKV4Layer(8, RWKV4Config(8)), RWKV4Layer(8, RWKV4Config(8, 0, 5))
    assert torch.equal(one.att.time_decay, first.att.time_decay)
    assert one.att.time_decay.isfinite().all()
    assert RWKV4Config(8).at(2, 3) == RWKV4Config(8, 2, 3)


def test_only_the_first_block_norms_the_embedding():
    assert RWKV4Layer(8, RWKV4Config(8, 0, 2)).ln0 is not None
    assert RWKV4Layer(8, RWKV4Config(8, 1, 2)).ln0 is None


def test_misfits_are_refused():
    with pytest.raises(UnsupportedFormat, match="place = 2: blocks are numbered from 0, and there are 2"):
        RWKV4Config(8, 2, 2)
    with pytest.raises(UnsupportedFormat, match="width = 0: a layer needs at least one channel"):
        RWKV4Config(0)
    with pytest.raises(UnsupportedFormat, match="RWKV4Layer of width 8 reads 4 numbers"):
        RWKV4Layer(4, RWKV4Config(8))
