"""Folders: written, read, and those that are none of ours."""

import json
import shutil

import pytest
import torch

pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file

from fsa2lrnn import zoo
from fsa2lrnn.errors import CheckpointError
from fsa2lrnn.released.folder import FILE, FORMAT, load, run

DELTA_PRODUCT = json.dumps(
    {"format": FORMAT, "version": 1, "layer": "delta-product", "machine": json.loads(zoo.parity().to_json())}
)


def test_what_is_loaded_is_what_was_written(exported):
    folder, written = exported("parity")
    model = load(folder)
    assert model.machine == zoo.parity()
    assert (model.layer, model.dtype) == ("olmo-hybrid", "float32")
    assert sum(parameter.numel() for parameter in model.model.parameters()) == written.n_parameters
    assert "trust_remote_code" not in (folder / "config.json").read_text()


def test_no_letters(exported):
    assert run(load(exported("parity")[0]), torch.zeros(0, dtype=torch.int64))[0].tolist() == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "no folder that `fsa2lrnn export` wrote"),
        ('{"format": "x", "version": 1}', "'x', version 1, where"),
        (None, "no folder"),
        (DELTA_PRODUCT, "no whole model of delta-product is ever written"),
    ],
)
def test_another_folder_is_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / FILE).write_text(text)
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path)


def test_a_machine_that_does_not_fit_the_weights_is_refused(exported, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(exported("parity")[0], folder)
    value = json.loads((folder / FILE).read_text())
    value["machine"]["outputs"] = [7, 7]
    (folder / FILE).write_text(json.dumps(value))
    with pytest.raises(CheckpointError, match="4 tokens for 2 letters and 1 outputs"):
        load(folder)


def lacks(name):
    def change(folder):
        weights = load_file(folder / "model.safetensors")
        # as many numbers as before, so that it is the name that is missed
        save_file(
            {key if key != name else "other": part for key, part in weights.items()},
            folder / "model.safetensors",
            {"format": "pt"},
        )

    return change


def configured(**settings):
    def change(folder):
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lacks("lm_head.weight"), "the weights lack lm_head.weight"),  # drawn at random where they are asked for
        (lacks("model.layers.1.self_attn.q_proj.weight"), r"the weights lack model\.layers\.1\.self_attn\.q_proj"),
        (configured(vocab_size=10**12), "and the weights are 2,579: one of them is of another model"),
        (configured(hidden_size="many"), "the configuration describes no OlmoHybridForCausalLM"),
        (configured(num_hidden_layers=10**9), "num_hidden_layers = 1000000000, and the weights are 32 tensors"),
        (configured(architectures=["MambaForCausalLM"]), "a MambaForCausalLM, where a OlmoHybridForCausalLM"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"no such file"), "no safetensors file"),
    ],
)
def test_a_folder_that_was_changed_is_refused_before_anything_of_its_size_is_made(exported, tmp_path, change, message):
    folder = tmp_path / "changed"
    shutil.copytree(exported("parity")[0], folder)
    change(folder)
    with pytest.raises(CheckpointError, match=message):
        load(folder)


def test_a_configuration_on_which_their_code_fails_is_said_to_be(exported, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(exported("flip_flop", "mamba-2")[0], folder)
    configured(chunk_size=0)(folder)
    with pytest.raises(CheckpointError, match="the code of Mamba2ForCausalLM does not run as its configuration says"):
        run(load(folder), torch.zeros(1, dtype=torch.int64))
