"""Folders and caches of transformers."""

import pytest
import torch

pytest.importorskip("transformers")

from fsa2lrnn.errors import CheckpointError, UnsupportedFormat
from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.extra.huggingface.proof import prove


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
    with pytest.raises(
        CheckpointError, match="loads as a OlmoHybridForCausalLM, where a Mamba2ForCausalLM was written"
    ):
        layer_file("mamba-2").CODE.load(exported("ab_star")[0])


@pytest.mark.parametrize("rope", [{"rope_type": "linear", "factor": 1e-38}, {"rope_type": "longrope"}])
def test_angles_that_need_not_be_finite_are_no_proof(exported, rope):
    model = load(exported("parity")[0])
    rotary = model.model.model.rotary_emb
    rotary.rope_type = rope["rope_type"]
    rotary.inv_freq /= rope.get("factor", 1)
    with pytest.raises(UnsupportedFormat, match=f"rotary frequencies of type '{rope['rope_type']}', up to "):
        prove(model)
    rotary.rope_type = "default"
    if "factor" in rope:
        with pytest.raises(UnsupportedFormat, match=r"rotary frequencies of type 'default', up to 1e\+38"):
            prove(model)


@pytest.mark.parametrize("layer", ["olmo-hybrid", "qwen3-next"])
def test_no_output_depends_on_the_position(exported, layer):
    """Up to the largest number of int64, beyond `max_position_embeddings` too."""
    model = load(exported("flip_flop", layer)[0])
    assert "at every position" in model.code.describe(model.model)
    word = torch.tensor([[0, 1, 2, 0, 1, 0]])
    with torch.no_grad():
        wanted = model.model(input_ids=word).logits
        for first in (1, 2**20 - 3, 2**24, 2**40, 2**63 - 6):
            positions = (first + torch.arange(6))[None]
            assert torch.equal(model.model(input_ids=word, position_ids=positions).logits, wanted)


def test_layers_without_positions_say_nothing_of_them(exported):
    model = load(exported("flip_flop", "mamba-2")[0])
    assert "position" not in model.code.describe(model.model)
