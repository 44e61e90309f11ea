"""Configurations: every bad value is named, every good one survives JSON."""

import json
from dataclasses import replace

import pytest

from fsa2lrnn.errors import UnsupportedFormat
from fsa2lrnn.lrnn import BlockLayerConfig, IndexLayerConfig, LRNNConfig

LAYER = BlockLayerConfig((8, 8), 16, 16)
GOOD = {"alphabet": ("a", "b"), "outputs": (False, True), "layers": (LAYER,), "embedding_dim": 16}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alphabet": ()}, "must each have at least one entry"),
        ({"layers": ()}, "must each have at least one entry"),
        ({"outputs": (1, 1)}, r"outputs = \(1, 1\): the entries must be distinct"),
        ({"embedding_dim": 0}, "embedding_dim = 0"),
        ({"normalisation": "batch"}, "normalisation 'batch' is not known: one of clip, released, none"),
        ({"p": 0.5}, r"p = 0.5: a column norm needs a finite p of at least 1"),
        ({"p": float("inf")}, "p = inf"),
        ({"p": float("nan")}, "p = nan"),
        ({"connection": "skip"}, "connection 'skip' is not known: one of chain, residual, full-residual, concat"),
        (
            {"connection": "residual", "layers": (BlockLayerConfig((3,), 4, 4), LAYER)},
            "layer 0 is 3 wide and the residual stream 16",
        ),
        ({"layers": (IndexLayerConfig(3, 2), LAYER)}, "must be the only layer"),
        ({"layers": (IndexLayerConfig(3, 2),), "token_shift": True}, "an index layer takes no token_shift"),
        ({"layers": (IndexLayerConfig(3, 2),), "connection": "concat"}, "and no connection but chain"),
        (
            {"normalisation": "released", "layers": (BlockLayerConfig((2, 3), 4, 4),)},
            r"block_sizes = \(2, 3\): the released rule takes blocks of one size",
        ),
    ],
)
def test_a_bad_value_is_named(change, message):
    with pytest.raises(UnsupportedFormat, match=message):
        LRNNConfig(**{**GOOD, **change})
    for sizes in ((), (0,), (3, -1)):
        with pytest.raises(UnsupportedFormat, match="give at least one block, each of size 1 or more"):
            BlockLayerConfig(sizes, 1, 1)
    with pytest.raises(UnsupportedFormat, match="value_hidden = 0"):
        BlockLayerConfig((2,), 1, 0)


@pytest.mark.parametrize(
    "config",
    [
        LRNNConfig(**GOOD),
        LRNNConfig(**{**GOOD, "connection": "residual", "layers": (LAYER, LAYER), "layer_norm": True}),
        LRNNConfig(**{**GOOD, "connection": "concat", "layers": (LAYER, LAYER), "token_shift": True}),
        LRNNConfig((0, ("x", None)), (1.5, frozenset({"y"})), (IndexLayerConfig(100, 7),)),
    ],
)
def test_json_round_trip(config):
    assert LRNNConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_the_widest_step_counts_gates_and_streams_too():
    """Memory is planned by it: lanes have few entries in A and may yet have wide gates."""
    lanes = BlockLayerConfig((1, 1), 3, 3)
    config = LRNNConfig("ab", (0, 1), (lanes, lanes), embedding_dim=5, readout_hidden=2, connection="concat")
    assert config.stream_widths == [5, 7, 4]
    assert config.entries_per_token == 7
    assert replace(config, token_shift=True).entries_per_token == 14
    assert replace(config, layers=(BlockLayerConfig((1, 1), 3, 30), lanes)).entries_per_token == 30
    assert replace(config, layers=(BlockLayerConfig((4, 1), 3, 3), lanes)).entries_per_token == 32
    assert replace(config, readout_hidden=50).entries_per_token == 50
