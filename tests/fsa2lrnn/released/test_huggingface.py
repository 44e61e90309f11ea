"""Folders and caches of transformers."""

import pytest
import torch

pytest.importorskip("transformers")

from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.released import layer_file
from fsa2lrnn.released.folder import load


def test_a_cache_from_a_state_goes_on_as_the_cache_does(exported):
    model = load(exported("ab_star")[0])
    code = model.code
    _, cache = code.read(model.model, torch.tensor([0, 1, 0]), None)
    again = code.cache(model.model, code.state(model.model, cache))
    for a in (1, 0, 0, 1):
        wanted, cache = code.read(model.model, torch.tensor([a]), cache)
        given, again = code.read(model.model, torch.tensor([a]), again)
        assert given.tolist() == wanted.tolist()
        states = zip(code.state(model.model, again), code.state(model.model, cache), strict=True)
        assert all(torch.equal(x, y) for x, y in states)


def test_another_architecture_is_refused(exported):
    with pytest.raises(CheckpointError, match="a OlmoHybridForCausalLM, where a Mamba2ForCausalLM was written"):
        layer_file("mamba-2").CODE.load(exported("ab_star")[0])
