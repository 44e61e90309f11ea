"""Folders and states of the package xlstm; what is said where it is not installed."""

import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from fsa2lrnn import zoo
from fsa2lrnn.errors import CheckpointError, MissingPackage
from fsa2lrnn.extra.huggingface import slstm
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.optional import is_installed

has_it = pytest.mark.skipif(not is_installed("xlstm"), reason="xlstm is not installed")


def test_what_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "xlstm", None)
    with pytest.raises(MissingPackage, match=r"slstm needs xlstm, .* pip install --no-deps xlstm==2\.0\.6"):
        slstm.build(slstm.plan(zoo.parity()), torch.float32)


@has_it
def test_a_cache_from_a_state_goes_on_as_the_cache_does(exported):
    model = load(exported("ab_star", "slstm")[0])
    code = model.code
    _, cache = code.read(model.model, torch.tensor([0, 1, 0]), None)
    again = code.cache(model.model, code.state(model.model, cache))
    for a in (1, 0, 0, 1):
        wanted, cache = code.read(model.model, torch.tensor([a]), cache)
        given, again = code.read(model.model, torch.tensor([a]), again)
        assert given.tolist() == wanted.tolist()
        assert torch.equal(code.state(model.model, again)[0], code.state(model.model, cache)[0])


@has_it
def test_a_call_changes_no_cache_that_it_was_given(exported):
    model = load(exported("parity", "slstm")[0])
    _, cache = model.code.read(model.model, torch.tensor([1]), None)
    before = model.code.state(model.model, cache)[0].clone()
    model.code.read(model.model, torch.tensor([1, 0]), cache)
    assert torch.equal(model.code.state(model.model, cache)[0], before)


@has_it
def test_other_weights_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="missing, damaged or no safetensors file"):
        slstm.CODE.load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no such file")
    with pytest.raises(CheckpointError, match="missing, damaged or no safetensors file"):
        slstm.CODE.load(tmp_path)
    save_file({"weight": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="holds no model of slstm"):
        slstm.CODE.load(tmp_path)


@has_it
def test_a_width_that_the_other_weights_do_not_have_makes_nothing(exported, tmp_path):
    weights = load_file(exported("parity", "slstm")[0] / "model.safetensors")
    wide = {**weights, "token_embedding.weight": torch.zeros(4, 10**5)}  # R would be 160 GB
    save_file(wide, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="are not as a xLSTMLMModel of these sizes has them"):
        slstm.CODE.load(tmp_path)
