"""Folders that are not what they say: refused before anything of their size is made."""

import json
import shutil

import pytest
import torch

pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file

from fsa2lrnn.errors import CheckpointError, Fsa2LrnnError, UnsupportedFormat
from fsa2lrnn.extra.huggingface.observed.loading import configuration, held, of_folder, of_weights
from fsa2lrnn.extra.huggingface.observed.read import observe


def changed(folder, **settings):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return folder


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hidden_size": 10**9}, "the configuration describes"),
        ({"vocab_size": 10**12}, r"describes a model of 48,000,0\d\d,\d\d\d,?\d* numbers|describes a model of"),
        ({"intermediate_size": 10**8}, "one of them is of another model"),
        ({"linear_value_head_dim": 10**7}, "one of them is of another model"),
        ({"linear_conv_kernel_dim": 10**9}, "one of them is of another model"),
        ({"hidden_size": 10**40}, "the configuration describes no OlmoHybrid"),
        ({"hidden_size": -3}, "the configuration describes no OlmoHybrid"),
        ({"hidden_size": "many"}, "the configuration describes no OlmoHybrid"),
        ({"linear_dt_max": 0}, "the configuration describes no OlmoHybrid"),
        ({"layer_types": 3}, "the configuration describes no OlmoHybrid"),
        ({"num_hidden_layers": 10**9}, r"num_hidden_layers = 1000000000, and the weights are \d+ tensors"),
        ({"num_hidden_layers": None}, "num_hidden_layers = None"),
        ({"quantization_config": {"quant_method": "bitsandbytes"}}, "quantized weights"),
        ({"intermediate_size": 16}, "does not load as OlmoHybridModel"),
        ({"vocab_size": 30}, "does not load as OlmoHybridModel"),
    ],
)
def test_configurations(saved, settings, message):
    with pytest.raises(CheckpointError, match=message):
        observe(changed(saved("olmo_hybrid"), **settings), [1])


def test_code_of_a_folders_own_is_not_run(saved):
    folder = changed(saved("mamba2"), auto_map={"AutoModel": "evil.Model"})
    (folder / "evil.py").write_text("raise SystemExit('run')")
    assert observe(folder, [1]).n_tokens == 1


def test_an_unknown_architecture(saved):
    with pytest.raises(UnsupportedFormat, match="holds no model of olmo-hybrid"):
        observe(changed(saved("olmo_hybrid"), model_type="gpt2"), [1])


@pytest.mark.parametrize("text", ["[1]", "{", '{"model_type": NaN}', ""])
def test_a_configuration_that_is_none(saved, text):
    folder = saved("mamba2")
    (folder / "config.json").write_text(text)
    with pytest.raises(UnsupportedFormat, match=r"config\.json"):
        configuration(folder / "config.json")


def test_weights_that_are_missing_or_damaged(saved):
    folder = saved("olmo_hybrid")
    whole = folder / "model.safetensors"
    weights = load_file(whole)
    name = "model.layers.1.linear_attn.b_proj.weight"
    save_file({key: part for key, part in weights.items() if key != name}, whole, {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"the weights lack layers\.1\.linear_attn\.b_proj\.weight"):
        observe(folder, [1])
    whole.write_bytes(whole.read_bytes()[:-9])
    with pytest.raises(CheckpointError, match="is missing, damaged or no safetensors file"):
        held(folder)
    whole.unlink()
    torch.save(weights, folder / "pytorch_model.bin")  # a pickle is not read
    with pytest.raises(CheckpointError, match="is missing, damaged or no safetensors file"):
        of_folder(folder, "olmo_hybrid", "OlmoHybrid")


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"weight_map": {"a": "../model.safetensors"}}, "which is no file beside it"),
        ({"weight_map": {"a": 3}}, "has no weight_map"),
        ([], "has no weight_map"),
        ({"weight_map": {"a": "other.safetensors"}}, "is missing"),
    ],
)
def test_an_index_that_leads_elsewhere(saved, index, message):
    folder = saved("mamba2")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=message):
        observe(folder, [1])


def test_weights_that_fit_no_configuration(random_model):
    model = random_model("mamba2")
    with pytest.raises(CheckpointError, match="the weights: the configuration describes a model of"):
        of_weights({**model.config.to_dict(), "vocab_size": 4_096}, model.state_dict(), "mamba2", "Mamba2Model")


def test_any_byte_of_a_folder_may_be_wrong(saved, tmp_path):
    """Every answer is a report or an error of ours."""
    folder = saved("mamba2")
    text = (folder / "config.json").read_text()
    settings = [name for name, value in json.loads(text).items() if isinstance(value, int | float)]
    for name in settings[::4]:
        place = tmp_path / name
        shutil.copytree(folder, place)
        try:
            observe(changed(place, **{name: -1}), [1])
        except Fsa2LrnnError:
            continue


def test_a_model_without_its_head_is_read(random_model, tmp_path):
    """Its frequencies of positions are no weights, and stand in no file."""
    random_model("olmo_hybrid").model.save_pretrained(tmp_path)
    assert observe(tmp_path, [1]).n_tokens == 1


def test_numbers_that_no_file_holds_are_bounded(saved):
    folder = saved("qwen3_next")
    settings = json.loads((folder / "config.json").read_text())
    position = {**settings["rope_parameters"], "partial_rotary_factor": 1e8}
    with pytest.raises(CheckpointError, match=r"asks for [\d,]+ numbers that no file holds"):
        observe(changed(folder, rope_parameters=position), [1])


@pytest.mark.parametrize("limits", [[0.0], [0.0, 1.0, 2.0], [0, 10**400], [1.0] * 100_000])
def test_settings_that_their_code_uses_unseen(saved, limits):
    with pytest.raises(CheckpointError, match=r"does not run as its configuration says|describes no Mamba2") as caught:
        observe(changed(saved("mamba2"), time_step_limit=limits), [1])
    assert len(str(caught.value)) < 1_000


def test_more_layers_than_any_model_has_are_refused_however_many_tensors_there_are(saved):
    from safetensors.torch import load_file, save_file

    folder = changed(saved("mamba2"), num_hidden_layers=8_000)
    weights = load_file(folder / "model.safetensors")
    empty = {f"layers.{i}.empty": torch.zeros(0) for i in range(8_000)}
    save_file(weights | empty, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match="num_hidden_layers = 8,000: models of up to 512 layers are loaded"):
        observe(folder, [1])
