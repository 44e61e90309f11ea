"""PD-SSM as its own file runs it, where that is on the path; what is said where it is not."""

import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fsa2lrnn import zoo
from fsa2lrnn.errors import CheckpointError, MissingPackage, UnsupportedFormat
from fsa2lrnn.extra.huggingface import layer_file
from fsa2lrnn.extra.huggingface.folder import load
from fsa2lrnn.extra.huggingface.pd_ssm import dual
from fsa2lrnn.extra.huggingface.proof import prove
from fsa2lrnn.optional import is_installed
from fsa2lrnn.verdicts import Proved

has_it = pytest.mark.skipif(
    not (is_installed("pdssm") and is_installed("einops")), reason="pdssm.py is not on the path"
)
MACHINES = ("parity", "flip_flop", "ab_star", "sum_mod(5)", "mod_arith(2)")


def test_what_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "einops", sys)  # which is not looked into here
    monkeypatch.setitem(sys.modules, "pdssm", None)
    with pytest.raises(MissingPackage, match=r"git clone https://github.com/IBM/expressive-sparse-state-space-model"):
        layer_file("pd-ssm").build(dual(zoo.parity()), torch.float32)


def test_einops(monkeypatch):
    monkeypatch.setitem(sys.modules, "einops", None)
    with pytest.raises(MissingPackage, match="pd-ssm needs einops, which is not installed: pip install einops"):
        layer_file("pd-ssm").build(dual(zoo.parity()), torch.float32)


def test_complex_numbers_come_in_one_precision():
    with pytest.raises(UnsupportedFormat, match="pd-ssm computes in complex64"):
        layer_file("pd-ssm").build(dual(zoo.parity()), torch.bfloat16)


@has_it
@pytest.mark.parametrize("task", MACHINES)
def test_whole_words_and_pieces_agree_with_the_machine(exported, agrees, task):
    folder, written = exported(task, "pd-ssm")
    assert written.verdict.pairs == 1 + written.plan.machine.n_states
    model = load(folder)
    word = np.random.default_rng(0).integers(len(model.machine.alphabet), size=300).tolist()
    for chunk in (1, 7, 300):
        assert agrees(model, word, chunk)


@has_it
@pytest.mark.parametrize("part", ["A_dict", "B_re", "readout.weight"])
def test_a_changed_weight_is_noticed(exported, part):
    model = load(exported("sum_mod(5)", "pd-ssm")[0])
    with torch.no_grad():
        weight = model.model.blocks[0].get_parameter(part)
        weight[3] = weight[4].clone()
    try:
        assert not isinstance(prove(model), Proved)
    except UnsupportedFormat as fault:
        assert "does not come back" in str(fault)  # noqa: PT017 - one of two answers


@has_it
def test_letters_past_that_are_read_are_refused(exported):
    model = load(exported("sum_mod(5)", "pd-ssm")[0])
    with torch.no_grad():
        model.model.blocks[0].readout.weight[0, -2] = 1
    with pytest.raises(UnsupportedFormat, match="more is read of letters past"):
        prove(model)


@has_it
def test_letters_past_that_only_a_mixture_of_the_dictionary_reads_are_refused(exported):
    """No matrix of the dictionary has its largest entry there, but the mean of two of them has."""
    model = load(exported("sum_mod(5)", "pd-ssm")[0])
    (block,) = model.model.blocks
    last = block.hidden_size - 2
    with torch.no_grad():
        block.A_dict[3] = 0
        block.A_dict[3, 1, 0] = block.A_dict[3, 2, 1:] = 200.0
        block.A_dict[3, last] = 150.0
        assert block.A_dict[3].argmax(dim=0).max() < last
        assert block.A_dict[3, :, :2].mean(dim=1).argmax() == last
    with pytest.raises(UnsupportedFormat, match="more is read of letters past"):
        prove(model)


@has_it
def test_sizes_that_the_weights_do_not_have_make_nothing(exported, tmp_path):
    folder = exported("parity", "pd-ssm")[0]
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "blocks.0.A_dict": torch.zeros(10**6, 0, 3)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="PD has them alike"):
        layer_file("pd-ssm").CODE.load(tmp_path)


@has_it
def test_other_weights_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="holds no model of pd-ssm"):
        layer_file("pd-ssm").CODE.load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no such file")
    with pytest.raises(CheckpointError, match="holds no model of pd-ssm"):
        layer_file("pd-ssm").CODE.load(tmp_path)


@has_it
@pytest.mark.slow
@pytest.mark.parametrize("task", [*MACHINES, "mod_arith(5)", "group(S5, transpositions)"])
def test_a_hundred_thousand_letters(exported, agrees, task):
    model = load(exported(task, "pd-ssm")[0])
    assert agrees(model, np.random.default_rng(2).integers(len(model.machine.alphabet), size=100_000).tolist())
